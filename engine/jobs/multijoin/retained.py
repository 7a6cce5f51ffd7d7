"""A join of streams that were read within a memory: which tuples stay, and what they join.

Two streams join under any predicate: a band by the order of values, any other by the pairs of their
exact join. Several join on equal attributes, as through a fact relation that has every attribute
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.facts.relation import BEFORE, NEVER
from engine.jobs.age_curves import Curve, completed
from engine.jobs.bound.found import Bounds
from engine.jobs.bound.several import ExactOutputs, star_bounds
from engine.jobs.exact.counting import Tally
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.written import Part
from engine.lanes.profile import LaneProfile, SideProfile, profile_side
from engine.multiway.exact.join import ExactJoin
from engine.multiway.streams import MultiStreams
from engine.options.several import MemoryRules, budgets_of
from engine.replay.by_pairs import Arrivals, arrivals_of, replay_pairs
from engine.replay.by_ranks import replay_band
from engine.replay.lane import LaneReplay
from engine.replay.layout import Outputs
from engine.replay.settings import UNLIMITED, ReplaySettings, number_of
from engine.runtime.jit import Ints
from engine.runtime.streams import StreamBatch
from engine.star.index import StarFacts, star_index
from engine.star.lane import StarReplay
from engine.star.settings import StarSettings


class Retained(NamedTuple):
    """What a join within a memory held, by stream."""

    budgets: list[int]
    """UNLIMITED for a stream that is kept whole."""
    peaks: list[int]
    exact_peaks: list[int]
    """`peaks`, `exact_peaks`: Most tuples held at once, and most that are unexpired at once."""
    peak: int
    """Most tuples of all streams held at once; of memories of their own, the sum of the peaks."""


def held(found: Sequence[Retained]) -> Retained:
    """Return what lanes held, added up: each has a memory, and a peak, of its own."""
    if len(found) == 1:
        return found[0]

    def added(name: str) -> list[int]:
        return [sum(own) for own in zip(*(getattr(one, name) for one in found), strict=True)]

    unlimited = [UNLIMITED in own for own in zip(*(one.budgets for one in found), strict=True)]
    budgets = [
        UNLIMITED if every else own for every, own in zip(unlimited, added("budgets"), strict=True)
    ]
    return Retained(budgets, added("peaks"), added("exact_peaks"), sum(own.peak for own in found))


def retained_run(task: MultiJoinTask, streams: MultiStreams) -> TwoStreamsRun | EqualsRun:
    """Return the run of a task that has a memory."""
    return TwoStreamsRun(task, streams) if streams.number == 2 else EqualsRun(task, streams)


class _Run:
    """What runs within a memory share: batches, profiles and budgets of the streams."""

    _lane: LaneReplay | StarReplay

    def __init__(self, task: MultiJoinTask, streams: MultiStreams) -> None:
        assert task.options.retention is not None  # noqa: S101 - the caller has looked
        self._task, self._streams = task, streams
        self._retention: MemoryRules = task.options.retention
        self._windows = [int(own) for own in task.windows.size]
        self._batches = [_batch(streams, side) for side in range(streams.number)]
        self._profiles: list[SideProfile] = [
            profile_side([batch], window)
            for batch, window in zip(self._batches, self._windows, strict=True)
        ]
        peaks = [own.peak for own in self._profiles]
        self._budgets = budgets_of(self._retention.memory, peaks, pooled=self._retention.pooled)
        self._edges = np.array(task.edges[:-1] or (0,), np.int64)

    def bounds(self) -> Bounds | None:
        """Return the best possible importance within the memory, where it is wanted."""
        task, own = self._task, self._retention
        if own.bound is None:
            return None
        found = ExactOutputs(self._streams.number)
        join = ExactJoin(
            self._streams, task.windows, task.options.predicate, combine=task.options.combine,
            start_ts=task.start_ts, threads=task.threads,
        )  # fmt: skip
        for part in join.outputs():
            found.add(part.members - self._streams.first[:-1], part.ts, part.importance)
        joined = found.joined([batch.ts for batch in self._batches])
        return star_bounds(joined, self._budgets, own.bound, pooled=own.pooled)

    @property
    def _rules(self) -> dict[str, Any]:
        """What the settings of all replays within a memory take."""
        own, options = self._retention, self._task.options
        return {
            "policy": own.policy, "parameters": own.parameters, "estimator": own.estimator,
            "combine": options.combine, "start_ts": self._task.start_ts, "seed": options.seed,
            "pooled": own.pooled,
        }  # fmt: skip

    @property
    def _measures_ages(self) -> bool:
        """Whether AGE's curves are to be measured by a pass (P5 6.1)."""
        return self._retention.policy == "age" and None in self._retention.curves

    def _curves(self, ages: Ints | None) -> list[Curve]:
        """Return AGE's curves: as given, else the matches by age of a mean tuple, cut finer."""
        own, rows = self._retention, [profile.rows for profile in self._profiles]
        return completed(own.curves, ages, rows, self._windows, own.parameters.get("grain"))

    @property
    def tally(self) -> Tally:
        """What came out so far."""
        lane = self._lane
        return Tally(lane.outputs, lane.importance, lane.by_bin, lane.importance_by_bin)

    @property
    def statistics(self) -> Retained:
        """What was held so far."""
        peaks, exact_peaks = list(self._lane.peaks), [own.peak for own in self._profiles]
        peak = self._lane.peak if self._retention.pooled else sum(peaks)
        return Retained(self._budgets, peaks, exact_peaks, peak)


