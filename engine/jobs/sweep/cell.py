"""One cell of a sweep on one lane, and what it came to: what a device is given and returns."""

from __future__ import annotations

from typing import NamedTuple

from engine.lanes.profile import LaneProfile
from engine.replay.settings import ReplaySettings
from engine.sampling.sizes import Sampling

Curve = tuple[float, ...] | None


class Cell(NamedTuple):
    """A replay of one lane: all that tells it from the others.

    Attributes
    ----------
    number : int
        The cell's place in the grid, the same on every lane.
    settings : ReplaySettings
        Windows, policy, estimator, probe, combine, first tick that counts, seed.
    budget : tuple of int
        K of left and right on this lane.
    profile : LaneProfile
        Of the lane, for the cell's windows.
    curves : tuple of tuple of float or None
        AGE's curves of left and right.
    sampling : Sampling or None
        Of a sampling policy.
    """

    number: int
    settings: ReplaySettings
    budget: tuple[int, int]
    profile: LaneProfile
    curves: tuple[Curve, Curve] = (None, None)
    sampling: Sampling | None = None

    @property
    def windows(self) -> tuple[int, int]:
        """W of left and right, in ticks."""
        return self.settings.window_left, self.settings.window_right


class CellResult(NamedTuple):
    """What a cell came to on one lane.

    Attributes
    ----------
    cell : int
        The cell's number.
    outputs : int
    importance : float
        Of the outputs, their compensated sum.
    peaks : tuple of int
        Most tuples held at once, left and right.
    seconds : float
        Spent in the cell's own replay, without reading and without the other cells.
    """

    cell: int
    outputs: int
    importance: float
    peaks: tuple[int, int]
    seconds: float
