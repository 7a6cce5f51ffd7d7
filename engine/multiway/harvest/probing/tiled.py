"""Dense vectors that agree, found by tiles of matrix products restricted to what is read.

Hop by hop, for the tuples of a slice that can reach it: products propose, float64 decides, as in
the exact join (`engine.multiway.exact.tiles`). No tuple may have been dropped.
"""

from __future__ import annotations

import threading

import numpy as np

from engine.multiway.exact.blocks import blocks, new_tile, no_pairs
from engine.multiway.exact.compaction import by_row
from engine.multiway.exact.layout import TILES, Narrow
from engine.multiway.exact.plan import plan_of
from engine.multiway.exact.screen import Screen, Singles, screen_of
from engine.multiway.harvest.layout import WHOLE, Tuples
from engine.multiway.harvest.probing.found import Found, Slice, begun
from engine.multiway.harvest.probing.walk import run_bounds, runs_of
from engine.multiway.harvest.probing.walk_layout import WalkJoin
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams
from engine.runtime.blas import one_blas_thread
from engine.runtime.jit import Floats, Integer, Ints, jit
from gpu_kernels.multiway.walk import first_at_or_after, taken

_FEWEST = 32
"""Rows of a tile."""


@jit
def _bounds_of(
    join: WalkJoin, tuples: Tuples, rows: Ints, other: Integer, run: Integer
) -> tuple[Ints, Ints]:
    """Return the positions of a run for tuples of one stream: from where, and up to where."""
    low, high = np.empty(rows.size, np.int64), np.empty(rows.size, np.int64)
    hint = np.zeros(2, np.int64)
    for at in range(rows.size):
        k = rows[at]
        run_bounds(join, join.streams.ts[tuples.place[k]], tuples.stream[k], other, run, hint)
        low[at], high[at] = hint
    return low, high


@jit
def _kept(
    pairs: Narrow, begin: Integer, end: Integer, place: Narrow, at: Ints, high: Ints, shred: Floats
) -> Integer:  # fmt: skip
    """Keep those of some pairs that window shredding reads; return where they end.

    A row is a place before, and after it where its tuple stands: at ``at[k]`` if its place is
    ``place[k]``.
    """
    kept = begin
    for i in range(begin, end):
        k = first_at_or_after(place, 0, place.size, pairs[i, 0])
        if shred[k] > 1.0 or taken(high[k] - 1 - pairs[i, 1], shred[k]):
            pairs[kept, 0], pairs[kept, 1] = at[k], pairs[i, 1]
            kept += 1
    return kept


@jit
def _phases(high: Ints, shred: float) -> tuple[Integer, Ints]:
    """Return into how many groups window shredding puts tuples, and the group of each.

    It reads a place if the fractional part of ``(high - place) * shred`` is less than `shred`. So
    tuples of which that of ``high * shred`` is about the same read about the same places. Of
    one group all places are tried.
    """
    number, part = np.int64(min(np.rint(1 / min(shred, 1.0)), high.size)), high * shred
    found = np.rint((part - np.floor(part)) * number).astype(np.int64)
    return number, found % number


@jit
def _read_by_any(low: Ints, high: Ints, shred: float) -> Ints:
    """Return the places that window shredding reads for any of some tuples, ascending."""
    first = low[0]
    read = np.zeros(max(first, high[-1]) - first, np.bool_)
    index = np.empty((high - low).max(), np.int64)
    size = 0
    for i in range(index.size):
        if taken(i, shred):
            index[size] = i
            size += 1
    for k in range(low.size):
        for i in range(size):
            place = high[k] - 1 - index[i]
            if place < low[k]:
                break
            read[place - first] = True
    places: Ints = np.flatnonzero(read) + first
    return places


