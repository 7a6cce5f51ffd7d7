"""Statistics of lanes: profiles and value summaries, found in one pass and cached beside the files.

Lanes do not change once they are prepared, so their statistics depend on winnow's source and on
what is asked alone; the cache's files are named after both. Where they cannot be written, the pass
is made again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.jobs.frame import JobLanes
from engine.lanes.joint import Peaks, Windows, joint_peaks, largest, peaks_tasks, until_of
from engine.lanes.profile import LaneProfile, SideProfile, SideProfiler
from engine.lanes.reader import LaneFiles, streamed
from engine.lanes.sealed import sealed, unsealed
from engine.lanes.stored import Stored
from engine.policies import ValueKind
from engine.runtime.compilation.source import source_digest
from engine.runtime.executors import Stages
from engine.runtime.storage.places import written
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.uris import Place
from engine.runtime.streams import SIDES
from engine.runtime.work import mapped
from engine.value_model.summary import LaneSummariser, LaneSummary, SideSummary

T = TypeVar("T")
HELD = 1 << 21
"""Tuples of a lane that are held, not read again."""
_Tuples = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


@dataclass(frozen=True)
class StatsTask:
    """A lane, the windows within which it is to be profiled, and the kinds of value summaries."""

    files: LaneFiles
    windows: tuple[Windows, ...] = ()
    kinds: tuple[ValueKind, ...] = ()
    live: tuple[Windows, ...] = ()
    """Within which the summaries count live tuples."""
    ticks: tuple[int, ...] = ()
    """At whose ends the unexpired tuples are counted."""
    threads: int = 1


class LaneStats(NamedTuple):
    """The statistics of a lane: profiles by windows, and value summaries by kind."""

    profiles: dict[Windows, LaneProfile]
    summaries: dict[ValueKind, LaneSummary]


class JobStats(NamedTuple):
    """The statistics of lanes, in their order."""

    profiles: dict[Windows, list[LaneProfile]]
    summaries: list[dict[ValueKind, LaneSummary]]
    peaks: dict[Windows, list[Peaks]]
    """By windows, the peaks of each group's lanes as one."""


