"""What the intervals of a span read, one following from the other, in compiled code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.exact_search import MOST, searched
from engine.multiway.harvest.layout import Plans, ReadPlan
from engine.multiway.harvest.learning.learner import all_scaled_down
from engine.multiway.harvest.learning.learnt_layout import JoinShape, layout_of, plan_of_counts
from engine.multiway.harvest.learning.lessons import Lessons, learn_counts
from engine.runtime.jit import Floats, Ints, jit


class Intervals(NamedTuple):
    """The intervals of a span, and how an adaptation changes what was learnt."""

    pushes: Ints
    """(intervals, m) int64."""
    number: Ints
    """(intervals + 1,) int64. The intervals before each and before the next span's first, those
    without tuples included; -1 if nothing comes behind."""
    every: int
    """Ticks of an interval."""
    forget: float
    """The part of what was learnt that an adaptation keeps."""


class Chosen(NamedTuple):
    """A setting and its plan."""

    counts: Ints
    """(m, m - 1) int64. Logical basic windows; no rows if there is no short way to it."""
    rankings: Ints
    """(m, m - 1, n) int64."""
    plan: ReadPlan


@jit
def chosen(
    shape: JoinShape, throttle: float, rates: Floats, comparisons: Floats, passes: Floats,
    ages: Floats, hint: Ints,
) -> Chosen:  # fmt: skip
    """Return the setting that harvests most, by the exact optimiser and the ages of matches.

    Parameters
    ----------
    throttle : float
        z; if it is 1, everything is read.
    rates, comparisons, passes, ages
        See `engine.multiway.harvest.learning.learner.Learnt`.
    hint : (m, m - 1) or (0, m - 1) int64
        The counts of the interval before, if there are any.
    """
    layout, rankings = layout_of(shape, rates, comparisons, passes, ages)
    counts = np.zeros((0, rates.size - 1), np.int64)
    if throttle == 1.0:
        counts = np.empty(shape.orders.shape, np.int64)
        for i in range(counts.shape[0]):
            counts[i] = shape.basic[shape.orders[i]]
    elif np.isfinite(layout.full_cost[0] + layout.full_output[0]):
        counts = searched(layout, throttle * layout.full_cost[0], MOST, hint).counts
    if counts.shape[0] == 0:
        none = np.zeros((rates.size, rates.size - 1), np.int64)
        return Chosen(counts, rankings, plan_of_counts(shape, none, rankings))
    return Chosen(counts, rankings, plan_of_counts(shape, counts, rankings))


@jit
def _grown(ages: Ints, used: int, more: int) -> Ints:
    """Return room for more ages behind those that are used."""
    if used + more <= ages.size:
        return ages
    found = np.empty(2 * (used + more), np.int64)
    found[:used] = ages[:used]
    return found


@jit
def _adapted(
    given: Intervals, own: int, rates: Floats, comparisons: Floats, passes: Floats, ages: Floats,
    lags: Floats,
) -> None:  # fmt: skip
    """Record the pushes of an interval, and forget, as often as adaptations come behind it."""
    for stream in range(rates.size):
        if given.pushes[own, stream] > 0:
            rates[stream] = given.pushes[own, stream] / given.every
    times, changed = given.number[own + 1] - given.number[own], True
    while times > 0 and changed:
        changed = all_scaled_down(lags, ages, comparisons, passes, comparisons[:0], given.forget)
        times -= 1


@jit
def plans_ahead(
    shape: JoinShape, throttle: float, lessons: Lessons, given: Intervals, begin: int,
    plan: ReadPlan, short: bool, rates: Floats, comparisons: Floats, passes: Floats, ages: Floats,
    lags: Floats,
) -> tuple[Plans, Chosen]:  # fmt: skip
    """Learn and adapt from interval to interval; return what they read, and the last setting.

    It goes on as far as `chosen` knows the next setting.

    Parameters
    ----------
    begin : int
        The interval that reads `plan`.
    short : bool
        Whether to go on beyond it.
    rates, comparisons, passes, ages, lags
        See `engine.multiway.harvest.learning.learner.Learnt`; changed in place.
    """
    m, size = rates.size, given.pushes.shape[0]
    runs, first = (
        np.empty((size - begin, m, m), np.int64),
        np.empty((size - begin, m + 1), np.int64),
    )
    youngest, oldest = (
        np.empty(plan.youngest.size, np.int64),
        np.empty(plan.youngest.size, np.int64),
    )
    used, done = 0, 0
    last = Chosen(np.zeros((0, m - 1), np.int64), np.zeros((m, m - 1, 1), np.int64), plan)
    while True:
        more = plan.youngest.size
        youngest, oldest = _grown(youngest, used, more), _grown(oldest, used, more)
        youngest[used : used + more], oldest[used : used + more] = plan.youngest, plan.oldest
        runs[done], first[done] = plan.runs, plan.first + used
        used += more
        learn_counts(lessons, begin + done, comparisons, passes, ages, lags)
        own, done = begin + done, done + 1
        if given.number[own + 1] >= 0:
            _adapted(given, own, rates, comparisons, passes, ages, lags)
        if own + 1 == size or not short:
            break
        found = chosen(shape, throttle, rates, comparisons, passes, ages, last.counts)
        if found.counts.shape[0] == 0:
            break
        last, plan = found, found.plan
    plans = Plans(
        plan.order, runs[:done].copy(), first[:done].copy(), youngest[:used].copy(),
        oldest[:used].copy(),
    )  # fmt: skip
    return plans, last
