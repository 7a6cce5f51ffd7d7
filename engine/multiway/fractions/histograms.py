"""Per-stream histograms of time correlations, and the scores derived from them (P4 5.2.2).

L_i, one for each stream, approximates the pdf of A_i = T(t^(i)) - T(t^(0)), the lag of stream i
behind stream 0 in the outputs: equi-width buckets over [-W_i, W_0], in ticks. (Streams count from 0
here, from 1 in the paper. L_0 is never read: its A is always 0.)

What is inside a bucket is spread evenly, so a histogram is read by its masses below the edges, and
the order of the float64 operations is: ``below[v + 1] = below[v] + L[v]`` from 0.0;
``width = (W_0 + W_i) / buckets``; the mass below x is, with ``place = (x + W_i) / width`` and v the
floor of it, ``below[v] + (place - v) * L[v]``, 0.0 from place 0 down and the whole from place
`buckets` up; the mass of [low, high] is the mass below `high` less that below `low`, and 0.0 at the
least.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from engine.runtime.errors import SpecError
from engine.runtime.jit import jit
from gpu_kernels.harvest.layout import Floats, Ints


@jit
def _mass_below(x: float, frequencies: Floats, below: Floats, lag: float, width: float) -> float:
    """Return the mass below x ticks of a histogram that begins at -lag."""
    place = (x + lag) / width
    if not place > 0.0:
        return 0.0
    if place >= frequencies.size:
        return float(below[frequencies.size])
    v = int(place)
    return float(below[v] + (place - v) * frequencies[v])


@jit
def _masses_below(frequencies: Floats) -> Floats:
    below = np.zeros(frequencies.size + 1)
    for v in range(frequencies.size):
        below[v + 1] = below[v] + frequencies[v]
    return below


@jit
def _edges(
    step: float, middle: float, frequencies: Floats, below: Floats, lag: float, width: float,
    out: Floats,
) -> None:  # fmt: skip
    """Fill out (n + 1,) with the masses below k * step + middle ticks."""
    for k in range(out.size):
        out[k] = _mass_below(step * k + middle, frequencies, below, lag, width)


@jit
def _scores(histograms: Floats, windows: Floats, b: float, orders: Ints, out: Floats) -> None:
    m, buckets = histograms.shape
    below = np.empty((m, buckets + 1))
    widths = (windows[0] + windows) / buckets
    for i in range(m):
        below[i] = _masses_below(histograms[i])
    for i in range(m):
        for j in range(m - 1):
            l = orders[i, j]  # noqa: E741 - the paper's name
            n = max(1, int(np.ceil(windows[l] / b)))
            edges = np.empty(n + 1)
            if i == 0:
                _edges(-b, 0.0, histograms[l], below[l], windows[l], widths[l], edges)
                for k in range(n):
                    out[i, j, k] = max(0.0, edges[k] - edges[k + 1])
            for v in range(buckets if i and l else min(i, 1)):
                middle, frequency = 0.0, 1.0  # A_0 is always 0
                if l:
                    middle, frequency = (v + 0.5) * widths[l] - windows[l], histograms[l, v]
                if frequency == 0.0:
                    continue
                _edges(b, middle, histograms[i], below[i], windows[i], widths[i], edges)
                for k in range(n):
                    out[i, j, k] += frequency * max(0.0, edges[k + 1] - edges[k])
            total = 0.0
            for k in range(n):
                total += out[i, j, k]
            if total == 0.0:
                out[i, j, :n] = 1.0


@jit
def bucket_of(lag: int, window: int, window_0: int, buckets: int) -> int:
    """Return the bucket of a lag A in [-window, window_0] ticks; the last one is closed.

    Whole numbers, so exact; a lag outside is counted in the bucket at that end.
    """
    if lag <= -window:
        return 0
    if lag >= window_0:
        return buckets - 1
    return ((lag + window) * buckets) // (window_0 + window)


@jit
def _learn(histograms: Floats, windows: Ints, lags: Ints) -> None:
    for row in range(lags.shape[0]):
        for i in range(1, windows.size):
            at = bucket_of(lags[row, i], windows[i], windows[0], histograms.shape[1])
            histograms[i, at] += 1.0


def empty_histograms(windows: ArrayLike, buckets: int) -> Floats:
    """Return empty histograms.

    Parameters
    ----------
    windows : (m,) int64
        W_i, in ticks.

    Returns
    -------
    (m, buckets) float64

    Raises
    ------
    SpecError
        If a window's ticks times `buckets` are too many for int64.

    Examples
    --------
    >>> empty_histograms([10, 20], 3).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    ticks = np.asarray(windows, np.int64)
    if 2 * int(ticks.max()) * buckets > np.iinfo(np.int64).max:
        raise SpecError(
            f"a window of {ticks.max()} ticks in {buckets} buckets is more than int64 counts; use "
            "fewer buckets or longer ticks"
        )
    return np.zeros((ticks.size, buckets))


