"""How much slices differ within windows of time, by those of all windows together.

A window with few slices does not show how much they differ. What slices of all windows come to over
their sizes, less the mean of their own window and relative to its outputs, does, if windows are
alike in that. Where those of a window differ more, `interval.answer` takes the mean of both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.sampling.stretches.interval import (
    DOMINANT,
    FEWEST,
    SOME,
    Cell,
    Pooled,
    residuals,
    sign_of,
)


def pooled(cells: Sequence[Cell], *, average: bool = False, overlap: int = 1) -> Pooled | None:
    """Return how much slices differ within windows; None if too few, or one of them, tell it.

    Parameters
    ----------
    cells : sequence of Cell
        Of the same group in each window.
    average : bool
        Whether averages are meant, not totals.
    overlap : int
        Windows that a slice is in: it tells as much as one in a single window.

    Examples
    --------
    >>> values = np.array([[8.0, 8.0], [12.0, 12.0]])
    >>> cell = Cell(np.zeros(2), values, np.ones(2), np.full(2, 0.1), 20.0)
    >>> found = pooled([cell] * 6)
    >>> round(found.variance, 3), found.free
    (0.08, 6.0)
    """
    both = [(own, residuals(own, average=average)) for own in cells if own.sizes.size > 1]
    both = [(cell, own) for cell, own in both if own.seen]
    told = [own for _, own in both]
    slices = sum(own.part.size for own in told)
    some = sum(int((own.values[:, 1] != 0).sum()) for own, _ in both)
    if slices < FEWEST * overlap or some < SOME * overlap:
        return None
    free = np.array([min(own.part.size - 1, 2 * own.part.size / 3) for own in told])
    variances = np.array([own.squares.mean() / own.outputs**2 for own in told])
    apart = np.concatenate([
        (own.part - own.part.mean()) / own.outputs * np.sqrt(own.part.size / (own.part.size - 1))
        for own in told
    ])  # fmt: skip
    squares = apart**2
    total = float(squares.sum())
    if squares.max() > DOMINANT * total:
        return None
    kurtosis = squares.size * float((squares**2).sum()) / total**2 if total else 3.0
    all_free = float(free.sum())
    sizes = np.array([cell.own_sizes.mean() for cell, _ in both])
    variance, by_size = (
        float((free * own).sum()) / all_free for own in (variances, variances * sizes)
    )
    return Pooled(variance, 3 * all_free / overlap / max(3.0, kurtosis), by_size, sign_of(cells))
