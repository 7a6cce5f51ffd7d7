"""What arrives in slices of time, and what it meets there."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches.density import Spread
from engine.sampling.stretches.slices import fractions

_PARTS = 8, 64
"""Parts of a slice in which the pairs that tuples make are added up: at least, and at most where
that takes half a window each."""


def in_parts(
    edges: Ints, spreads: Sequence[Spread], windows: Sequence[int]
) -> tuple[Ints, list[Floats], list[Floats]]:
    """Return parts of slices: borders, and by stream what arrives and what is unexpired in each.

    Returns
    -------
    (slices, parts + 1) int64, then by stream (slices, parts) float64 twice
    """
    begin, gap = edges[:-1, None], np.diff(edges)[:, None]
    parts = int(np.clip(2 * int(gap.max()) // (min(windows) + 1), *_PARTS))
    at = np.arange(parts + 1)
    borders = begin + fractions(gap, at, np.full_like(at, parts))
    own = [np.diff(spread.before(borders), axis=1) for spread in spreads]
    held = [unexpired(one, borders, window) for one, window in zip(spreads, windows, strict=True)]
    return borders, own, held


def unexpired(spread: Spread, borders: Ints, window: int) -> Floats:
    """Return what is within a window in the middle of parts of time: (slices, parts) float64."""
    middle = borders[:, :-1] + np.diff(borders, axis=1) // 2
    found: Floats = spread.before(middle + 1) - spread.before(middle - window)
    return found


def pairs_made(own: Sequence[Floats], held: Sequence[Floats]) -> Floats:
    """Return how many pairs arrivals make with what the other streams hold: (slices,) float64."""
    latest = [
        one * np.prod([other for j, other in enumerate(held) if j != i], axis=0)
        for i, one in enumerate(own)
    ]
    found: Floats = np.sum(latest, axis=0).sum(axis=1)
    return found


def least_part(edges: Ints, spreads: Sequence[Spread], windows: Sequence[int]) -> Floats:
    """Return the least part of any stream's tuples that outputs of a slice may have: (slices,)."""
    met = [
        spread.before(edges[1:]) - spread.before(edges[:-1] - window)
        for spread, window in zip(spreads, windows, strict=True)
    ]
    found: Floats = np.min([own / max(own.sum(), 1e-300) for own in met], axis=0)
    return found