def learn(histograms: Floats, windows: ArrayLike, ts: ArrayLike) -> None:
    """Add outputs to histograms: 1 in the bucket of A_i = T(t^(i)) - T(t^(0)) of every i > 0.

    Parameters
    ----------
    histograms : (m, buckets) float64
        Changed in place.
    windows : (m,) int64
        W_i, in ticks.
    ts : (outputs, m) int64
        T(t^(i)), in ticks.

    Examples
    --------
    >>> seen = empty_histograms([10, 10], 4)
    >>> learn(seen, [10, 10], [[100, 100], [100, 93], [100, 110], [104, 103]])
    >>> seen.tolist()
    [[0.0, 0.0, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
    """
    times = np.asarray(ts, np.int64)
    _learn(histograms, np.asarray(windows, np.int64), times - times[:, :1])


def scores(
    histograms: Floats, windows: ArrayLike, b: float, orders: Sequence[Sequence[int]]
) -> list[list[Floats]]:
    """Return the scores p_ij of the logical basic windows, by equations 1 and 2 (P4 5.2.2).

    Equation 1, of direction 0: the k-th window of stream l has the mass L_l([-b k, -b (k-1)]).
    Equation 2, of direction i > 0: the sum over the buckets v of L_l, in their order from 0.0, of
    ``L_l[v] * L_i([b (k-1) + x, b k + x])``, x the middle of bucket v, ``(v + 0.5) * width - W_l``
    (buckets of frequency 0 are left out); with l = 0, whose lag is always 0, L_i([b (k-1), b k]).
    Edges are ``b * k + x``. A hop whose scores add up to 0, in their order, has the score 1.0
    everywhere: nothing is known of it.

    Parameters
    ----------
    histograms : (m, buckets) float64
    windows : (m,) int64
        W_i, in ticks.
    b : float
        Basic window, in ticks.
    orders : m sequences of m - 1 ints
        r_ij, from 0.

    Returns
    -------
    m lists of m - 1 arrays (n,) float64
        As `JoinProfile` takes them; n = max(1, ceil(W_l / b)). O(m^2 n buckets).

    Examples
    --------
    All outputs have stream 1 lag 7 ticks behind stream 0:

    >>> seen = empty_histograms([10, 10], 10)
    >>> learn(seen, [10, 10], [[100, 107]] * 3)
    >>> [hop.tolist() for direction in scores(seen, [10, 10], 2, ((1,), (0,))) for hop in direction]
    [[1.0, 1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 3.0, 0.0]]
    """
    ticks = np.asarray(windows, np.float64)
    basic = [max(1, math.ceil(window / b)) for window in ticks.tolist()]
    m = ticks.size
    found = np.zeros((m, m - 1, max(basic)))
    _scores(histograms, ticks, float(b), np.asarray(orders, np.int64), found)
    return [
        [found[i, j, : basic[stream]] for j, stream in enumerate(order)]
        for i, order in enumerate(orders)
    ]
