"""What lanes are found to hold, kept beside their files: the next job on them need not look again.

Lanes do not change once they are prepared, so what one pass over them tells depends on winnow's
source and on what is asked alone; files are named after both. Where they cannot be written, the
pass is made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from engine.disk import whole_file
from engine.executors import Executor
from engine.jit import source_digest
from engine.job.lane_task import LaneFiles, ProfileTask, profile_lane
from engine.job.stages import Stages
from engine.job.worth_task import WorthTask, file_worths
from engine.models.worth import LaneWorth, SideWorth
from engine.policies import Worth
from engine.replay.settings import LaneProfile, SideProfile


class _OfLane(Protocol):
    @property
    def files(self) -> LaneFiles: ...


Task = TypeVar("Task", bound=_OfLane)
Found = TypeVar("Found")


def profiled(tasks: Sequence[ProfileTask], executor: Executor, stages: Stages) -> list[LaneProfile]:
    """Return what `profile_lane` says of each task; it runs for lanes not profiled before."""
    return _each(_PROFILES, tasks, executor, stages)


def summarised(
    files: Sequence[LaneFiles], kinds: Sequence[Worth], executor: Executor, stages: Stages
) -> list[dict[Worth, LaneWorth]]:
    """Return what the tuples of each lane are worth, by one pass over those not summarised before.

    There is none where no kind is asked for, nor where facts join: equal keys then say nothing.
    """
    if not kinds or any(one.facts is not None for one in files):
        return [{} for _ in files]
    return _each(_WORTHS, [WorthTask(one, tuple(kinds)) for one in files], executor, stages)


class _Pass(NamedTuple):
    """A pass over a lane: its stage, its task and how its result is written and read."""

    stage: str
    function: Callable[[Any], Any]
    name: Callable[[Any], str]
    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


def _each(one: _Pass, tasks: Sequence[Any], executor: Executor, stages: Stages) -> list[Any]:
    places = [task.files.folder / f"{one.name(task)}-{source_digest()}.json" for task in tasks]
    found = [_read(place, one.read) for place in places]
    missing = [i for i, known in enumerate(found) if known is None]
    fresh = stages.mapped(executor, one.stage, one.function, [tasks[i] for i in missing])
    for i, result in zip(missing, fresh, strict=True):
        found[i] = result
        _write(places[i], one.write(result))
    return found


def _read(place: Path, read: Callable[[Any], Any]) -> Any | None:  # noqa: ANN401 - as it is
    try:
        return read(json.loads(place.read_text()))
    except (OSError, ValueError, TypeError):  # not there, or not whole on a disk that failed
        return None


def _write(place: Path, content: Any) -> None:  # noqa: ANN401 - as `_Pass.write` gives it
    with suppress(OSError), whole_file(place, place.parent) as own:
        own.write_text(json.dumps(content))


def _profile_of(content: Sequence[Sequence[Any]]) -> LaneProfile:
    left, right = content
    return LaneProfile(SideProfile(*left), SideProfile(*right))


def _written_worths(worths: dict[Worth, LaneWorth]) -> dict[str, Any]:
    return {
        kind: [[array.tolist() for array in side] for side in sides]
        for kind, sides in worths.items()
    }


def _worths_of(content: dict[str, Any]) -> dict[Worth, LaneWorth]:
    found = {}
    for kind, sides in content.items():
        left, right = (SideWorth(*(np.array(array, float) for array in side)) for side in sides)
        found[Worth(kind)] = left, right
    return found


_PROFILES = _Pass(
    "profile",
    profile_lane,
    lambda task: "profile-{}-{}".format(*task.windows),
    list,
    _profile_of,
)
_WORTHS = _Pass(
    "worth",
    file_worths,
    lambda task: "-".join(["worth", *task.kinds]),
    _written_worths,
    _worths_of,
)
