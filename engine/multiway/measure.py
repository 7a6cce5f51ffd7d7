"""Statistics for join orders, measured from the streams: rates, distinct values, selectivities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.predicate import Condition, Predicate, condition, meets
from engine.multiway.streams import MultiStreams, Windows, basic_counts, reach
from engine.runtime.jit import Floats, Ints, kernel

PROBES, PARTNERS = 1024, 256
"""Tuples of a stream that are tried, and in how many tuples in reach of each, evenly spread."""


class Measures(NamedTuple):
    """Statistics of a join."""

    rates: Floats
    """(m,) float64. Tuples a tick, over the time from the first arrival of all to the last."""
    span: float
    """That time, in ticks."""
    distinct: Floats
    """(m,) float64. Different attributes in a window, on average over windows evenly spread in
    time."""
    selectivities: Floats
    """(m, m) float64. sigma_ij: share of the tuples of window j that agree with a tuple of stream
    i, of a sample; 1 where none was in reach, and on the diagonal."""
    ages: Floats
    """(m, m, n) float64. Of that sample, the agreeing tuples of window j by their logical basic
    window, the youngest first; n is that of the longest window, 1 unless they were asked for."""


@kernel
def _sampled(
    rules: Condition, streams: MultiStreams, begin: int, low: Ints, high: Ints, basic_window: int,
    ages: Floats,
) -> int:  # fmt: skip
    """Return the comparisons of tuples with what they have in reach, and add matches by age."""
    compared = 0
    step = max(1.0, low.size / PROBES)
    at = 0.0
    while at < low.size:
        k = int(at)
        size = high[k] - low[k]
        stride = max(1.0, size / PARTNERS)
        other = 0.5 * (stride - 1.0)
        while other < size:
            compared += 1
            place = low[k] + int(other)
            if meets(rules, streams.attributes, begin + k, place):
                age = (streams.ts[begin + k] - streams.ts[place]) // basic_window
                ages[min(age, ages.size - 1)] += 1.0
            other += stride
        at += step
    return compared


def measure(
    streams: MultiStreams, windows: Windows, predicate: Predicate, basic_window: int | None = None
) -> Measures:
    """Measure the statistics of a join; the same streams give the same numbers.

    Parameters
    ----------
    basic_window : int, optional
        b: ticks of the logical basic windows by which matches are counted.

    Returns
    -------
    Measures
        O(m^2 * (n + PROBES * PARTNERS)).

    Examples
    --------
    >>> from engine.multiway.streams import no_attributes, windows_of
    >>> ts, codes = np.array([0, 4, 1, 3]), np.array([7, 8, 7, 9])
    >>> streams = MultiStreams(np.array([0, 2, 4]), ts, ts, np.ones(4),
    ...                        no_attributes(4)._replace(code=codes))
    >>> found = measure(streams, windows_of([9, 9]), Predicate("equi", ("k",)))
    >>> found.rates.tolist(), found.selectivities.tolist()
    ([0.5, 0.5], [[1.0, 0.0], [0.5, 1.0]])
    """
    m, ts = streams.number, streams.ts
    span = float(ts.max() - ts.min()) if ts.size else 0.0
    rates = np.diff(streams.first) / max(span, 1.0)
    rules = condition(predicate)
    selectivities = np.ones((m, m))
    most = 1 if basic_window is None else max(basic_counts(windows, basic_window))
    ages = np.zeros((m, m, most))
    for i in range(m):
        for j in range(m):
            if i == j:
                continue
            ranges = reach(streams, windows, i, j)
            compared = _sampled(
                rules, streams, int(streams.first[i]), ranges.low, ranges.high, basic_window or 1,
                ages[i, j],
            )  # fmt: skip
            if compared:
                selectivities[i, j] = ages[i, j].sum() / compared
    distinct = np.array([_distinct(streams, windows, i) for i in range(m)])
    return Measures(rates, span, distinct, selectivities, ages)


_WINDOWS = 16


def _distinct(streams: MultiStreams, windows: Windows, stream: int) -> float:
    """Return the different attributes of a window, on average; 1 where attributes are no codes."""
    part = streams.part(stream)
    code, ts = streams.attributes.code, streams.ts[part]
    if not code.size or not ts.size:
        return 1.0
    found = []
    for now in _evenly(streams):
        end, size = int(np.searchsorted(ts, now, side="right")), int(windows.size[stream])
        begin = max(0, end - size) if windows.by_rows[stream] else np.searchsorted(ts, now - size)
        found.append(np.unique(code[part][begin:end]).size)
    return max(1.0, float(np.mean(found)))


def _evenly(streams: MultiStreams) -> list[int]:
    """Return the last arrivals of any stream by times evenly spread, so in any unit the same."""
    parts = [streams.ts[streams.part(own)] for own in range(streams.number)]
    first, last = int(streams.ts.min()), int(streams.ts.max())
    found = []
    for passed in range(1, _WINDOWS + 1):
        now = first + (last - first) * passed // _WINDOWS
        before = [np.searchsorted(ts, now, side="right") for ts in parts]
        found.append(max(int(ts[end - 1]) for ts, end in zip(parts, before, strict=True) if end))
    return found
