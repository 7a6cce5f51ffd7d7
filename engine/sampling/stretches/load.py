"""How much of what is unexpired a memory holds, in slices of time.

Where loads change with the hour, a memory that holds a small part of a busy hour's tuples holds all
of a quiet one's. Quiet slices have few pairs, so a sample may have none, and would look precise:
their recall is unlike that of all others. So slices are drawn more often the more so they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches.density import Spread
from engine.sampling.stretches.meeting import in_parts

SHARE = 0.2
"""Of a slice's size, what goes by how unlike its load is."""
_LEAST = 0.005
"""Mean distance of recalls that is told, at least."""


class Held(NamedTuple):
    """A memory, and what of both streams it may hold."""

    windows: tuple[int, int]
    """Of both streams, in ticks."""
    budget: tuple[int, int]
    """Tuples of left and right."""
    pooled: bool
    """Whether one memory of both budgets is for both."""


def unevenness(edges: Ints, spreads: Sequence[Spread], memories: Iterable[Held]) -> Floats | None:
    """Return how far from that of all the part of its pairs is that memories would hold by chance.

    Parameters
    ----------
    edges : (slices + 1,) int64
    spreads : sequence of Spread
        Of both streams.
    memories : iterable of Held

    Returns
    -------
    (slices,) float64 or None
        By the memory that it is farthest in, in parts of the mean; None if all are about alike.
    """
    asked: dict[tuple[int, int], set[tuple[tuple[int, int], bool]]] = {}
    for windows, budget, pooled in memories:
        asked.setdefault(windows, set()).add((budget, pooled))
    far, pairs = np.zeros(edges.size - 1), np.zeros(edges.size - 1)
    for windows, limits in asked.items():
        _, arrived, held = in_parts(edges, spreads, windows)
        met = arrived[0] * held[1], arrived[1] * held[0]
        own = np.sum(met, axis=0).sum(axis=1)
        pairs += own
        for budget, pooled in limits:
            parts = _parts(held, budget, pooled=pooled)
            kept = (met[0] * parts[1] + met[1] * parts[0]).sum(axis=1)
            np.maximum(far, _far(kept, own), out=far)
    mean = float((far * pairs).sum()) / max(float(pairs.sum()), 1.0)
    return far / mean if mean >= _LEAST else None


def _parts(held: Sequence[Floats], budget: tuple[int, int], *, pooled: bool) -> list[Floats]:
    """Return the part of what is unexpired that memories have room for, by stream."""
    if pooled:
        return [np.minimum(1.0, sum(budget) / np.maximum(held[0] + held[1], 1.0))] * 2
    limits = zip(budget, held, strict=True)
    return [np.minimum(1.0, limit / np.maximum(own, 1.0)) for limit, own in limits]


def _far(kept: Floats, pairs: Floats) -> Floats:
    """Return how far the kept part of pairs is from that of all slices together."""
    total = float(pairs.sum())
    if not total:
        return np.zeros_like(pairs)
    own = np.divide(kept, pairs, out=np.zeros_like(pairs), where=pairs > 0)
    found: Floats = np.where(pairs > 0, np.abs(own - kept.sum() / total), 0.0)
    return found