@jit
def _together(reach: Integer, low: Ints, high: Ints) -> Integer:
    """Return how many rows to try at once.

    Beside what all of them have in reach, what comes between the first and the last is tried: as
    many as come in a fourth of it.
    """
    span = max(low.size, high[-1] - high[0])
    return max(_FEWEST, reach * low.size // (4 * span))


@jit
def _pairs(
    screen: Screen, value: Floats, join: WalkJoin, tuples: Tuples, rows: Ints, hop: int,
    first: int, read: Narrow, tile: Singles, pairs: Narrow,
) -> tuple[Narrow, Integer]:  # fmt: skip
    """Return which tuples, by where they stand in `rows`, agree with which places at a hop.

    The runs of a tuple follow each other, and its places ascend within a run. How many tuples
    are read is written to `read`. Tuples of one plan are shredded alike.
    """
    plans, used, none = join.plans, np.int64(0), np.zeros(2, np.int64)
    group = tuples.plan[rows] * plans.order.shape[0] + tuples.stream[rows]
    order = np.argsort(group, kind="mergesort")
    begin = 0
    while begin < rows.size:
        end = begin
        while end < rows.size and group[order[end]] == group[order[begin]]:
            end += 1
        at = order[begin:end]
        some, begin = rows[at], end
        place, shred = tuples.place[some].astype(np.int32), tuples.shred[some]
        stream = tuples.stream[some[0]]
        if hop > 0:
            shred[:] = WHOLE
        run, last = runs_of(plans, tuples.plan[some[0]], stream, hop)
        while run < last:
            low, high = _bounds_of(join, tuples, some, plans.order[stream, hop], run)
            reach = 0
            for k in range(some.size):
                own = high[k] - low[k]
                reach = max(reach, own)
                read[hop, some[k] - first] += np.int64(np.floor(own * min(shred[k], 1.0)))
            before = used
            number, phase = _phases(high, shred[0])
            for part in range(number):
                its = np.flatnonzero(phase == part)
                if not its.size:
                    continue
                its_low, its_high = low[its], high[its]
                if number == 1:
                    columns = np.arange(low[0], max(low[0], high[-1]))
                else:
                    columns = _read_by_any(its_low, its_high, shred[0])
                pairs, used = blocks(
                    screen, value, place[its], columns.astype(np.int32), its_low, its_high, none,
                    _together(reach, its_low, its_high), tile, pairs, used,
                )  # fmt: skip
            used = _kept(pairs, before, used, place, at, high, shred)
            run += 1
    return pairs, used


@jit
def _matched(
    screen: Screen, value: Floats, join: WalkJoin, tuples: Tuples, rows: Ints, found: Found,
    tile: Singles, pairs: Narrow,
) -> Ints:  # fmt: skip
    """Write where the matches of tuples lie, hop by hop; return all places, those known first."""
    places, total = found.place.copy(), found.place.size
    for hop in range(join.plans.order.shape[1]):
        pairs, used = _pairs(
            screen, value, join, tuples, rows, hop, found.first, found.read, tile, pairs
        )
        ends, own = np.zeros(rows.size + 1, np.int64), np.empty(used, np.int32)
        by_row(pairs[:used], 0, ends, own)
        if total + used > places.size:
            more = np.empty(2 * (total + used), np.int64)
            more[:total] = places[:total]
            places = more
        places[total : total + used] = own
        matching = 0
        for k in range(rows.size):
            row = rows[k]
            found.begin[hop, row - found.first] = total + ends[k]
            found.end[hop, row - found.first] = total + ends[k + 1]
            rows[matching] = row
            matching += ends[k + 1] > ends[k]
        rows = rows[:matching]
        total += used
    return places[:total].copy()


class _Room(threading.local):
    """Of a thread: memory that is not given back and taken anew for each of many small slices."""

    def __init__(self) -> None:
        self.tile, self.pairs = new_tile(), no_pairs()


class TiledMatches:
    """Finds the matches of the tuples of a slice by hop.

    Parameters
    ----------
    predicate : Predicate
        Of dense vectors, without codes that must be equal as well.
    """

    def __init__(self, streams: MultiStreams, predicate: Predicate) -> None:
        self._value = streams.attributes.value
        self._screen = screen_of(predicate, self._value)
        self._room = _Room()

    @property
    def lengths(self) -> Floats:
        """Of cosine those of all vectors."""
        return self._screen.length

    def ready(self, begin: int, last: int) -> None:
        """Do nothing: what is multiplied depends on the plans."""

    def found(
        self, join: WalkJoin, tuples: Tuples, cut: Slice, ready: None, known: Found | None = None
    ) -> Found:
        """Return the matches of the tuples of a slice, see `Finder`.

        O(tuples of the runs * width), by BLAS.
        """
        del ready
        found, rows, _ = begun(tuples, cut, join.plans.order.shape[0], known)
        rows.sort()
        whole = join.plans.runs[tuples.plan[rows], tuples.stream[rows]]
        rows = rows[(np.diff(whole, axis=1) > 0).all(axis=1)]
        with one_blas_thread():
            place = _matched(
                self._screen, self._value, join, tuples, rows, found, self._room.tile,
                self._room.pairs,
            )  # fmt: skip
        return found._replace(place=place)


def tiled(streams: MultiStreams, predicate: Predicate) -> TiledMatches | None:
    """Return what finds matches by tiles; None of a predicate that is none of dense vectors."""
    value = streams.attributes.value
    if predicate.equal or not len(value) or plan_of(predicate, value.shape[1]) != TILES:
        return None
    return TiledMatches(streams, predicate)
