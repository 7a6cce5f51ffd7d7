"""What a sampler is told of another time's archive, and the age curves of this one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.jobs.replay.lane_task import ReplayTask, curves_measured, replay_lane
from engine.lanes.lane import LaneFiles
from engine.lanes.manifest import Prepared
from engine.lanes.profile import LaneProfile
from engine.models.profile.model import ArrivalProfile
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor
from engine.runtime.stages import Stages
from engine.sampling.model import Known

BUCKETS = 100
"""Of an age curve that is measured."""


def known_of(path: Path, prepared: Prepared) -> tuple[ArrivalProfile, Known]:
    """Read a profile for the keys of these streams.

    Raises
    ------
    SpecError
        If it is none, or of streams whose keys or ticks are others.
    """
    profile = ArrivalProfile.load(path)
    own = profile.frequencies
    if profile.unit != prepared.unit:
        raise SpecError(
            f"profile {path} has ticks of {profile.unit}, and these streams of {prepared.unit}: "
            "give the profile of streams with the same type of time"
        )
    if (own.seed, own.keys) != (prepared.seed, prepared.keys):
        raise SpecError(
            f"profile {path} is of join attributes of type {', '.join(own.keys)}, and these are of "
            f"{', '.join(prepared.keys)}, or coded otherwise: profile streams like these"
        )
    if not profile.ticks:
        raise SpecError(f"profile {path} is of streams without rows: it tells nothing")
    keys = max(1.0, float(own.rest.get("keys", 0)))
    rest = float(own.rest.get("left", 0)) / keys, float(own.rest.get("right", 0)) / keys
    return profile, Known(own.counts, rest, profile.ticks)


def profile_curves(
    profile: ArrivalProfile, windows: tuple[int, int], path: Path
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the age curves of a profile.

    Raises
    ------
    SpecError
        If they are of other windows.
    """
    if profile.windows != windows:
        raise SpecError(
            f"profile {path} has age curves over windows of {profile.windows[0]} and "
            f"{profile.windows[1]} ticks, and this join {windows[0]} and {windows[1]}: profile the "
            "streams with these windows"
        )
    return profile.curve(0), profile.curve(1)


def measured_curves(
    files: list[LaneFiles],
    profiles: list[LaneProfile],
    windows: tuple[int, int],
    prepared: Prepared,
    executor: Executor,
    stages: Stages,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the age curves of these streams themselves, by a pass over the archive (P5 6.1)."""
    settings = ReplaySettings(*windows)
    tasks = [
        ReplayTask(one, settings, profile, (UNLIMITED, UNLIMITED), age_buckets=BUCKETS)
        for one, profile in zip(files, profiles, strict=True)
    ]
    found = stages.mapped(executor, "age curves", replay_lane, tasks)
    left, right = curves_measured((None, None), found, prepared)
    return np.array(left), np.array(right)
