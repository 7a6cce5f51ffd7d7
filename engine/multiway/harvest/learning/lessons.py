"""What sampled tuples teach, counted by interval before it is learnt."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from engine.multiway.fractions.histograms import bucket_of
from engine.multiway.harvest.layout import Probed
from engine.runtime.jit import Floats, Integer, Ints, jit, kernel

_EXACT = 2.0**52


class Classes(NamedTuple):
    """The classes that outputs are counted in."""

    basic_window: int
    """b, in ticks."""
    basic: Ints
    """(m,) int64. Logical basic windows of each window."""
    window: Ints
    """(m,) int64. W of each stream."""
    buckets: int
    """Of the histograms of lags."""


class Lessons(NamedTuple):
    """What there is to learn in each of some intervals."""

    first: Ints
    """(intervals + 1,) int64. Where the sampled tuples of each begin."""
    stream: Ints
    """(tuples,) int64."""
    comparisons: Ints
    passes: Ints
    """`comparisons`, `passes`: (tuples, m - 1) int64. By hop."""
    ages: Ints
    """(intervals, m, m - 1, n) int64. Outputs by direction, hop and logical basic window."""
    lags: Ints
    """(intervals, m, buckets) int64. Outputs by stream and bucket of its lag."""


def no_lessons(first: Ints, stream: Ints, out: Probed, classes: Classes) -> Lessons:
    """Return lessons of sampled tuples, of whose outputs none are counted yet."""
    m, size = classes.basic.size, first.size - 1
    ages = np.zeros((size, m, m - 1, int(classes.basic.max())), np.int64)
    lags = np.zeros((size, m, classes.buckets), np.int64)
    return Lessons(first, stream, out.comparisons, out.passes, ages, lags)


@kernel
def latest_of(ts: Ints, members: Ints, row: Integer) -> Integer:
    """Return the stream of an output's latest member: of equal times that of greater number."""
    latest = 0
    for stream in range(1, members.shape[1]):
        if ts[members[row, stream]] >= ts[members[row, latest]]:
            latest = stream
    return latest


@kernel
def count_lessons(
    ts: Ints, members: Ints, begins: Ints, orders: Ints, classes: Classes, ages: Any,  # noqa: ANN401
    lags: Any,  # noqa: ANN401
) -> None:  # fmt: skip
    """Count outputs by the ages of their members and by their lags behind the first stream's.

    Parameters
    ----------
    ts : (n,) int64
    members : (outputs, m) int64
        In order of time.
    begins : (intervals,) int64
        Ticks at which the intervals begin.
    orders : (m, m - 1) int64
    ages, lags
        See `Lessons`; int64 or float64, added to.
    """
    interval = 0
    for row in range(members.shape[0]):
        latest = latest_of(ts, members, row)
        now, origin = ts[members[row, latest]], ts[members[row, 0]]
        while interval + 1 < begins.size and now >= begins[interval + 1]:
            interval += 1
        for hop in range(orders.shape[1]):
            other = orders[latest, hop]
            k = (now - ts[members[row, other]]) // classes.basic_window
            ages[interval, latest, hop, min(k, classes.basic[other] - 1)] += 1
        for stream in range(1, members.shape[1]):
            lag = ts[members[row, stream]] - origin
            at = bucket_of(lag, classes.window[stream], classes.window[0], classes.buckets)
            lags[interval, stream, at] += 1


@kernel
def _added(value: Any, times: Integer) -> Any:  # noqa: ANN401 - numba's
    """Return a count that is added to one by one, so often."""
    if value == np.floor(value) and value + times < _EXACT:
        return value + times
    for _ in range(times):
        value += 1.0
    return value


@jit
def learn_counts(lessons: Lessons, interval: int, comparisons: Floats, passes: Floats,
                 ages: Floats, lags: Floats) -> None:  # fmt: skip
    """Add what there is to learn in an interval to what was learnt, as if output by output."""
    for k in range(lessons.first[interval], lessons.first[interval + 1]):
        stream = lessons.stream[k]
        for hop in range(comparisons.shape[1]):
            comparisons[stream, hop] += lessons.comparisons[k, hop]
            passes[stream, hop] += lessons.passes[k, hop]
    for i in range(ages.shape[0]):
        for hop in range(ages.shape[1]):
            for k in range(ages.shape[2]):
                ages[i, hop, k] = _added(ages[i, hop, k], lessons.ages[interval, i, hop, k])
        for at in range(lags.shape[1]):
            lags[i, at] = _added(lags[i, at], lessons.lags[interval, i, at])
