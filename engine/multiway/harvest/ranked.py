"""Bands that agree, found by rank among the tuples whose ages are read.

As in the exact join (`engine.multiway.exact.ranks`), the tuples of a slice are bits in order of
value, and the partners of each a stretch of them. But here the bits that are set are those of the
runs that a hop reads: tuples come into a run and leave it as time goes by. What a stretch gives is
put in arrival order by marks of the places. No tuple may have been dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.multiway.exact.layout import END, LOW, Ranks, SlicePart
from engine.multiway.exact.plan import Cut, part_of
from engine.multiway.exact.spans import ranked
from engine.multiway.harvest.found import Found, begun
from engine.multiway.harvest.layout import WHOLE, Tuples
from engine.multiway.harvest.walk import run_bounds, runs_of
from engine.multiway.harvest.walk_layout import WalkJoin
from engine.multiway.streams import MultiStreams, Windows
from engine.runtime.bits import lowest, masked
from engine.runtime.jit import Floats, Integer, Ints, kernel
from gpu_kernels.multiway.walk import taken

_ROOM = 16
"""Matches of a tuple for which there is room at first."""
Words = NDArray[np.uint64]


class _Live(NamedTuple):
    """The tuples that a hop reads, and the matches of one tuple among them; of one thread."""

    words: Words
    """(bits / 64,) uint64. Those in the runs, by rank."""
    marks: Words
    """(places / 64,) uint64. Matches by place, from the slice's first of a stream on."""
    filled: Words
    """(places / 4096,) uint64. Words of `marks` with any."""
    runs: Ints
    """(runs, 2) int64. Where each run begins and ends: positions."""


@kernel
def _turned(ranks: Ranks, live: _Live, shift: Integer, begin: Integer, end: Integer) -> None:
    """Turn the bits of the places ``begin <= place < end``: set them, or clear them."""
    for place in range(begin, end):
        bit = ranks.rank[place - shift]
        live.words[bit >> 6] ^= np.uint64(1) << np.uint64(bit & 63)


@kernel
def _same_runs(join: WalkJoin, begin: Integer, end: Integer, before: Integer) -> bool:
    """Return whether the runs ``begin <= run < end`` read the ages of as many from `before` on."""
    youngest, oldest = join.plans.youngest, join.plans.oldest
    for run in range(begin, end):
        own = run - begin + before
        if youngest[run] != youngest[own] or oldest[run] != oldest[own]:
            return False
    return True


@kernel
def _moved(
    join: WalkJoin, ranks: Ranks, live: _Live, now: Integer, stream: Integer, other: Integer,
    begin: Integer, end: Integer, shift: Integer, fresh: bool,
) -> None:  # fmt: skip
    """Make those live that the runs ``begin <= run < end`` hold for a tuple of a time.

    Either none is live before, or those are that the runs held for a tuple before.
    """
    for run in range(begin, end):
        own = live.runs[run - begin]
        low, high = own[0], own[1]
        run_bounds(join, now, stream, other, run, own)
        if fresh:
            low = high = own[0]
        _turned(ranks, live, shift, low, min(own[0], high))
        _turned(ranks, live, shift, max(own[0], high), own[1])


@kernel
def _emptied(ranks: Ranks, live: _Live, runs: Integer, shift: Integer) -> None:
    """Make no tuple live."""
    for run in range(runs):
        _turned(ranks, live, shift, live.runs[run, 0], live.runs[run, 1])


@kernel
def _marked(ranks: Ranks, live: _Live, low: Integer, high: Integer, base: Integer) -> Integer:
    """Mark the live tuples of a stretch by number, counted from `base`; return how many."""
    found = np.int64(0)
    if high <= low:
        return found
    for word in range(low >> 6, ((high - 1) >> 6) + 1):
        own = masked(live.words, word, low, high)
        first = word << 6
        while own != 0:
            at = np.int64(ranks.number[first + lowest(own)]) - base
            live.marks[at >> 6] |= np.uint64(1) << np.uint64(at & 63)
            live.filled[at >> 12] |= np.uint64(1) << np.uint64((at >> 6) & 63)
            own &= own - np.uint64(1)
            found += 1
    return found


@kernel
def _listed(
    live: _Live, low: Integer, high: Integer, shift: Integer, shred: float, place: Ints, at: Integer
) -> Integer:  # fmt: skip
    """Write the marked places ``low <= place < high`` that are read, and clear their marks."""
    begin, end = low - shift, high - shift
    if end <= begin:
        return at
    for top in range(begin >> 12, ((end - 1) >> 12) + 1):
        some = masked(live.filled, top, begin >> 6, ((end - 1) >> 6) + 1)
        while some != 0:
            word = (top << 6) + lowest(some)
            some &= some - np.uint64(1)
            own = masked(live.marks, word, begin, end)
            live.marks[word] ^= own
            if live.marks[word] == 0:
                live.filled[top] ^= np.uint64(1) << np.uint64(word & 63)
            while own != 0:
                one = (word << 6) + lowest(own) + shift
                own &= own - np.uint64(1)
                if shred > 1.0 or taken(high - 1 - one, shred):
                    if at < place.size:
                        place[at] = one
                    at += 1
    return at


