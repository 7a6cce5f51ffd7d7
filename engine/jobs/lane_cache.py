"""What lanes are found to hold, kept beside their files: the next job on them need not look again.

Lanes do not change once they are prepared, so what one pass over them tells depends on winnow's
source and on what is asked alone; files are named after both. Where they cannot be written, the
pass is made again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from engine.jobs.lane_stats import Look, LookTask, Windows, look_at_lane
from engine.lanes.lane import LaneFiles
from engine.lanes.profile import LaneProfile, SideProfile
from engine.policies import ValueKind
from engine.runtime.disk import whole_file
from engine.runtime.executors import Executor
from engine.runtime.jit import source_digest
from engine.runtime.stages import Stages
from engine.value_model.summary import LaneSummary, SideSummary

T = TypeVar("T")
STAGE = "profile"


class Looks(NamedTuple):
    """What lanes hold, in their order.

    Attributes
    ----------
    profiles : dict of Windows to list of LaneProfile
    worths : list of dict of ValueKind to LaneSummary
    """

    profiles: dict[Windows, list[LaneProfile]]
    worths: list[dict[ValueKind, LaneSummary]]


def looked_at(
    files: Sequence[LaneFiles],
    executor: Executor,
    stages: Stages,
    *,
    windows: Iterable[Windows] = (),
    kinds: Iterable[ValueKind] = (),
) -> Looks:
    """Return what lanes hold, by one look at those of which not all is known.

    Parameters
    ----------
    files : sequence of LaneFiles
    executor : Executor
    stages : Stages
    windows : iterable of (int, int)
        Within which they are to be profiled.
    kinds : iterable of ValueKind
        By which their tuples are to be told apart. Where facts join, by none: equal keys then say
        nothing.
    """
    pairs = list(dict.fromkeys(windows))
    asked = () if any(one.facts is not None for one in files) else tuple(kinds)
    known = [_kept(one, pairs, asked) for one in files]
    tasks = {i: task for i, one in enumerate(files) if (task := _rest(one, known[i], pairs, asked))}
    fresh = stages.mapped(executor, STAGE, look_at_lane, list(tasks.values()))
    for i, look in zip(tasks, fresh, strict=True):
        known[i] = Look(known[i].profiles | look.profiles, look.worths or known[i].worths)
        _keep(files[i], look, asked)
    profiles = {pair: [one.profiles[pair] for one in known] for pair in pairs}
    return Looks(profiles, [one.worths for one in known])


def profiled(
    files: Sequence[LaneFiles], windows: Windows, executor: Executor, stages: Stages
) -> list[LaneProfile]:
    """Return the lanes' profiles, as `looked_at` does."""
    return looked_at(files, executor, stages, windows=[windows]).profiles[windows]


def _profile_place(files: LaneFiles, windows: Windows) -> Path:
    return files.folder / "profile-{}-{}-{}.json".format(*windows, source_digest())


def _worth_place(files: LaneFiles, kinds: Sequence[ValueKind]) -> Path:
    return files.folder / f"{'-'.join(['worth', *kinds])}-{source_digest()}.json"


def _kept(files: LaneFiles, pairs: Sequence[Windows], kinds: Sequence[ValueKind]) -> Look:
    """Return what is kept of a lane."""
    found = {pair: _read(_profile_place(files, pair), _profile_of) for pair in pairs}
    worths = _read(_worth_place(files, kinds), _worths_of) if kinds else None
    profiles = {pair: profile for pair, profile in found.items() if profile is not None}
    return Look(profiles, worths or {})


def _rest(
    files: LaneFiles, known: Look, pairs: Sequence[Windows], kinds: Sequence[ValueKind]
) -> LookTask | None:
    """Return the task that finds what is not known of a lane, None where all is."""
    windows = tuple(pair for pair in pairs if pair not in known.profiles)
    kinds = () if known.worths else tuple(kinds)
    return LookTask(files, windows, kinds) if windows or kinds else None


def _keep(files: LaneFiles, look: Look, kinds: Sequence[ValueKind]) -> None:
    for pair, profile in look.profiles.items():
        _write(_profile_place(files, pair), profile)
    if look.worths:
        _write(_worth_place(files, kinds), _written_worths(look.worths))


def _read(place: Path, read: Callable[[Any], T]) -> T | None:
    try:
        return read(json.loads(place.read_text()))
    except (OSError, ValueError, TypeError):  # not there, or not whole on a disk that failed
        return None


def _write(place: Path, content: Any) -> None:  # noqa: ANN401 - whatever JSON holds
    with suppress(OSError), whole_file(place, place.parent) as own:
        own.write_text(json.dumps(content))


def _profile_of(content: Sequence[Sequence[Any]]) -> LaneProfile:
    left, right = content
    return LaneProfile(SideProfile(*left), SideProfile(*right))


def _written_worths(worths: dict[ValueKind, LaneSummary]) -> dict[str, Any]:
    return {
        kind: [[array.tolist() for array in side] for side in sides]
        for kind, sides in worths.items()
    }


def _worths_of(content: dict[str, Any]) -> dict[ValueKind, LaneSummary]:
    found = {}
    for kind, sides in content.items():
        left, right = (SideSummary(*(np.array(array, float) for array in side)) for side in sides)
        found[ValueKind(kind)] = left, right
    return found
