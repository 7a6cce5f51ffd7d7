"""Statistics for join orders, measured from the streams: rates, distinct values, selectivities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.predicate import Condition, Predicate, condition, meets
from engine.multiway.streams import MultiStreams, Windows, reach
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


@kernel
def _sampled(
    rules: Condition, streams: MultiStreams, begin: int, low: Ints, high: Ints, found: Ints
) -> None:
    """Add the comparisons and the matches of tuples with what they have in reach."""
    step = max(1.0, low.size / PROBES)
    at = 0.0
    while at < low.size:
        k = int(at)
        size = high[k] - low[k]
        stride = max(1.0, size / PARTNERS)
        other = 0.5 * (stride - 1.0)
        while other < size:
            found[0] += 1
            if meets(rules, streams.attributes, begin + k, low[k] + int(other)):
                found[1] += 1
            other += stride
        at += step


def measure(streams: MultiStreams, windows: Windows, predicate: Predicate) -> Measures:
    """Measure the statistics of a join; the same streams give the same numbers.

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
    for i in range(m):
        for j in range(m):
            if i == j:
                continue
            ranges = reach(streams, windows, i, j)
            found = np.zeros(2, np.int64)
            _sampled(rules, streams, int(streams.first[i]), ranges.low, ranges.high, found)
            if found[0]:
                selectivities[i, j] = found[1] / found[0]
    distinct = np.array([_distinct(streams, windows, i) for i in range(m)])
    return Measures(rates, span, distinct, selectivities)


_WINDOWS = 16


def _distinct(streams: MultiStreams, windows: Windows, stream: int) -> float:
    """Return the different attributes of a window, on average; 1 where attributes are no codes."""
    part = streams.part(stream)
    code, ts = streams.attributes.code, streams.ts[part]
    if not code.size or not ts.size:
        return 1.0
    found = []
    for end in np.linspace(ts.size / _WINDOWS, ts.size, _WINDOWS).astype(np.int64).tolist():
        size = int(windows.size[stream])
        if windows.by_rows[stream]:
            begin = max(0, end - size)
        else:
            begin = int(np.searchsorted(ts, ts[max(end, 1) - 1] - size))
        found.append(np.unique(code[part][begin:end]).size)
    return max(1.0, float(np.mean(found)))
