"""A part of the tuples, for first prices: with as small a part of the memory it has like prices.

A price is what the least of the tuples held is worth, and a sample tells that. It is drawn so that
few are enough: beside each other in time and in what they earn for a stretch, of every four (or 16,
or 64) tuples one is drawn. As many nodes of the line make up one. So a step costs a quarter (or
less), and the prices, spread over the whole line, are where the ascent of all tuples begins.

Measured on two streams of 3M tuples: after the time of 13 evaluations the dual is where it would
else be after 140. Where a sample's memory is small, its prices follow the tuples that chance drew:
hence `SLOTS`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.optimum.ascent import Ascent, Start
from engine.optimum.dual import CpuDual
from engine.optimum.dual_kernels import Cover, Prices
from engine.optimum.intervals import Intervals
from engine.runtime.jit import Ints

ROUNDS = {64: (200,), 16: (200, 600), 4: (50, 200)}
"""Of how many tuples one is drawn, sample by sample, and the rounds after which all tuples try its
prices."""
SLOTS = 64
"""Least memory of a sample, in tuples."""
STRETCHES = 8
"""Least length of a usual interval on a sample's line."""
TUPLES = 10_000
"""Fewest tuples that may be stored of a sample."""
_BESIDE = 32  # times as many tuples as one is drawn of are ordered by what they earn
_UPPER = np.int64(-(2**32))  # the bits of a positive float64 that order it well enough
_GOLDEN = 2_654_435_769  # 2^32 over the golden ratio


def parts(intervals: Intervals, budget: int, cover: Cover) -> list[int]:
    """Return of how many tuples one is drawn, sample by sample; none where samples tell little.

    Parameters
    ----------
    intervals : Intervals
    budget : int
    cover : Cover
        With more tuples than `budget` on a stretch, at least.
    """
    some = int(np.count_nonzero(intervals.start[1:] > intervals.start[:-1]))
    usual = float(np.median(cover.length[cover.tuples > budget]))
    most = min(budget // SLOTS, some // TUPLES, int(usual) // STRETCHES)
    return [part for part in ROUNDS if part <= most]


def thinned(intervals: Intervals, part: int) -> Intervals:
    """Return one of every `part` tuples, on a line with one of as many nodes.

    Of a tuple's choices that end at one of its nodes the longest is kept. O(tuples) time, of which
    most are ordered within a few hundred or thousand.
    """
    drawn = _drawn(intervals, part)
    first, size = intervals.start[drawn], intervals.start[drawn + 1] - intervals.start[drawn]
    after = np.cumsum(size)
    at = np.repeat(first - after + size, size) + np.arange(size.sum())
    begin = intervals.begin[drawn] // np.int32(part)
    end = np.maximum(intervals.end[at] // np.int32(part), np.repeat(begin, size) + np.int32(1))
    longest = np.append(end[1:] != end[:-1], True)
    longest[after - 1] = True
    start = np.concatenate([[0], np.cumsum(longest)[after - 1]])
    at, nodes = at[longest], -(-intervals.nodes // part)
    return Intervals(nodes, begin, start, end[longest], intervals.value[at], intervals.until[at])


def _drawn(intervals: Intervals, part: int) -> Ints:
    """Return the tuples drawn, ascending: one of `part` that are beside each other."""
    some = np.flatnonzero(intervals.start[1:] > intervals.start[:-1])
    last = intervals.start[some + 1] - 1
    worth = intervals.value[last] / (intervals.end[last] - intervals.begin[some])
    order = (worth.view(np.int64) & _UPPER) | np.arange(some.size)
    together = _BESIDE * part
    whole = some.size // together * together
    order[:whole].reshape(-1, together).sort(axis=1)
    order[whole:].sort()
    groups = np.arange(some.size // part)
    places = groups * part + ((groups * _GOLDEN) >> 16) % part
    return np.sort(some[order[places] & ~_UPPER])


def spread(sums: Prices, nodes: int, ratio: float) -> Prices:
    """Return running sums of prices on a longer line: (nodes + 1,) float64.

    Parameters
    ----------
    sums : (shorter line's nodes + 1,) float64
    nodes : int
        Of the longer line.
    ratio : float
        How long its stretches are, in those of the shorter one.
    """
    whole: Prices = np.interp(np.arange(nodes + 1) * ratio, np.arange(sums.size), sums)
    return whole


def choices_of(intervals: Intervals) -> float:
    """Return the mean number of choices of the tuples that have any."""
    some = int(np.count_nonzero(intervals.start[1:] > intervals.start[:-1]))
    return len(intervals.end) / max(some, 1)


class Samples(NamedTuple):
    """Samples of the tuples of one memory, of which each has more than the one before it.

    They are few enough for the CPU, so that all devices begin from the same prices.
    """

    intervals: Intervals
    budget: int
    parts: Sequence[int]
    """Of how many tuples one is drawn."""
    threads: int | None

    def starts(self, deadline: float) -> Iterator[Start]:
        """Yield the prices that samples give, better and better, for an ascent of all tuples.

        Parameters
        ----------
        deadline : float
            By `time.monotonic`: after it there is one more round.
        """
        start, before = None, 1
        for part in self.parts:
            few = thinned(self.intervals, part)
            dual = CpuDual(few, max(1, round(self.budget / part)), self.threads)
            if start is not None:
                start = start._replace(sums=spread(start.sums, few.nodes, part / before))
            ascent, before = Ascent(dual, choices_of(few), start), part
            for rounds in ROUNDS[part]:
                while ascent.rounds < rounds:
                    ascent.step()
                    if time.monotonic() > deadline:
                        break
                start = ascent.reached()
                yield start._replace(sums=spread(start.sums, self.intervals.nodes, 1.0 / part))