def lane_stats(
    files: Sequence[LaneFiles],
    stages: Stages,
    *,
    windows: Iterable[Windows] = (),
    kinds: Iterable[ValueKind] = (),
    groups: Sequence[Sequence[int]] = (),
    ticks: Sequence[int] = (),
) -> JobStats:
    """Return the statistics of lanes, by a pass over those whose are not all in the cache.

    Parameters
    ----------
    windows : iterable of (int, int)
        Within which lanes are to be profiled.
    kinds : iterable of ValueKind
        Of the value summaries. Where facts join, there are none: equal keys then say nothing.
    groups : sequence of sequence of int
        The lanes of each join whose peaks are to be found.
    ticks : sequence of int
        At whose ends the unexpired tuples are counted; the same in all calls for these lanes.
    """
    pairs = list(dict.fromkeys(windows))
    asked = () if any(one.facts is not None for one in files) else tuple(kinds)
    known = [_cached(one, pairs, asked, len(ticks)) for one in files]
    rest = [_rest(one, own, pairs, asked) for one, own in zip(files, known, strict=True)]
    number = sum(task is not None for task in rest)
    threads = max(1, stages.executor.threads // max(1, number))
    tasks = {
        i: replace(task, ticks=tuple(ticks), threads=threads)
        for i, task in enumerate(rest)
        if task is not None
    }
    rows = [files[i].rows for i in tasks]
    fresh = stages.mapped("profile", stats_of_lane, list(tasks.values()), rows)
    for i, found in zip(tasks, fresh, strict=True):
        known[i] = LaneStats(
            known[i].profiles | found.profiles, found.summaries or known[i].summaries
        )
        _cache(files[i], found, pairs, asked)
    profiles = {pair: [one.profiles[pair] for one in known] for pair in pairs}
    joint = _joint([[files[i] for i in own] for own in groups], stages, pairs)
    peaks = {
        pair: [
            profiles[pair][own[0]].peaks if len(own) == 1 else found[pair]
            for own, found in zip(groups, joint, strict=True)
        ]
        for pair in pairs
    }
    return JobStats(profiles, [one.summaries for one in known], peaks)


def peaks_of(lanes: JobLanes, windows: Windows) -> Peaks:
    """Return the most unexpired tuples of both sides, hash lanes as one, groups added up."""
    stats = lane_stats(lanes.files, lanes.stages, windows=[windows], groups=lanes.groups)
    left, right = (sum(own[side] for own in stats.peaks[windows]) for side in (0, 1))
    return left, right


def _joint(
    groups: Sequence[Sequence[LaneFiles]], stages: Stages, pairs: Sequence[Windows]
) -> list[dict[Windows, Peaks]]:
    """Return the peaks of joins of several lanes by windows, which are kept with the first lane."""
    known: list[dict[Windows, Peaks]] = []
    for own in groups:
        kept = {pair: _read(_peaks_path(own[0], pair), _peaks_from) for pair in pairs}
        known.append({pair: peaks for pair, peaks in kept.items() if peaks is not None})
    tasks = {
        i: peaks_tasks(own, missing)
        for i, own in enumerate(groups)
        if len(own) > 1 and (missing := tuple(pair for pair in pairs if pair not in known[i]))
    }
    if not tasks:
        return known
    slices = [one for cut in tasks.values() for one in cut]
    fresh = iter(stages.mapped("peaks", joint_peaks, slices, [one.rows for one in slices]))
    for i, cut in tasks.items():
        found = largest(islice(fresh, len(cut)))
        known[i] |= found
        for pair, peaks in found.items():
            _write(_peaks_path(groups[i][0], pair), peaks)
    return known


def stats_of_lane(task: StatsTask) -> LaneStats:
    """Read a lane; for value summaries twice, where it is too long to be held meanwhile.

    Memory: the windows' times, a batch, and for summaries O(keys) and 20 bytes for each of `HELD`
    tuples at most.
    """
    streams = task.files.left, task.files.right
    index = None if task.files.facts is None else task.files.facts.index()
    columns = ["_ts", "_importance"]
    if task.kinds or index is not None:
        columns.append("_key")
    summariser = LaneSummariser(task.kinds, task.live)
    held = _Held()

    def one_pass(side: int) -> SideProfiler:
        until = None if index is None else until_of(index.sides[side])
        own = SideProfiler({pair[side] for pair in task.windows}, until, task.ticks)
        stored = streams[side]
        for batch in () if stored is None else streamed(stored, columns):
            own.add(batch)
            if task.kinds:
                held.add(
                    side, batch.ts, summariser.count(side, batch.ts, batch.key), batch.importance
                )
        return own

    # summaries number the keys of both sides as they find them
    passes = mapped(one_pass, range(len(SIDES)), 1 if task.kinds else task.threads)
    if task.kinds:
        for side, stored in enumerate(streams):
            for ts, ids, importance in _again(side, stored, summariser, held):
                summariser.weigh(side, ts, ids, importance)
    profiles = {
        pair: LaneProfile(*(passes[side].profile(pair[side]) for side in range(len(SIDES))))
        for pair in task.windows
    }
    return LaneStats(profiles, summariser.summary())


def profile_of(files: LaneFiles, windows: Windows) -> LaneProfile:
    """Return a lane's rows, peaks and mean importances, by a pass of its own."""
    return stats_of_lane(StatsTask(files, (windows,))).profiles[windows]


class _Held:
    """Tuples read once that are needed again, unless they are more than `HELD`."""

    def __init__(self) -> None:
        self.whole = True
        self.sides: tuple[list[_Tuples], list[_Tuples]] = ([], [])
        self._room = HELD

    def add(
        self,
        side: int,
        ts: NDArray[np.int64],
        ids: NDArray[np.int32],
        importance: NDArray[np.float64],
    ) -> None:
        """Hold some more."""
        self._room -= ids.size
        if self._room < 0:
            self.whole = False
            self.sides = ([], [])
        if self.whole:
            self.sides[side].append((ts, ids, importance))


def _again(
    side: int, stored: Stored | None, summariser: LaneSummariser, held: _Held
) -> Iterator[_Tuples]:
    """Yield a side's tuples again: their times, ids and importances."""
    if held.whole:
        yield from held.sides[side]
    elif stored is not None:
        for batch in streamed(stored, ["_ts", "_importance", "_key"]):
            yield batch.ts, summariser.ids(batch.key), batch.importance


def _peaks_path(files: LaneFiles, windows: Windows) -> Place:
    return files.folder / "peaks-{}-{}-{}.json".format(*windows, source_digest())


def _profile_path(files: LaneFiles, windows: Windows) -> Place:
    return files.folder / "profile-{}-{}-{}.json".format(*windows, source_digest())


def _summary_path(files: LaneFiles, pairs: Sequence[Windows], kinds: Sequence[ValueKind]) -> Place:
    windows = hashlib.sha256(repr(sorted(pairs)).encode()).hexdigest()[:16]
    return files.folder / f"{'-'.join(['summary', *kinds, windows])}-{source_digest()}.json"


def _cached(
    files: LaneFiles, pairs: Sequence[Windows], kinds: Sequence[ValueKind], ticks: int
) -> LaneStats:
    """Return what is kept of a lane, without profiles that lack what is to be known at ticks."""
    found = {pair: _read(_profile_path(files, pair), _profile_from) for pair in pairs}
    summaries = _read(_summary_path(files, pairs, kinds), _summaries_from) if kinds else None
    profiles = {
        pair: profile
        for pair, profile in found.items()
        if profile is not None and len(profile.left.held) >= ticks
    }
    return LaneStats(profiles, summaries or {})


def _rest(
    files: LaneFiles, known: LaneStats, pairs: Sequence[Windows], kinds: Sequence[ValueKind]
) -> StatsTask | None:
    """Return the task that finds what the cache lacks of a lane, None where it lacks nothing."""
    windows = tuple(pair for pair in pairs if pair not in known.profiles)
    kinds = () if known.summaries else tuple(kinds)
    return StatsTask(files, windows, kinds, tuple(pairs)) if windows or kinds else None


def _cache(
    files: LaneFiles, found: LaneStats, pairs: Sequence[Windows], kinds: Sequence[ValueKind]
) -> None:
    for pair, profile in found.profiles.items():
        _write(_profile_path(files, pair), profile)
    if found.summaries:
        content = {
            kind: [[array.tolist() for array in side] for side in sides]
            for kind, sides in found.summaries.items()
        }
        _write(_summary_path(files, pairs, kinds), content)


def _read(path: Place, parse: Callable[[Any], T]) -> T | None:
    try:
        content, whole = unsealed(bytes_at(path) or b"")
        return parse(content["kept"]) if whole else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # not there, or not whole
        return None


def _write(path: Place, content: Any) -> None:  # noqa: ANN401 - whatever JSON holds
    with suppress(OSError), written(path, path.parent) as own:
        own.write_text(sealed({"kept": content}))


def _peaks_from(content: Sequence[int]) -> Peaks:
    left, right = content
    return int(left), int(right)


def _profile_from(content: Sequence[Sequence[Any]]) -> LaneProfile:
    left, right = (SideProfile(*own)._replace(held=tuple(own[-1])) for own in content)
    return LaneProfile(left, right)


def _summaries_from(content: dict[str, Any]) -> dict[ValueKind, LaneSummary]:
    found = {}
    for kind, sides in content.items():
        left, right = (SideSummary(*(np.array(array, float) for array in side)) for side in sides)
        found[ValueKind(kind)] = left, right
    return found
