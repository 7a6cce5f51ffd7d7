"""A profile of another time as a job uses it: AGE's curves and the frequencies of keys."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.jobs.age_curves import Curves
from engine.lanes.manifest import Prepared
from engine.models.frequency import FrequencyModel, model_of
from engine.models.profile.model import ArrivalProfile
from engine.replay.settings import ReplaySettings
from engine.runtime.errors import SpecError
from engine.runtime.streams import SIDES


class PriorProfile:
    """A profile of another time, as a replay uses it.

    Raises
    ------
    SpecError
        If it is of streams without rows, its ticks are not the replay's, or it has not seen
        windows as long, or only ones so long that all of the replay's is in one bucket of age.
    """

    def __init__(
        self, profile: ArrivalProfile, prepared: Prepared, settings: ReplaySettings
    ) -> None:
        self._profile, self._groups = profile, prepared.groups
        self._windows = settings.windows
        if not profile.ticks:
            raise SpecError("--profile is of streams without rows: it tells nothing")
        if profile.unit != prepared.unit:
            raise SpecError(
                f"--profile has times in {profile.unit}, and these archives in {prepared.unit}: "
                "make a profile of archives such as these"
            )
        for number, (own, seen) in enumerate(zip(self._windows, profile.windows, strict=True)):
            side = SIDES[number]
            if own > seen:
                raise SpecError(
                    f"--profile was made with a window of {seen} ticks of stream {side}, and "
                    f"{own} are asked for: make one with a window as long"
                )
            buckets = profile.curve(number).size
            if buckets > 1 and 0 < own < seen // buckets:
                raise SpecError(
                    f"--profile has age buckets of {seen // buckets} ticks of stream {side}, and "
                    f"the window is {own}: make one with that window"
                )

    def curves(self, given: Curves) -> Curves:
        """Return AGE's curves, the profile's where none is given."""
        left, right = (
            curve if curve is not None else self._curve(side) for side, curve in enumerate(given)
        )
        return left, right

    def _curve(self, side: int) -> tuple[float, ...]:
        """Return the part of a curve that lies within the window asked for."""
        curve, own, seen = (
            self._profile.curve(side),
            self._windows[side],
            self._profile.windows[side],
        )
        if own == seen or not curve.size:
            return tuple(curve.tolist()) or (0.0,)
        return clipped(curve, own / seen)

    def frequencies(self) -> FrequencyModel:
        """Return the frequency model of the whole join.

        Raises
        ------
        SpecError
            If there are several joins, one for each value of the partition columns.
        """
        if self._groups > 1:
            raise SpecError(
                "--profile tells frequencies of one join, and --partition-by makes "
                f"{self._groups}: leave --profile out, or use policy age"
            )
        own = self._profile.frequencies
        rest = tuple(int(own.rest.get(name, 0)) for name in ("keys", *SIDES))
        ticks = float(max(1, self._profile.ticks))
        return model_of(own.counts, self._windows, ticks, (rest[0], rest[1], rest[2]))


def clipped(curve: NDArray[np.float64], share: float) -> tuple[float, ...]:
    """Return the first `share` of a curve, in buckets about as long as its own.

    Examples
    --------
    >>> clipped(np.array([1.0, 3.0, 5.0, 7.0]), 0.5), clipped(np.array([4.0, 4.0]), 0.75)
    ((1.0, 3.0), (3.0, 3.0))
    """
    edges = np.arange(curve.size + 1.0)
    total = np.concatenate([[0.0], np.cumsum(curve)])
    buckets = int(np.ceil(curve.size * share))
    at = np.linspace(0.0, curve.size * share, buckets + 1)
    return tuple(np.diff(np.interp(at, edges, total)).tolist())
