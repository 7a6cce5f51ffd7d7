"""One pass over a slice in arrival order: expire, find partners, insert."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.exact import layout
from engine.multiway.exact.box import closed, emitted, tally, weighed
from engine.multiway.exact.candidates import cells_counted, combinations, gathered, in_order
from engine.multiway.exact.layout import (
    Candidates,
    ExactRules,
    ExactTallies,
    Lists,
    Ranks,
    SlicePart,
)
from engine.multiway.exact.lists import lists_drop, lists_put
from engine.multiway.exact.ranks import ranks_probe
from engine.multiway.streams import MultiStreams
from engine.runtime.bits import drop, put
from engine.runtime.jit import Integer, Records, inlined, jit, kernel, prefetch
from gpu_kernels.combine import MAX, MIN

_NEAR, _FAR = 12, 64  # tuples ahead of which lists, and columns, are fetched


@kernel
def _next_side(streams: MultiStreams, part: SlicePart, work: Candidates) -> Integer:
    """Return the stream of the next arrival; -1 at the end of the slice."""
    side: Integer = np.int64(-1)
    now = np.int64(0)
    for stream in range(part.own.size):
        k = work.cursor[stream]
        if k < part.first[stream + 1]:
            own = streams.ts[k + part.shift[stream]]
            if side < 0 or own < now:
                side, now = stream, own
    return side


@kernel
def _announce(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, side: Integer,
    k: Integer,
) -> None:  # fmt: skip
    """Prefetch what a tuple behind this one needs.

    More arrays are read at a time than the hardware prefetcher follows.
    """
    ahead = k + _FAR
    if ahead < part.first[side + 1]:
        place = ahead + part.shift[side]
        prefetch(streams.ts, place)
        if rules.plan == layout.EQUI:
            prefetch(lists.key, place)
            key = np.int64(lists.key[place + _NEAR - _FAR])
            prefetch(lists.ends, 2 * key * part.own.size)
            if not rules.constant >= 0.0:
                prefetch(streams.importance, place)


@kernel
def _drop(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, ranks: Ranks,
    side: Integer, k: Integer,
) -> None:  # fmt: skip
    place = k + part.shift[side]
    if rules.plan == layout.TILES:
        return
    if rules.plan == layout.RANKS:
        drop(ranks.words, ranks.blocks, ranks.rank[k])
        if ranks.importance.size > 0:
            ranks.importance[ranks.rank[k]] = 0.0
    else:
        lists_drop(rules.plan, lists, streams.attributes, streams.importance, part.own.size,
                   side, place)  # fmt: skip


@kernel
def _put(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, ranks: Ranks,
    side: Integer, k: Integer,
) -> None:  # fmt: skip
    place = k + part.shift[side]
    if rules.plan == layout.TILES:
        return
    if rules.plan == layout.RANKS:
        put(ranks.words, ranks.blocks, ranks.rank[k])
        if ranks.importance.size > 0:
            ranks.importance[ranks.rank[k]] = streams.importance[place]
    else:
        lists_put(rules.plan, lists, streams.attributes, streams.importance, part.own.size, side,
                  k, place)  # fmt: skip


@kernel
def _expire(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, ranks: Ranks,
    work: Candidates, side: Integer, now: Integer,
) -> None:  # fmt: skip
    """Remove the tuples that are out of reach of a tuple of `side` at `now`."""
    for other in range(part.own.size):
        if other == side:
            continue
        size = rules.window[other]
        oldest, behind = work.oldest[other], work.cursor[other]
        if rules.by_rows[other]:
            while behind - oldest > size:
                _drop(rules, streams, part, lists, ranks, other, oldest)
                oldest += 1
        else:
            shift = part.shift[other]
            while oldest < behind and now - streams.ts[oldest + shift] > size:
                _announce(rules, streams, part, lists, other, oldest)
                _drop(rules, streams, part, lists, ranks, other, oldest)
                oldest += 1
        work.oldest[other] = oldest


@kernel
def _equal(
    rules: ExactRules, part: SlicePart, lists: Lists, work: Candidates, side: Integer, key: Integer,
    own: Records, tallies: ExactTallies,
) -> bool:  # fmt: skip
    """Take the lists of equal code; where a count is enough, count them and return False."""
    sides = part.own.size
    found, outputs = np.int64(1), 1.0
    for other in range(sides):
        if other != side:
            at = key * sides + other
            low = np.int64(lists.ends[2 * at + layout.LOW])
            size = lists.ends[2 * at + layout.END] - low
            work.box_begin[other], work.box_size[other] = low, size
            found *= size
            outputs *= np.float64(size)
    if outputs == 0.0:
        return False
    if lists.number.size > 0:
        return True
    importance = 0.0
    if not rules.constant >= 0.0:
        for other in range(sides):
            work.sorted[other] = own if other == side else lists.sum[key * sides + other, 0]
        work.box_size[side] = 1
        importance = closed(rules.combine, sides, work.sorted, work.box_size)
    tally(tallies, found, outputs, importance)
    return False


@inlined
def _equi_probe(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, work: Candidates,
    side: Integer, k: Integer, place: Integer, tallies: ExactTallies,
    members: Any,  # noqa: ANN401
) -> bool:  # fmt: skip
    own = streams.importance[place]
    key = k if rules.plan == layout.TILES else np.int64(lists.key[place])
    if not _equal(rules, part, lists, work, side, key, own, tallies):
        return True
    slot = lists.number.size - part.own.size + side
    lists.number[slot], lists.importance[slot] = k, own
    work.box_begin[side], work.box_size[side] = slot, 1
    if rules.emit:
        return emitted(part, work, lists.number, np.int64(0), members, tallies.progress) >= 0
    weighed(rules, work, lists.importance, tallies)
    return True


@kernel
def _cells_star(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, side: Integer,
    place: Integer, tallies: ExactTallies,
) -> None:  # fmt: skip
    found, outputs = np.int64(1), 1.0
    for other in range(part.own.size):
        if other != side:
            size = cells_counted(rules, lists, streams.attributes, part.own.size, other, place)
            if size == 0:
                return
            found *= size
            outputs *= np.float64(size)
    tally(tallies, found, outputs, 0.0)


@kernel
def _candidates(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, work: Candidates,
    side: Integer, k: Integer, place: Integer,
) -> bool:  # fmt: skip
    """Write the candidates of every other stream to the pool; False if a stream has none."""
    work.item[0], work.importance[0] = k, streams.importance[place]
    work.begin[0, side], work.size[0, side] = 0, 1
    end = np.int64(1)
    for other in range(part.own.size):
        if other != side:
            begin = end
            end = gathered(rules, lists, part, streams.attributes, work, side, other, place, begin)
            if end == begin:
                return False
            work.begin[0, other], work.size[0, other] = begin, end - begin
            if not (rules.emit or rules.constant >= 0.0):
                for i in range(begin, end):
                    work.importance[i] = streams.importance[work.item[i] + part.shift[other]]
    work.top[0] = end
    for other in range(part.own.size):
        work.box_begin[other], work.box_size[other] = work.begin[0, other], work.size[0, other]
    return True


@inlined
def _lists_probe(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, work: Candidates,
    side: Integer, k: Integer, place: Integer, tallies: ExactTallies,
    members: Any,  # noqa: ANN401
) -> bool:  # fmt: skip
    if rules.plan == layout.CELLS and not rules.clique and not rules.emit and rules.constant >= 0.0:
        _cells_star(rules, streams, part, lists, side, place, tallies)
        return True
    if not _candidates(rules, streams, part, lists, work, side, k, place):
        return True
    if rules.clique:
        in_order(rules, work, side)
        return combinations(rules, part, streams.attributes, work, tallies, members)
    if rules.emit:
        return emitted(part, work, work.item, np.int64(0), members, tallies.progress) >= 0
    weighed(rules, work, work.importance, tallies)
    return True


@inlined
def _probe(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, ranks: Ranks,
    work: Candidates, side: Integer, k: Integer, place: Integer, tallies: ExactTallies,
    members: Any,  # noqa: ANN401
) -> bool:  # fmt: skip
    if rules.plan == layout.RANKS:
        return ranks_probe(rules, ranks, part, streams.importance, work, side, k, tallies, members)
    if rules.plan == layout.EQUI or (rules.plan == layout.TILES and not rules.clique):
        return _equi_probe(rules, streams, part, lists, work, side, k, place, tallies, members)
    return _lists_probe(rules, streams, part, lists, work, side, k, place, tallies, members)


@kernel
def _in_bin(tallies: ExactTallies, now: Integer) -> None:
    """Advance to the bin of a time; -1 before and behind them all."""
    edges, progress = tallies.edges, tallies.progress
    if edges.size == 0 or now < edges[0] or now >= edges[edges.size - 1]:
        progress[layout.BIN] = -1
        return
    progress[layout.BIN] = max(progress[layout.BIN], 0)
    while now >= edges[progress[layout.BIN] + 1]:
        progress[layout.BIN] += 1


def _sweep(
    rules: ExactRules, streams: MultiStreams, part: SlicePart, lists: Lists, ranks: Ranks,
    work: Candidates, tallies: ExactTallies, members: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Count or write the outputs of a slice until it ends or the output is full."""
    progress = tallies.progress
    while True:
        side = _next_side(streams, part, work)
        if side < 0:
            progress[layout.DONE] = 1
            return
        k = work.cursor[side]
        if k >= part.own[side]:
            place = k + part.shift[side]
            now = streams.ts[place]
            _expire(rules, streams, part, lists, ranks, work, side, now)
            _in_bin(tallies, now)
            if not _probe(rules, streams, part, lists, ranks, work, side, k, place, tallies,
                          members):  # fmt: skip
                return
            progress[layout.SKIP] = 0
        _announce(rules, streams, part, lists, side, k)
        _put(rules, streams, part, lists, ranks, side, k)
        work.cursor[side] = k + 1


sweep = jit(_sweep, _nrt=False)


def closes(combine: int) -> bool:
    """Return whether the importance of all combinations follows from sums."""
    return combine not in (MIN, MAX)
