"""AGE: the fastest rate at which a tuple of this age can still produce (P5 3.2).

The age curve has n buckets over the window W. A tuple of age a is in bucket ``(a*n)//W`` and its
priority is the greatest slope of the cumulative curve from there to any later bucket edge.
"""

from __future__ import annotations

import math

import numpy as np

from engine.policies.base import Parameter, Policy, Structure, ValueKind
from engine.runtime.jit import Floats

FINE = 500
"""Buckets that measured curves are cut into, about."""
_MOST_BITS = 1000
"""After the binary point."""


def most_buckets(window: int) -> int:
    """Return into how many age buckets a window W may be cut, for int64 to count them times W.

    Examples
    --------
    Windows of ten years, in seconds and in nanoseconds:

    >>> most_buckets(315_360_000), most_buckets(315_360_000_000_000_000)
    (29247120775, 29)
    """
    return int(np.iinfo(np.int64).max) // (window + 1)


def priorities(curve: Floats) -> Floats:
    """Return the priority of each age bucket.

    Parameters
    ----------
    curve : (n,) float64
        Expected matches a tuple makes in each bucket of its age.

    Returns
    -------
    (n + 1,) float64
        ``T[i] = max over j > i of (C[j] - C[i]) / (j - i)``; ``T[n] = 0``.

    Examples
    --------
    P5's example 3.3:

    >>> priorities(np.array([1.0, 1.0, 2.0, 1.0])).round(3).tolist()
    [1.333, 1.5, 2.0, 1.0, 0.0]
    """
    n = curve.size
    cumulative = np.zeros(n + 1)
    for k in range(n):
        cumulative[k + 1] = cumulative[k] + curve[k]
    table = np.zeros(n + 1)
    for i in range(n):
        slopes = (cumulative[i + 1 :] - cumulative[i]) / np.arange(1, n - i + 1)
        table[i] = slopes.max()
    return table


def refined(curve: tuple[float, ...], window: int, grain: int | None = None) -> tuple[float, ...]:
    """Return a curve whose buckets are cut evenly, so that ages within one bucket differ.

    All tuples of one bucket rank alike and the oldest is dropped first, which costs AGE what
    equation 3 promises at memories below a bucket's. On fine buckets it is reached.

    Parameters
    ----------
    curve : (n,) float
        Expected matches in each bucket of age.
    window : int
        W in ticks: with more buckets than that some would have no age.
    grain : int, optional
        Buckets that each bucket is cut into; by default as many as leave `FINE` or fewer in all.
        Fewer where `most_buckets` says so.

    Returns
    -------
    (n * grain,) float
        Each the matches of its bucket, so that the priorities of both sides compare: multiples of a
        power of two, fewer than 2**52 in sum, so that those that are equal are equal in float64 as
        well. As it is where the grain is 1 or the sum infinite.

    Examples
    --------
    >>> refined((1.0, 3.0), 4, 2)
    (1.0, 1.0, 3.0, 3.0)
    """
    if grain is None:
        grain = min(FINE, window) // len(curve)
    grain = max(1, min(grain, most_buckets(window) // len(curve)))
    total = sum(curve) * grain
    if grain == 1 or not 0 < total < float("inf"):
        return curve
    unit = 2.0 ** min(_MOST_BITS, 51 - math.frexp(total)[1])
    return tuple(round(expected * unit) / unit for expected in curve for _ in range(grain))


def as_arrays(
    curves: tuple[tuple[float, ...] | None, tuple[float, ...] | None],
) -> tuple[Floats | None, Floats | None]:
    """Return the curves of both sides, as tasks carry them, as arrays."""
    left, right = (None if curve is None else np.array(curve) for curve in curves)
    return left, right


POLICY = Policy(
    name="age",
    order=90,
    source="P5 3.2",
    summary="the best rate still ahead of a tuple's age",
    structure=Structure.AGED,
    estimates=False,
    value_kind=ValueKind.AGE,
    parameters=(
        Parameter(
            "curve",
            "expected matches in each age bucket, both sides; default measured from the archive",
            kind="curve",
            aliases=("age_curve",),
        ),
        Parameter("curve_left", "the same for the left side alone", kind="curve"),
        Parameter("curve_right", "the same for the right side alone", kind="curve"),
        Parameter("buckets", "age buckets of a measured curve", default=20.0, least=1.0),
        Parameter(
            "grain",
            "buckets that each bucket of a curve is cut into; default 1 for a given curve, else as "
            f"many as make about {FINE}, at most one a tick",
            least=1.0,
        ),
    ),
)
