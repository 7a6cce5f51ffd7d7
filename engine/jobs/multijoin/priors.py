"""What profiles say of the streams of a multi-way join."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from engine.models.profile.model import ArrivalProfile
from engine.multiway.harvest.prior import PairPrior
from engine.multiway.streams import Windows
from engine.runtime.errors import SpecError
from engine.runtime.streams import SIDES


def priors_of(
    profiles: Sequence[tuple[str, str, Path]], names: Sequence[str], windows: Windows, unit: str
) -> tuple[PairPrior, ...]:
    """Return what files of profiles say.

    Parameters
    ----------
    profiles : sequence of (str, str, Path)
        Names of the streams that were left and right, and the file.
    names : sequence of str
        Of all streams.
    windows : Windows
    unit : str
        What a tick is.

    Raises
    ------
    SpecError
        If a file is no profile, or its ticks or windows are not those of the join.
    """
    found: list[PairPrior] = []
    for left, right, path in profiles:
        profile = ArrivalProfile.load(path)
        if profile.unit != unit:
            raise SpecError(
                f"profile {path} counts in ticks of {profile.unit}, the join in ticks of {unit}: "
                "profile the same columns of time"
            )
        pair = names.index(left), names.index(right)
        for stream, side, size in zip(pair, SIDES, profile.windows, strict=True):
            if size < windows.size[stream]:
                raise SpecError(
                    f"profile {path} has a window of {size} ticks on the {side}, stream "
                    f"{names[stream]} one of {windows.size[stream]}: profile windows as long"
                )
        if any({*pair} == {*own[:2]} for own in found):
            raise SpecError(f"there are two profiles of streams {left} and {right}: give one")
        found.append(
            PairPrior(
                *pair,
                (profile.rate(0), profile.rate(1)),
                profile.ticks,
                float(profile.exact["selectivity"]),
                *profile.correlation,
            )
        )
    return tuple(found)
