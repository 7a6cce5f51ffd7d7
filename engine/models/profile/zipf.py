"""How skewed the keys of a stream are: Zipf's exponent, and the share of the most frequent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.runtime.scipy_late import least_at

_MOST = 20.0


def zipf_exponent(counts: NDArray[np.int64]) -> float | None:
    """Return the most likely s of tuples drawn by ``rank ** -s``, ranks by their own counts.

    Parameters
    ----------
    counts : (n,) int64
        Tuples of each key; those of 0 have no rank.

    Returns
    -------
    float or None
        From 0 to 20; None with fewer than two keys. O(n) a step of a bounded search.

    Examples
    --------
    >>> zipf_exponent(np.array([60, 30, 20, 15, 12]))
    1.0
    >>> zipf_exponent(np.array([4, 4])), zipf_exponent(np.array([9])) is None
    (0.0, True)
    """
    ranked = np.sort(counts[counts > 0])[::-1].astype(np.float64)
    if ranked.size < 2:
        return None
    logs = np.log(np.arange(1.0, ranked.size + 1))
    mean = float(ranked @ logs / ranked.sum())

    def loss(s: float) -> float:
        return s * mean + float(np.log(np.exp(-s * logs).sum()))

    return round(least_at(loss, (0.0, _MOST), tolerance=1e-8), 6)


def top_share(counts: NDArray[np.int64], rows: int, distinct: int) -> dict[str, float]:
    """Return the part of `rows` that the most frequent key, ten keys and 1 % of the keys have.

    Examples
    --------
    >>> top_share(np.array([50, 30, 20]), 100, 3)
    {'1': 0.5, '10': 1.0, '1%': 0.5}
    """
    ranked = np.sort(counts)[::-1]
    tops = {"1": 1, "10": 10, "1%": max(1, -(-distinct // 100))}
    return {name: float(ranked[:top].sum() / max(1, rows)) for name, top in tops.items()}