@kernel
def _matched(
    join: WalkJoin, tuples: Tuples, k: Integer, hop: Integer, ranks: Ranks, part: SlicePart,
    live: _Live, runs: Integer, found: Found, total: Integer,
) -> Integer:  # fmt: skip
    """Write the live partners of a tuple, run by run, and how many tuples are read."""
    stream, place = tuples.stream[k], tuples.place[k]
    other = join.plans.order[stream, hop]
    shred = float(tuples.shred[k]) if hop == 0 else WHOLE
    bit = ranks.rank[place - part.shift[stream]]
    at = other - np.int64(other > stream)
    number = _marked(
        ranks, live, np.int64(ranks.span[bit, at, LOW]), np.int64(ranks.span[bit, at, END]),
        part.first[other],
    )  # fmt: skip
    shift = part.shift[other] + part.first[other]
    read = np.int64(0)
    for run in range(runs):
        low, high = live.runs[run, 0], live.runs[run, 1]
        if number > 0:
            total = _listed(live, low, high, shift, shred, found.place, total)
        read += high - low if shred > 1.0 else int(np.floor((high - low) * shred))
    found.read[hop, k - found.first] = read
    return total


@kernel
def _found_in_stream(
    join: WalkJoin, tuples: Tuples, rows: Ints, stream: Integer, hop: Integer, ranks: Ranks,
    part: SlicePart, live: _Live, found: Found, total: Integer,
) -> Integer:  # fmt: skip
    """Write the matches of tuples of one stream at a hop, in arrival order; return their end."""
    other = join.plans.order[stream, hop]
    shift = part.shift[other]
    last, runs = np.int64(-1), np.int64(0)
    for k in rows:
        own = k - found.first
        begin, end = runs_of(join.plans, tuples.plan[k], stream, hop)
        found.begin[hop, own] = found.end[hop, own] = total
        if begin == end or (hop > 0 and found.begin[hop - 1, own] == found.end[hop - 1, own]):
            continue
        fresh = end - begin != runs or not _same_runs(join, begin, end, last)
        if fresh:
            _emptied(ranks, live, runs, shift)
            runs = end - begin
        last = begin
        now = join.streams.ts[tuples.place[k]]
        _moved(join, ranks, live, now, stream, other, begin, end, shift, fresh)
        total = _matched(join, tuples, k, hop, ranks, part, live, runs, found, total)
        found.end[hop, own] = total
    _emptied(ranks, live, runs, shift)
    return total


@kernel
def _find(
    join: WalkJoin, tuples: Tuples, rows: Ints, first_row: Ints, ranks: Ranks, part: SlicePart,
    live: _Live, found: Found, total: int,
) -> int:  # fmt: skip
    """Write the matches of tuples by hop; return where they end, also if they have no room.

    Parameters
    ----------
    rows, first_row : (rows,), (m + 1,) int64
        The tuples of each stream, in arrival order; where each stream's begin.
    total : int
        Matches that are written already.
    """
    for hop in range(join.plans.order.shape[1]):
        for stream in range(join.plans.order.shape[0]):
            own = rows[first_row[stream] : first_row[stream + 1]]
            total = _found_in_stream(
                join, tuples, own, stream, hop, ranks, part, live, found, total
            )  # fmt: skip
    return total


class RankedSlice(NamedTuple):
    """A slice of time in order of value."""

    ranks: Ranks
    part: SlicePart


class RankedMatches:
    """Finds the matches of a band by hop, slice by slice.

    Parameters
    ----------
    streams : MultiStreams
    windows : (m,) int64
        W ticks of each.
    epsilon : float
        EPS.
    """

    def __init__(self, streams: MultiStreams, windows: Ints, epsilon: float) -> None:
        self._streams, self._epsilon = streams, epsilon
        self._windows = Windows(windows, np.zeros(windows.size, np.bool_))
        self._values: Floats = np.ascontiguousarray(streams.attributes.value[:, 0])
        self._most = 0

    def ready(self, begin: int, last: int) -> RankedSlice:
        """Return the tuples in reach of ticks in order of value. O(n (log n + m))."""
        part = part_of(self._streams, self._windows, Cut(begin, last))
        ranks = ranked(part, self._values, self._epsilon, least=False, weighed=False)
        return RankedSlice(ranks, part)

    def found(
        self, join: WalkJoin, tuples: Tuples, cut: tuple[int, int], ready: RankedSlice,
        known: Found | None = None,
    ) -> Found:  # fmt: skip
        """Return the matches of the tuples of a slice, see `engine.multiway.harvest.found.Finder`.

        O(matches + words of a stretch) a tuple, and O(1) for each tuple that comes into a run.
        """
        ranks, part = ready
        found, rows, first_row = begun(tuples, cut, self._streams.number, known)
        places = int(np.diff(part.first).max()) + 1
        live = _Live(
            np.zeros(ranks.words.size, np.uint64), np.zeros((places >> 6) + 1, np.uint64),
            np.zeros((places >> 12) + 1, np.uint64),
            np.zeros((int(np.diff(join.plans.first).max(initial=1)), 2), np.int64),
        )  # fmt: skip
        total = found.place.size
        room = total + max(_ROOM * rows.size, self._most)
        while True:
            place = np.empty(room, np.int64)
            place[:total] = found.place[:total]
            found = found._replace(place=place)
            room = _find(join, tuples, rows, first_row, ranks, part, live, found, total)
            if room <= place.size:
                return found._replace(place=place[:room])
            self._most = max(self._most, room - total)
