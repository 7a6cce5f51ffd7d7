"""AGE's curves: given, or measured by a pass over the archive that counts matches by age (P5 6.1).

A curve is the mean number of matches of a tuple in each of equal stretches of its life.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.stream import ExactStream
from engine.jobs.exact.key_totals import FactKeys, LaneKeys
from engine.jobs.frame import JobLanes
from engine.lanes.reader import LaneFiles, lane_batches
from engine.policies import Value, age
from engine.replay.settings import ReplaySettings, number_of
from engine.runtime.errors import SpecError

Curve = tuple[float, ...] | None
Curves = tuple[Curve, Curve]
"""Of left and right stored tuples; None where one is to be measured."""


@dataclass(frozen=True)
class AgeTask:
    """A lane whose matches are to be counted by age."""

    files: LaneFiles
    settings: ReplaySettings
    """Windows, importance of an output, and first tick that counts."""
    buckets: int
    """Of the curves, fewer where windows are too long for as many."""


class AgeCounts(NamedTuple):
    """The exact join of a lane."""

    outputs: int
    importance: float
    ages: tuple[NDArray[np.int64], NDArray[np.int64]]
    """((buckets,) int64, (buckets,) int64). Outputs by the age of the earlier member, of left and
    of right; no simultaneous ones."""
    arrived: tuple[int, int]
    """Tuples of left and of right from the first tick that counts on."""


def count_ages(task: AgeTask) -> AgeCounts:
    """Count a lane's exact join by age. Memory: O(windows + keys with an unexpired tuple)."""
    settings, files = task.settings, task.files
    links = files.links(settings.windows)
    join = ExactStream(
        *settings.windows,
        settings.combine,
        settings.start_ts,
        age_buckets=min(task.buckets, *map(age.most_buckets, settings.windows)),
        key_links=None if links is None else links.key_links,
    )
    keys = LaneKeys(join, None, forgets=True) if links is None else FactKeys(links, None)
    arrived = [0, 0]
    for batch in lane_batches(files.left, files.right):
        for side, own in enumerate((batch.left.ts, batch.right.ts)):
            early = 0 if settings.start_ts is None else np.searchsorted(own, settings.start_ts)
            arrived[side] += own.size - int(early)
        ids = keys.intern(batch.left, batch.right)
        join.push(batch.left, ids[0], batch.right, ids[1], keys.outputs, keys.importance)
    ages = join.ages_left, join.ages_right
    return AgeCounts(join.outputs, join.importance, ages, (arrived[0], arrived[1]))


def measured_curves(
    given: Curves, lanes: JobLanes, settings: ReplaySettings, buckets: int
) -> tuple[Curves, list[AgeCounts]]:
    """Return the curves, those not given measured over all lanes, and what each lane came to."""
    tasks = [AgeTask(files, settings, buckets) for files in lanes.files]
    found = lanes.stages.mapped("age curves", count_ages, tasks, lanes.rows)
    curves = list(given)
    for side, stream in enumerate(lanes.prepared.streams):
        if curves[side] is None:
            ages = np.sum([one.ages[side] for one in found], axis=0)
            curves[side] = tuple((np.atleast_1d(ages) / max(1, stream.joined)).tolist())
    return (curves[0], curves[1]), found


def curves_given(settings: ReplaySettings) -> Curves:
    """Return AGE's curves as they were given: None where one has to be measured."""
    both = settings.parameters["curve"]
    left, right = (settings.parameters[f"curve_{side}"] or both for side in ("left", "right"))
    return left, right  # type: ignore[return-value]


def curves_cut(curves: Curves, settings: ReplaySettings) -> Curves:
    """Return AGE's curves as its memories take them, see `cut_finer`."""
    left, right = cut_finer(
        curves, curves_given(settings), settings.windows, settings.parameters["grain"]
    )
    return left, right


def completed(
    given: Sequence[Curve], ages: Sequence[NDArray[np.int64]] | NDArray[np.int64] | None,
    rows: Sequence[int], windows: Sequence[int], grain: Value,
) -> list[Curve]:  # fmt: skip
    """Return curves cut finer: as given, else matches by age over the stream's rows, if counted."""
    found = list(given)
    for side, curve in enumerate(given):
        if curve is None and ages is not None:
            found[side] = tuple((ages[side] / max(1, rows[side])).tolist())
    return cut_finer(found, given, windows, grain)


def cut_finer(
    curves: Sequence[Curve], given: Sequence[Curve], windows: Sequence[int], grain: Value
) -> list[Curve]:
    """Return AGE's curves cut finer, but those that were given.

    A curve that was given stays as it is unless the parameter grain says otherwise.

    Raises
    ------
    SpecError
        If a curve has more buckets than its window may be cut into.
    """
    for curve, window in zip(curves, windows, strict=True):
        if curve is not None and len(curve) > age.most_buckets(window):
            raise SpecError(
                f"an age curve of {len(curve)} buckets over a window of {window} ticks is more "
                f"than int64 counts: give at most {age.most_buckets(window)} buckets"
            )
    buckets = None if grain is None else int(number_of(grain))
    return [
        curve if curve is None or (own is not None and grain is None)
        else age.refined(curve, window, buckets)
        for curve, own, window in zip(curves, given, windows, strict=True)
    ]  # fmt: skip
