"""What is measured of one join's archives: peaks, matches by age, tuples of each key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jobs.age_curves import AgeTask, count_ages
from engine.jobs.frame import JobLanes
from engine.jobs.lane_stats import peaks_of
from engine.lanes.manifest import Prepared
from engine.lanes.reader import LaneFiles, arrivals
from engine.models.frequency import KeyCounts, added
from engine.models.profile.model import ArrivalProfile
from engine.replay.settings import ReplaySettings
from engine.runtime.errors import SpecError
from engine.runtime.key_table import KeyTable


@dataclass(frozen=True)
class MeasureTask:
    """One pass over a lane."""

    files: LaneFiles
    settings: ReplaySettings
    """Windows, importance and first tick that counts."""
    buckets: int
    """Of the age curves."""
    middle: int
    """Last tick of the first half."""


class LaneMeasure(NamedTuple):
    """What a lane's pass has measured."""

    outputs: int
    importance: float
    """Of the exact join."""
    ages: tuple[NDArray[np.int64], NDArray[np.int64]]
    """((buckets,) int64, (buckets,) int64). Outputs by the age of the earlier member, of left and
    right."""
    halves: tuple[KeyCounts, KeyCounts]
    """Tuples of each key in the first and the second half of the span."""


def measure_lane(task: MeasureTask) -> LaneMeasure:
    """Measure a lane. Memory: O(windows + keys)."""
    found = count_ages(AgeTask(task.files, task.settings, task.buckets))
    halves = half_counts(task.files, task.middle)
    return LaneMeasure(found.outputs, found.importance, found.ages, halves)


def half_counts(files: LaneFiles, middle: int) -> tuple[KeyCounts, KeyCounts]:
    """Count the keys of a lane until `middle`, and after it. Memory: O(keys)."""
    table = KeyTable()
    totals = [np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64)]
    for side, stored in enumerate((files.left, files.right)):
        for ts, codes in arrivals(stored):
            ids = table.intern(codes)
            late = ts > middle
            found = np.stack(
                [np.bincount(ids[half], minlength=table.size) for half in (~late, late)]
            )
            found[:, : totals[side].shape[1]] += totals[side]
            totals[side] = found
    left, right = (np.pad(one, ((0, 0), (0, table.size - one.shape[1]))) for one in totals)
    order = np.argsort(table.keys)
    codes = table.keys[order]
    first, second = (KeyCounts(codes, left[i][order], right[i][order]) for i in (0, 1))
    return first, second


class JoinMeasure(NamedTuple):
    """What is known of a join before its memory is; from `matches` on of recall alone."""

    rows: tuple[int, int]
    """Tuples that take part."""
    windows: tuple[int, int]
    """W in ticks."""
    unit: str
    """What a tick is."""
    span: int
    """Ticks from the first to the last tuple of both streams; 1 without any."""
    peaks: tuple[int, int]
    """Most unexpired tuples at once."""
    outputs: int
    importance: float
    """Of the exact join."""
    matches: tuple[float, float] = (0.0, 0.0)
    """Outputs whose stored member is of left and right; the others are simultaneous."""
    curves: tuple[NDArray[np.float64], NDArray[np.float64]] = (np.zeros(0), np.zeros(0))
    """((n,) float64, (n,) float64). p_i: matches of a tuple by its age."""
    counts: KeyCounts = KeyCounts(*(np.zeros(0, np.int64) for _ in range(3)))
    """Tuples of each key."""
    rest: tuple[int, int, int] = (0, 0, 0)
    """(int, int, int). Keys that are not listed, and their tuples of left and right."""
    halves: tuple[KeyCounts, KeyCounts] | None = None
    """Tuples of each key in the first and second half of the span; None where a profile does not
    have them."""
    fits: str | None = None
    """The model that a profile says fits better."""

    @property
    def peak(self) -> int:
        """Tuples that the exact join needs."""
        return sum(self.peaks)


def measure_join(lanes: JobLanes, settings: ReplaySettings, buckets: int) -> JoinMeasure:
    """Measure all lanes of a join.

    Parameters
    ----------
    lanes : JobLanes
        Without partition groups.
    buckets : int
        Of the age curves.
    """
    first, last = lanes.prepared.span or (0, 0)
    middle = first + (last - first) // 2
    tasks = [MeasureTask(files, settings, buckets, middle) for files in lanes.files]
    found = lanes.stages.mapped("measure", measure_lane, tasks, lanes.rows)
    peaks = peaks_of(lanes, settings.windows)
    return _together(found, lanes.prepared, settings.windows, peaks, last - first + 1, buckets)


def _together(
    lanes: Sequence[LaneMeasure],
    prepared: Prepared,
    windows: tuple[int, int],
    peaks: tuple[int, int],
    span: int,
    buckets: int,
) -> JoinMeasure:
    rows = prepared.left.joined, prepared.right.joined
    none = np.zeros(buckets, np.int64)
    ages = [np.sum([lane.ages[side] for lane in lanes] or [none], axis=0) for side in (0, 1)]
    left, right = (total / max(1, own) for total, own in zip(ages, rows, strict=True))
    halves = (
        added([lane.halves[0] for lane in lanes]),
        added([lane.halves[1] for lane in lanes]),
    )
    return JoinMeasure(
        rows,
        windows,
        prepared.unit,
        span,
        peaks,
        sum(lane.outputs for lane in lanes),
        fsum(lane.importance for lane in lanes),
        (float(ages[0].sum()), float(ages[1].sum())),
        (left, right),
        added(halves),
        halves=halves,
    )


def measured_by_profile(
    profile: ArrivalProfile, prepared: Prepared, settings: ReplaySettings, where: str
) -> JoinMeasure:
    """Return what a profile has of a join.

    Parameters
    ----------
    prepared : Prepared
        The join's archives.
    where : str
        The profile's file.

    Raises
    ------
    SpecError
        If the profile is of streams without rows, of other windows or another tick.
    """
    windows = settings.windows
    if not profile.ticks:
        raise SpecError(f"profile {where} is of streams without rows: it tells nothing")
    if profile.unit != prepared.unit:
        raise SpecError(
            f"profile {where} has times in {profile.unit}, and the archives in {prepared.unit}: "
            "make a profile of archives such as these"
        )
    if profile.windows != windows:
        raise SpecError(
            f"profile {where} is of windows of {profile.windows[0]} and {profile.windows[1]} "
            f"ticks, and the join of {windows[0]} and {windows[1]}: make a profile with the "
            "windows of the join"
        )
    left, right = profile.streams
    rest = profile.frequencies.rest
    return JoinMeasure(
        (left.rows, right.rows),
        windows,
        profile.unit,
        max(1, profile.ticks),
        (left.peak, right.peak),
        int(profile.exact["outputs"]),
        float(profile.exact.get("importance", 0.0)),
        (left.age.matches * left.rows, right.age.matches * right.rows),
        (profile.curve(0), profile.curve(1)),
        profile.counts(),
        (int(rest["keys"]), int(rest["left"]), int(rest["right"])),
        fits=profile.fit.get("model"),
    )
