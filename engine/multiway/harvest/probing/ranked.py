"""Bands that agree, found by rank among the tuples whose ages are read.

As in the exact join (`engine.multiway.exact.ranks`), the partners of each tuple of a slice are a
stretch in order of value. Those of the ages that a hop reads are sought in it, 64 at a time, run by
run, and put in arrival order by marks of the places. No tuple may have been dropped.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.multiway.exact.layout import END, LOW, Ranks, SlicePart
from engine.multiway.exact.plan import Cut, part_of
from engine.multiway.exact.spans import ranked
from engine.multiway.harvest.layout import WHOLE, Tuples
from engine.multiway.harvest.probing.found import Found, begun
from engine.multiway.harvest.probing.walk import run_bounds, runs_of
from engine.multiway.harvest.probing.walk_layout import WalkJoin
from engine.multiway.streams import MultiStreams, Windows
from engine.runtime.bits import WORD, lowest, masked, near
from engine.runtime.jit import Floats, Integer, Ints, kernel
from gpu_kernels.multiway.walk import taken

_ROOM = 16
"""Matches of a tuple for which there is room at first."""
Words = NDArray[np.uint64]


class RankedSlice(NamedTuple):
    """A slice of time in order of value."""

    ranks: Ranks
    number: Floats
    """(bits + 64,) float64. Those of `ranks`."""
    part: SlicePart


class _Marks(NamedTuple):
    """The matches of one tuple in a run; of one thread."""

    words: Words
    """(places / 64,) uint64. By place, from the slice's first of a stream on."""
    filled: Words
    """(places / 4096,) uint64. Words with any."""
    runs: Ints
    """(runs, 2) int64. Positions of each run, as the last tuple of the stream had them."""


@kernel
def _marked(
    number: Floats, marks: _Marks, low: Integer, high: Integer, first: Integer, end: Integer,
    base: Integer,
) -> bool:  # fmt: skip
    """Mark the tuples ``first <= number < end`` of a stretch, from `base` on; return if any."""
    found = False
    for at in range(low, high, WORD):
        own = near(number, at, np.float64(end - 1), np.float64(first), 0.0)
        if high - at < WORD:
            own &= (np.uint64(1) << np.uint64(high - at)) - np.uint64(1)
        found |= own != 0
        while own != 0:
            place = np.int64(number[at + lowest(own)]) - base
            marks.words[place >> 6] |= np.uint64(1) << np.uint64(place & 63)
            marks.filled[place >> 12] |= np.uint64(1) << np.uint64((place >> 6) & 63)
            own &= own - np.uint64(1)
    return found


@kernel
def _listed(
    marks: _Marks, low: Integer, high: Integer, shift: Integer, shred: float, place: Ints,
    at: Integer,
) -> Integer:  # fmt: skip
    """Write the marked places ``low <= place < high`` that are read, and clear their marks."""
    begin, end = low - shift, high - shift
    if end <= begin:
        return at
    for top in range(begin >> 12, ((end - 1) >> 12) + 1):
        some = masked(marks.filled, top, begin >> 6, ((end - 1) >> 6) + 1)
        while some != 0:
            word = (top << 6) + lowest(some)
            some &= some - np.uint64(1)
            own = masked(marks.words, word, begin, end)
            marks.words[word] ^= own
            if marks.words[word] == 0:
                marks.filled[top] ^= np.uint64(1) << np.uint64(word & 63)
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
    join: WalkJoin, tuples: Tuples, k: Integer, hop: Integer, ready: RankedSlice, marks: _Marks,
    found: Found, total: Integer,
) -> Integer:  # fmt: skip
    """Write the partners of a tuple that are read, run by run, and how many tuples are read."""
    stream, place = tuples.stream[k], tuples.place[k]
    other, part = join.plans.order[stream, hop], ready.part
    shred = float(tuples.shred[k]) if hop == 0 else WHOLE
    bit, at = ready.ranks.rank[place - part.shift[stream]], other - np.int64(other > stream)
    low, high = np.int64(ready.ranks.span[bit, at, LOW]), np.int64(ready.ranks.span[bit, at, END])
    shift, base = part.shift[other], part.first[other]
    first_run, end_run = runs_of(join.plans, tuples.plan[k], stream, hop)
    read = np.int64(0)
    for run in range(first_run, end_run):
        bounds = marks.runs[run - first_run]
        run_bounds(join, join.streams.ts[place], stream, other, run, bounds)
        first, end = bounds[0], bounds[1]
        if _marked(ready.number, marks, low, high, first - shift, end - shift, base):
            total = _listed(marks, first, end, shift + base, shred, found.place, total)
        read += end - first if shred > 1.0 else int(np.floor((end - first) * shred))
    found.read[hop, k - found.first] = read
    return total


@kernel
def _find(
    join: WalkJoin, tuples: Tuples, rows: Ints, first_row: Ints, ready: RankedSlice, marks: _Marks,
    found: Found, total: int,
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
            for k in rows[first_row[stream] : first_row[stream + 1]]:
                own = k - found.first
                found.begin[hop, own] = total
                if hop == 0 or found.begin[hop - 1, own] < found.end[hop - 1, own]:
                    total = _matched(join, tuples, k, hop, ready, marks, found, total)
                found.end[hop, own] = total
    return total


class RankedMatches:
    """Finds the matches of a band by hop, slice by slice.

    Parameters
    ----------
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
        number = np.append(ranks.number, np.zeros(WORD)).astype(np.float64)
        return RankedSlice(ranks, number, part)

    def found(
        self, join: WalkJoin, tuples: Tuples, cut: tuple[int, int], ready: RankedSlice,
        known: Found | None = None,
    ) -> Found:  # fmt: skip
        """Return the matches of the tuples of a slice, see `Finder`.

        O(matches + words of a stretch) a tuple.
        """
        found, rows, first_row = begun(tuples, cut, self._streams.number, known)
        places = int(np.diff(ready.part.first).max()) + 1
        marks = _Marks(
            np.zeros((places >> 6) + 1, np.uint64), np.zeros((places >> 12) + 1, np.uint64),
            np.zeros((int(np.diff(join.plans.first).max(initial=1)), 2), np.int64),
        )  # fmt: skip
        total = found.place.size
        room = total + max(_ROOM * rows.size, self._most)
        while True:
            place = np.empty(room, np.int64)
            place[:total] = found.place[:total]
            found = found._replace(place=place)
            room = _find(join, tuples, rows, first_row, ready, marks, found, total)
            if room <= place.size:
                return found._replace(place=place[:room])
            self._most = max(self._most, room - total)