class TwoStreamsRun(_Run):
    """The join of two streams under any predicate.

    Parameters
    ----------
    task : MultiJoinTask
        With a memory.
    """

    _lane: LaneReplay

    def __init__(self, task: MultiJoinTask, streams: MultiStreams) -> None:
        super().__init__(task, streams)
        settings = ReplaySettings(self._windows[0], self._windows[1], **self._rules)
        curves = self._curves(self._ages() if self._measures_ages else None)
        left, right = (None if own is None else np.array(own) for own in curves)
        self._lane = LaneReplay(
            settings, LaneProfile(*self._profiles), (self._budgets[0], self._budgets[1]),
            curves=(left, right), emit=task.draft is not None,
            bin_edges=self._edges,
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield the outputs, in the order of the arrival of their later tuple."""
        second = int(self._streams.first[1])
        for out in self._outputs(arrivals_of(*self._batches)):
            members = np.column_stack([out.left_seq, out.right_seq + second])
            yield members, out.ts.copy(), out.importance.copy()

    def _outputs(self, arrivals: Arrivals) -> Iterator[Outputs]:
        predicate = self._task.options.predicate
        if predicate.kind != "band":
            return replay_pairs(self._lane, arrivals, self._pairs())
        left, right = (
            np.ascontiguousarray(self._streams.attributes.value[self._streams.part(side), 0])
            for side in range(2)
        )
        return replay_band(self._lane, arrivals, (left, right), predicate.bound)

    def _pairs(self, start_ts: int | None = None) -> Iterator[Ints]:
        """Yield the pairs of the exact join, those before `start_ts` left out."""
        task = self._task
        join = ExactJoin(
            self._streams, task.windows, task.options.predicate, start_ts=start_ts,
            threads=task.threads,
        )  # fmt: skip
        return join.members()

    def _ages(self) -> Ints:
        """Return the outputs by the age of their earlier tuple, of left and of right."""
        buckets = int(number_of(self._retention.parameters["buckets"]))
        found = np.zeros((2, buckets), np.int64)
        for members in self._pairs(self._task.start_ts):
            left, right = self._streams.ts[members].T
            lag = right - left
            for side, ages in enumerate((lag[lag > 0], -lag[lag < 0])):
                which = (ages - 1) * buckets // max(1, self._windows[side])
                found[side] += np.bincount(which, minlength=buckets)
        return found


class EqualsRun(_Run):
    """The join of several streams on equal attributes.

    Parameters
    ----------
    task : MultiJoinTask
        With a memory.
    """

    _lane: StarReplay

    def __init__(self, task: MultiJoinTask, streams: MultiStreams) -> None:
        super().__init__(task, streams)
        settings = StarSettings(tuple(self._windows), **self._rules)
        codes, groups = np.unique(streams.attributes.code, return_inverse=True)
        always = np.full(codes.size, BEFORE), np.full(codes.size, NEVER)
        facts = StarFacts((codes,) * len(self._batches), *always, np.arange(codes.size))
        split = np.split(groups.astype(np.int64), streams.first[1:-1])
        self._index = star_index(self._batches, split, facts)
        ages = None
        if self._measures_ages:
            buckets = int(number_of(self._retention.parameters["buckets"]))
            exact = StarSettings(tuple(self._windows), start_ts=task.start_ts)
            whole = self._star(exact, [UNLIMITED] * len(self._batches), [], buckets)
            for _ in whole.run():
                pass
            ages = whole.ages
        self._lane = self._star(settings, self._budgets, self._curves(ages), 0)

    def _star(
        self, settings: StarSettings, budgets: list[int], curves: list[Curve], ages: int
    ) -> StarReplay:
        return StarReplay(
            settings, self._index, [batch.row for batch in self._batches], self._profiles, budgets,
            curves=[None if own is None else np.array(own) for own in curves],
            emit=self._task.draft is not None and ages == 0, edges=self._edges,
            age_buckets=ages,
        )  # fmt: skip

    def parts(self) -> Iterator[Part]:
        """Yield the outputs, instant by instant."""
        for out in self._lane.run():
            members = out.members + self._streams.first[:-1]
            yield members, out.ts.copy(), out.importance.copy()


def _batch(streams: MultiStreams, side: int) -> StreamBatch:
    part = streams.part(side)
    ts = streams.ts[part]
    return StreamBatch(ts, streams.row[part], np.zeros(ts.size, np.int64), streams.importance[part])
