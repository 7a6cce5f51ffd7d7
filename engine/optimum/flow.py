"""ESJA and SJA: the optimum of one memory as a min-cost flow (P1 4.2.3; contract, section 4).

ESJA weighs an output by its importance, SJA by 1 (Das, Gehrke, Riedewald); weights have any sign.
Solved by successive cheapest ways, from prices such as the certificate's: the better they are, the
fewer units are out of place and the shorter their ways. On a line of time with K slots that is a
small part of what a general solver spends, which builds a node for every match and starts from
nothing.
"""

from __future__ import annotations

import math
import time
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from engine.optimum.intervals import Intervals
from engine.optimum.network import MOST_PRICE, Flow, Tuples, balance, begin_flow, new_search
from engine.runtime.errors import WinnowError
from engine.runtime.jit import NONE, Floats, Ints, jit
from engine.runtime.work import told

STEPS = 1 << 20  # nodes done before the clock is read again
_HEADROOM = 6  # bits that prices may grow by


class MemoryOptimum(NamedTuple):
    """The optimum of one memory, or the bounds proven so far."""

    lower: float
    upper: float
    """`lower`, `upper`: The plan's value, and what no plan exceeds. They differ only where values
    have more bits than whole numbers of 60 bits hold, and then by about 1e-13 of them."""
    chosen: Ints
    """(n,) int64. The plan: each tuple's choice, `NONE` where it is not stored."""
    price: Floats
    """(nodes + 1,) float64. Cumulative prices that prove it."""


class OutOfTimeError(WinnowError):
    """The time allowed has passed before the optimum was found."""


def _exact_sum(values: Ints) -> int:
    """Return the sum of whole numbers of less than 2^62, as Python's int."""
    return (int((values >> 31).sum()) << 31) + int((values & ((1 << 31) - 1)).sum())


def _units(intervals: Intervals, price: Floats) -> int:
    """Return the power of two by which values and prices become whole numbers."""
    greatest = max(float(price[-1] - price[0]), float(intervals.value.max(initial=0.0)))
    return MOST_PRICE.bit_length() - 1 - _HEADROOM - int(np.frexp(greatest)[1])


def solve_flow(
    intervals: Intervals, budget: int, price: Floats, *, seconds: float = np.inf
) -> MemoryOptimum:
    """Return the optimum of one memory.

    Parameters
    ----------
    intervals : Intervals
    budget : int
        K, tuples held at once.
    price : (nodes + 1,) float64
        Cumulative prices to begin from, non-decreasing: the certificate's.
    seconds : float
        After which it gives up.

    Raises
    ------
    OutOfTimeError
        If it gives up.

    Notes
    -----
    Memory O(nodes + tuples + choices). A search costs O((s + c) log s) for s nodes within reach
    that have c choices; there is one for each unit out of place.
    """
    began = time.perf_counter()
    bits = _units(intervals, price)
    while True:
        value = np.rint(np.ldexp(intervals.value, bits)).astype(np.int64)
        whole = np.rint(np.ldexp(price - price[0], bits)).astype(np.int64)
        flow = _new_flow(intervals, np.maximum.accumulate(whole))
        tuples = Tuples(intervals.begin, intervals.start, intervals.end, value)
        if _balanced(intervals, tuples, flow, budget, began + seconds):
            return _proven(intervals, tuples, flow, budget, bits)
        bits -= 2 * _HEADROOM


def _new_flow(intervals: Intervals, price: Ints) -> Flow:
    line = np.zeros((2, intervals.nodes + 1), np.int64)
    idle = np.zeros(intervals.nodes, np.int64)
    chosen, after, before = np.zeros((3, intervals.begin.size), np.int64)
    return Flow(price, idle, line[0], chosen, line[1], after, before)


def _balanced(
    intervals: Intervals, tuples: Tuples, flow: Flow, budget: int, deadline: float
) -> bool:
    """Solve; False if a price overflows."""
    nodes = intervals.nodes
    search = new_search(nodes, tuples.begin.size, tuples.end.size)
    progress = np.zeros(3, np.int64)
    begin_flow(tuples, flow, nodes, budget)
    while not balance(tuples, flow, search, nodes, progress, STEPS):
        if np.abs(flow.price).max() > MOST_PRICE:
            return False
        if time.perf_counter() > deadline:
            raise OutOfTimeError("the optimum was not found in the time allowed; use method dual")
        told(f"flow {min(99, 100 * int(progress[0]) // max(1, nodes))} %")
    return True


@jit
def best_gains(tuples: Tuples, price: Ints) -> tuple[int, int]:
    """Return the sum over the tuples of the value of the best choice less its price.

    Returns
    -------
    (multiples of 2^31, rest)
    """
    begin, start, end, value = tuples
    high, low = 0, 0
    for i in range(len(begin)):
        best = 0
        for k in range(start[i], start[i + 1]):
            best = max(best, value[k] - (price[end[k]] - price[begin[i]]))
        high += best >> 31
        low += best & 0x7FFFFFFF
    return high, low


def _proven(
    intervals: Intervals, tuples: Tuples, flow: Flow, budget: int, bits: int
) -> MemoryOptimum:
    """Prove in whole numbers that the plan is optimal: its prices bound the value of any."""
    stored = flow.chosen[flow.chosen != NONE]
    high, low = best_gains(tuples, flow.price)
    bound = budget * int(flow.price[-1] - flow.price[0]) + (high << 31) + low
    value = _exact_sum(tuples.value[stored])
    if bound != value:
        raise AssertionError(
            f"a flow of value {value} is bounded by {bound}: neither is the optimum"
        )
    unit = Fraction(2) ** -bits
    price = np.ldexp((flow.price - flow.price[0]).astype(np.float64), -bits)
    if budget == 0 or np.array_equal(
        np.ldexp(tuples.value.astype(np.float64), -bits), intervals.value
    ):
        optimum = float(bound * unit)
        return MemoryOptimum(optimum, optimum, flow.chosen, price)
    lower = math.fsum(intervals.value[stored])
    slack = Fraction(tuples.begin.size, 2)  # half a unit a tuple
    upper = math.nextafter(float((bound + slack) * unit), math.inf)
    return MemoryOptimum(lower, upper, flow.chosen, price)
