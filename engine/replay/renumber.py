"""Other ids for the keys of a replay that goes on: those that nobody needs are forgotten."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engine.facts.key_links import KeyLinks
from engine.replay import layout
from engine.replay.allocate import PLAIN, SlidingWindow, empty_keys
from engine.replay.layout import Memory
from engine.runtime.bits import put
from engine.runtime.jit import NONE, Ints, Records, jit, nth


def renumbered(
    keys: Records, memories: Sequence[Memory], windows: Sequence[SlidingWindow],
    old_to_new: tuple[Ints, Ints], size: int, *, keyed: bool,
) -> Records:  # fmt: skip
    """Renumber the keys of residents and of windows, and return the records of those kept.

    Parameters
    ----------
    keys : (2 * ids,) KEY
    memories, windows : (left, right)
        Changed in place.
    old_to_new : ((ids,) int64, (ids,) int64)
        New id of each on either side, no two alike; -1 for those that are forgotten.
    size : int
        Ids for which there is to be room.
    keyed : bool
        Whether keys may be marked for this instant.

    Returns
    -------
    (2 * size,) KEY
        O(ids + K).
    """
    found = empty_keys(size)
    for side, (memory, new) in enumerate(zip(memories, old_to_new, strict=True)):
        residents = memory.slots["seq"] != NONE
        memory.slots["key"][residents] = new[memory.slots["key"][residents]]
        kept = np.flatnonzero(new[: keys.size // 2] >= 0)
        if keyed:
            changed = kept[keys["dirty"][2 * kept + side] != layout.CLEAN]
            keys["dirty"][2 * kept + side] = layout.CLEAN
            renamed = new[changed]
            keys["dirty"][2 * changed + side] = np.r_[renamed[1:], NONE][: changed.size]
            memory.n[layout.DIRTY] = renamed[0] if changed.size else NONE
        window = windows[side]
        begin = int(memory.n[layout.WINDOW_AT])
        memory.n[layout.WINDOW_AT] = 0
        window.ts = window.ts[begin:]
        window.key = new[window.key[begin:]].astype(np.int32)
        found.view(PLAIN)[2 * new[kept] + side] = keys.view(PLAIN)[2 * kept + side]
    return found


@jit
def _count_present(
    words: NDArray[np.uint64], blocks: NDArray[np.int32], keys: Records, side: int, estimator: int
) -> None:
    for key in range(keys.size // 2):
        own = keys[nth(2 * key + side)]
        there = own.window if estimator == layout.WINDOW_ESTIMATOR else own.residents
        if there > 0:
            put(words, blocks, np.int64(key))


def carry_counts(
    old: KeyLinks, links: Sequence[KeyLinks], old_to_new: Sequence[Ints], keys: Records,
    estimator: int,
) -> None:  # fmt: skip
    """Carry match counts over to other links, and count what is there for ids that are new."""
    for side, own in enumerate(links):
        if own.stretches is not None:
            words, blocks = own.stretches.own_words, own.stretches.own_blocks
            _count_present(words, blocks, keys, side, estimator)
    counts, new = links[0].counts, old_to_new[0]
    if counts is not None and old.counts is not None:
        kept = new >= 0
        counts[new[kept]] = old.counts[kept]
        _count_ahead(links[0], keys, int(kept.sum()), estimator)


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
