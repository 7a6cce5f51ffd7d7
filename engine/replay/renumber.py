"""Other ids for the keys of a replay that goes on: those that nobody needs are forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.facts.key_links import KeyLinks
from engine.replay import layout
from engine.replay.allocate import SlidingWindow
from engine.replay.layout import Memory
from engine.runtime.jit import NONE, Ints, Records, jit, nth


def renumbered(
    keys: Records, memories: Sequence[Memory], windows: Sequence[SlidingWindow], old_to_new: Ints,
    kept: Ints, *, keyed: bool,
) -> Records:  # fmt: skip
    """Renumber the keys of residents and of windows, and return the records of those kept.

    Parameters
    ----------
    keys : (2 * ids,) KEY
    memories, windows : (left, right)
        Changed in place.
    old_to_new : (ids,) int64
        New id of each; -1 for those that are forgotten.
    kept : (n,) int64
        The others, ascending.
    keyed : bool
        Whether memories have heaps of keys.

    Returns
    -------
    (2 * n,) KEY
        O(ids + K).
    """
    for side, memory in enumerate(memories):
        residents = memory.slots["seq"] != NONE
        memory.slots["key"][residents] = old_to_new[memory.slots["key"][residents]]
        if keyed:
            entries = memory.heap[: memory.n[layout.HEAP]]
            entries["what"] = old_to_new[entries["what"]]
            changed = kept[keys["dirty"][2 * kept + side] != layout.CLEAN]
            keys["dirty"][2 * kept + side] = layout.CLEAN
            renamed = old_to_new[changed]
            keys["dirty"][2 * changed + side] = np.r_[renamed[1:], NONE][: changed.size]
            memory.n[layout.DIRTY] = renamed[0] if changed.size else NONE
        window = windows[side]
        begin = int(memory.n[layout.WINDOW_AT])
        memory.n[layout.WINDOW_AT] = 0
        window.ts = window.ts[begin:]
        window.key = old_to_new[window.key[begin:]].astype(np.int32)
    return keys.reshape(-1, 2)[kept].reshape(-1).copy()


def carry_counts(
    old: KeyLinks, links: KeyLinks, old_to_new: Ints, keys: Records, estimator: int
) -> None:
    """Carry match counts over to other links, and count what is there for ids that are new."""
    kept = old_to_new >= 0
    assert old.counts is not None and links.counts is not None  # noqa: S101, PT018 - they have them
    links.counts[old_to_new[kept]] = old.counts[kept]
    _count_ahead(links, keys, int(kept.sum()), estimator)


@jit
def _count_ahead(links: KeyLinks, keys: Records, known: int, estimator: int) -> None:
    """Count what is there of the first `known` ids among the matches of those that are to come."""
    for key in range(known):
        there = np.int64(0)
        for side in range(2):
            mine = keys[nth(2 * key + side)]
            there += mine.window if estimator == layout.WINDOW_ESTIMATOR else mine.residents
        if there > 0:
            for place in range(links.first[key], links.first[key + 1]):
                if links.other[place] >= known:
                    links.counts[links.other[place]] += np.int32(1)  # type: ignore[index]
