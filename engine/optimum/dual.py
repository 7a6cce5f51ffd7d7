"""The Lagrange dual of one memory's problem: an upper bound of it for any prices (section 4).

Prices p[t] >= 0 of the stretches of a memory's line are given by their running sums P, so that an
interval from node b to node e costs ``P[e] - P[b]``, and the bound is

    D(P) = K * (P[nodes] - P[0]) + sum over tuples of max(0, max over choices (value - cost)).

Rounding. P is taken to be what is in the array: it is non-decreasing, so the p that it stands for
are real numbers of 0 or more, and D(P), in real numbers, is at least the optimum. With the unit
roundoff u, a choice whose true profit is positive costs less than its value w, so that its
computed profit is off by at most ``3 u w``; a tuple's by as much of its greatest value.
Neumaier's sum of the n profits is off by less than ``3 u`` of their sum as long as ``n u`` is
small, and the budget's term by ``3 u`` of itself. `margin` is more than twice all of this, so
``value + margin`` is never less than the optimum.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from engine.exact.checks import thread_count
from engine.exact.combine import neumaier
from engine.optimum.dual_kernels import (
    Cover,
    Dual,
    Evaluation,
    Prices,
    Slope,
    columns_of,
    cover,
    decide,
    share_out,
    span,
)
from engine.optimum.intervals import Intervals
from engine.runtime.jit import Floats, Ints, jit
from engine.runtime.work import as_here
from gpu_kernels.optimum.formulas import bend_and_price

TRUST = 4.0
"""Temperatures by which a step may move the price of a usual interval."""


@jit
def move(
    load: Floats, curve: Floats, length: Floats, budget: float, temperature: float, trust: float,
    price: Prices, extrapolated: Prices, moved: Prices,
) -> float:  # fmt: skip
    """Write the next prices; return how far the step goes against the momentum, in its metric."""
    against = 0.0
    for t in range(len(load)):
        if length[t] == 0.0:
            moved[t] = 0.0
            continue
        bend, moved[t] = bend_and_price(
            load[t], curve[t], length[t], budget, temperature, trust, extrapolated[t]
        )
        against += bend * (extrapolated[t] - moved[t]) * (moved[t] - price[t])
    return against


@jit
def carry(
    price: Prices, moved: Prices, extrapolated: Prices, cumulative: Prices, by: float
) -> None:
    """Let the momentum carry the new prices on; write the running sums."""
    total = 0.0
    for t in range(len(price)):
        extrapolated[t] = max(0.0, moved[t] + by * (moved[t] - price[t]))
        price[t] = moved[t]
        total += extrapolated[t]
        cumulative[t + 1] = total


class CpuPoint:
    """Prices in host memory.

    Parameters
    ----------
    dual : Dual
    length : (nodes,) float64
        Usual stretches of an interval at each; 0 where the price shall be 0.
    price : (nodes,) float64
        The first ones, 0 or more.
    """

    def __init__(self, dual: Dual, length: Floats, price: Prices) -> None:
        self._dual, self._length = dual, length
        self._price, self._extrapolated, self._moved = price.copy(), price.copy(), price.copy()
        self._load = self._curve = np.zeros_like(price)
        self._cumulative = np.zeros(price.size + 1)
        self.carry(0.0)

    def slope(self, temperature: float) -> float:
        """Return the dual here, for the next step; `temperature` is more than 0."""
        found = self._dual.slope(self._cumulative, temperature)
        self._load, self._curve = found.load, found.curve
        return found.value

    def move(self, temperature: float) -> float:
        """Step down the last slope; return how far that goes against the momentum."""
        return move(
            self._load, self._curve, self._length, float(self._dual.budget), temperature, TRUST,
            self._price, self._extrapolated, self._moved,
        )  # fmt: skip

    def carry(self, by: float) -> None:
        """Let the momentum carry the new prices on, by `by` of the last step."""
        carry(self._price, self._moved, self._extrapolated, self._cumulative, by)

    def ends(self) -> Prices:
        """Return the first and the last of the prices' running sums: (2,) float64."""
        return self._cumulative[[0, -1]]

    def sums(self) -> Prices:
        """Return all of them, not to be kept: (nodes + 1,) float64, non-decreasing."""
        return self._cumulative


CHUNK = 1 << 17  # tuples; fixed, so that sums do not depend on the number of threads
_BUFFERED = 2  # chunks a thread may hold back
_UNIT = 2.0**-53


