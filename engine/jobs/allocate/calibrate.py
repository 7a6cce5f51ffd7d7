"""What replays tell of a predicted curve: the curve scaled until it goes through them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jobs.allocate.recall import RecallModel

_POINTS = 400
"""Of a curve, besides the model's own and the replays."""


class CalibratedCurve(NamedTuple):
    """Recall by memory, as replays have it where there are any.

    Attributes
    ----------
    memory : (n,) float64
        Tuples of both sides, increasing from 0 to the peak.
    recall : (n,) float64
        Non-decreasing; linear in between.
    """

    memory: NDArray[np.float64]
    recall: NDArray[np.float64]

    def at(self, memory: float) -> float:
        """Return the recall to expect of so many tuples."""
        return float(np.interp(memory, self.memory, self.recall))

    def memory_for(self, recall: float) -> float:
        """Return the least memory whose expected recall is `recall`; the peak if none is."""
        place = int(np.searchsorted(self.recall, recall))
        if place == 0:
            return 0.0
        if place == self.recall.size:
            return float(self.memory[-1])
        around = slice(place - 1, place + 1)
        return float(np.interp(recall, self.recall[around], self.memory[around]))


def calibrated(model: RecallModel, replays: Mapping[int, float]) -> CalibratedCurve:
    """Return a model's curve times measured / predicted recall, which is known at the replays.

    Parameters
    ----------
    model : RecallModel
    replays : mapping
        Recall by memory, of replays with the model's split of it.

    Notes
    -----
    The factor is linear between the replays. Below them it is that of the least, above them it
    goes to 1 at the peak, which is exact whatever the model says. More memory never tells less:
    the curve stays where the product would fall.

    Examples
    --------
    A key of 100 live tuples was to give all outputs, and half of its memory gave 0.4 of them:

    >>> from engine.models.rate_curve import from_pieces
    >>> side, none = (from_pieces(np.array([n]), np.array([1.0])) for n in (100.0, 0.0))
    >>> model = RecallModel("frequency", (side, none), side, 0.0, (100, 0))
    >>> curve = calibrated(model, {50: 0.4})
    >>> [round(curve.at(memory), 9) for memory in (0, 25, 50, 75, 100)]
    [0.0, 0.2, 0.4, 0.675, 1.0]
    >>> round(curve.memory_for(0.4), 9)
    50.0
    """
    peak = sum(model.peaks)
    wanted = np.array(sorted(replays), np.float64)
    grid = np.unique(np.concatenate([model.both.memory, wanted, np.linspace(0, peak, _POINTS + 1)]))
    predicted = _predicted(model, grid)
    factors = {
        memory: replays[memory] / value
        for memory, value in zip(sorted(replays), _predicted(model, wanted), strict=True)
        if value > 0
    } | {peak: 1.0}
    at = np.array(sorted(factors), np.float64)
    factor = np.interp(grid, at, np.array([factors[memory] for memory in sorted(factors)]))
    return CalibratedCurve(grid, np.maximum.accumulate(np.minimum(1.0, predicted * factor)))


def _predicted(model: RecallModel, memory: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the recall that a model expects of its best splits of memories."""
    if not model.exact:
        return np.ones(memory.size)
    rates = np.interp(memory, model.both.memory, model.both.rate)
    found: NDArray[np.float64] = (rates + model.free) / model.exact
    return found
