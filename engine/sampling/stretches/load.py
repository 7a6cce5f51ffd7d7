"""How much of what is unexpired a memory holds, in slices of time.

Where loads change with the hour, a memory that holds a small part of a busy hour's tuples holds all
of a quiet one's. Quiet slices have few pairs, so a sample may have none, and would look precise:
their recall is unlike that of all others. So slices are drawn more often the more so they are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches.density import Spread
from engine.sampling.stretches.measures import in_parts

SHARE = 0.2
"""Of a slice's size, what goes by how unlike its load is."""
_LEAST = 0.005
"""Mean distance of recalls that is told, at least."""


def unevenness(
    edges: Ints,
    spreads: Sequence[Spread],
    windows: Sequence[int],
    budgets: tuple[int, int],
    *,
    pooled: bool,
) -> Floats | None:
    """Return how far from that of all the part of its pairs is that a memory would hold by chance.

    Parameters
    ----------
    edges : (slices + 1,) int64
    spreads, windows : sequence of Spread, of int
        Of both streams; windows in ticks.
    budgets : (int, int)
        Tuples that their memories hold.
    pooled : bool
        Whether one memory of both budgets is for both.

    Returns
    -------
    (slices,) float64 or None
        In their mean; None if they are about alike.
    """
    _, (left, right), held = in_parts(edges, spreads, windows)
    limits = np.array(budgets, np.float64)
    if pooled:
        parts = [np.minimum(1.0, limits.sum() / np.maximum(held[0] + held[1], 1.0))] * 2
    else:
        parts = [
            np.minimum(1.0, limit / np.maximum(own, 1.0))
            for limit, own in zip(limits, held, strict=True)
        ]
    pairs = (left * held[1] + right * held[0]).sum(axis=1)
    kept = (left * held[1] * parts[1] + right * held[0] * parts[0]).sum(axis=1)
    total = float(pairs.sum())
    if not total:
        return None
    own = np.divide(kept, pairs, out=np.zeros_like(pairs), where=pairs > 0)
    far = np.where(pairs > 0, np.abs(own - kept.sum() / total), 0.0)
    mean = float((far * pairs).sum()) / total
    return far / mean if mean >= _LEAST else None