def margin(dual: Dual, cumulative: Prices) -> float:
    """Return a margin that makes the computed D(P) a certain upper bound."""
    paid = dual.budget * float(cumulative[-1] - cumulative[0])
    return 16.0 * _UNIT * (dual.mass + paid) * (1.0 + 1e-9)


class CpuDual:
    """The dual on the CPU, all cores; O(tuples + choices + nodes) an evaluation.

    Results do not depend on `threads`: chunks are of fixed size and are added up in order.

    Parameters
    ----------
    intervals : Intervals
        Its arrays may be memory-mapped.
    budget : int
        Most tuples on each stretch, 0 or more.
    threads : int, optional
        All CPUs unless given.
    """

    def __init__(self, intervals: Intervals, budget: int, threads: int | None = None) -> None:
        self.intervals, self.nodes, self.budget = intervals, intervals.nodes, budget
        self._threads = thread_count(threads)
        self._columns = columns_of(intervals)
        size = len(intervals.begin)
        self._chunks = [(a, min(a + CHUNK, size)) for a in range(0, size, CHUNK)]
        spans, self.mass = [], 0.0
        for (first, _), (node, mass) in self._run(lambda a, b: span(*self._columns, a, b)):
            spans.append((int(intervals.begin[first]), int(node)))
            self.mass += mass
        self._spans = spans

    def _run(self, work: Callable[[int, int], Any]) -> Iterator[tuple[tuple[int, int], Any]]:
        """Yield each chunk and its result, in order, a few at a time."""
        if self._threads == 1 or len(self._chunks) <= 1:
            for chunk in self._chunks:
                yield chunk, work(*chunk)
            return
        waiting: deque[tuple[tuple[int, int], Future[Any]]] = deque()
        with ThreadPoolExecutor(self._threads, **as_here()) as pool:
            for chunk in self._chunks:
                waiting.append((chunk, pool.submit(work, *chunk)))
                if len(waiting) > _BUFFERED * self._threads:
                    done, future = waiting.popleft()
                    yield done, future.result()
            while waiting:
                done, future = waiting.popleft()
                yield done, future.result()

    def _span(self, first: int) -> tuple[int, int]:
        return self._spans[first // CHUNK]

    def paid(self, cumulative: Prices) -> float:
        """Return what all slots cost."""
        return self.budget * float(cumulative[-1] - cumulative[0])

    def cover(self) -> Cover:
        """Return what could hold each stretch."""
        tuples, length = np.zeros(self.nodes, np.int64), np.zeros(self.nodes, np.int64)
        cover(*self._columns[:3], tuples, length)
        return Cover(tuples, length / np.maximum(tuples, 1))

    def evaluate(self, cumulative: Prices) -> Evaluation:
        """Return the dual at the (nodes + 1,) float64 running sums of prices, non-decreasing."""
        change = np.zeros(self.nodes + 1, np.int64)
        chosen = np.empty(len(self.intervals.begin), np.int64)

        def work(first: int, last: int) -> tuple[float, float, Ints]:
            low, high = self._span(first)
            part = np.zeros(high - low + 1, np.int64)
            return *decide(*self._columns, cumulative, first, last, low, part, chosen), part

        total, rest = self.paid(cumulative), 0.0
        for (first, _), (more, more_rest, part) in self._run(work):
            low, high = self._span(first)
            change[low : high + 1] += part
            total, rest = neumaier(total, rest + more_rest, more)
        return Evaluation(total + rest, np.cumsum(change)[: self.nodes], chosen)

    def slope(self, cumulative: Prices, temperature: float) -> Slope:
        """Return the dual and its smoothed gradient; `temperature` is more than 0."""
        load, curve = np.zeros(self.nodes + 1), np.zeros(self.nodes + 1)

        def work(first: int, last: int) -> tuple[float, float, Floats]:
            low, high = self._span(first)
            part = np.zeros((2, high - low + 1))
            sums = share_out(
                *self._columns, cumulative, temperature, first, last, low, part[0], part[1]
            )
            return *sums, part

        total, rest = self.paid(cumulative), 0.0
        for (first, _), (more, more_rest, part) in self._run(work):
            low, high = self._span(first)
            load[low : high + 1] += part[0]
            curve[low : high + 1] += part[1]
            total, rest = neumaier(total, rest + more_rest, more)
        np.cumsum(load, out=load)
        np.cumsum(curve, out=curve)
        return Slope(total + rest, load[: self.nodes], np.maximum(curve[: self.nodes], 0.0))

    def start(self, length: Floats, price: Prices) -> CpuPoint:
        """Return prices to climb from; see `CpuPoint`."""
        return CpuPoint(self, length, price)
