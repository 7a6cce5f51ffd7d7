"""What a Spark task does with a partition: lane by lane, measure it or replay it."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.exact.stream import ExactStream
from engine.job.budget import Amounts, split_budget
from engine.job.output import IDS, id_columns
from engine.job.payload import PayloadWindow
from engine.lanes.reader import LaneBatch, united_batches
from engine.replay.lane import LaneReplay
from engine.replay.settings import UNLIMITED, LaneProfile, ReplaySettings, SideProfile
from engine.streams import SIDES
from spark_plugin.keys import LaneKeys
from spark_plugin.lanes import LaneName, LaneStream, Layout
from spark_plugin.spool import Spool

Curve = tuple[float, ...] | None
_LARGE = 1 << 22
"""Slots that are reserved without knowing whether the lane has as many tuples."""


@dataclass(frozen=True)
class Plan:
    """A replay as the workers get it.

    Attributes
    ----------
    layout : Layout
    settings : ReplaySettings
    memory : tuple of Amount or None
        Of each lane, unless it is in `budgets`.
    budgets : dict of LaneName to (int, int)
        K of the lanes that share a memory.
    curves : tuple of tuple of float or None
        AGE's curves.
    payload : bool
        Whether there are columns to hand on.
    """

    layout: Layout
    settings: ReplaySettings
    memory: Amounts
    budgets: dict[LaneName, tuple[int, int]] = field(default_factory=dict)
    curves: tuple[Curve, Curve] = (None, None)
    payload: bool = False

    @property
    def windows(self) -> tuple[int, int]:
        """W of left and right."""
        return self.settings.window_left, self.settings.window_right

    @property
    def forgets(self) -> bool:
        """Whether keys without an unexpired tuple can be forgotten."""
        return self.settings.estimator != "history"

    @property
    def looks_ahead(self) -> bool:
        """Whether a lane must be seen whole before its replay begins."""
        settings = self.settings
        if settings.estimator == "history":
            return True
        if settings.policy == "dgl" and settings.parameters.get("beta") is None:
            return True
        return any(a is None or a.tuples is None or a.tuples > _LARGE for a in self.memory)

    def budget(self, name: LaneName, profile: LaneProfile) -> tuple[int, int]:
        """Return K of both sides of a lane."""
        if name in self.budgets:
            return self.budgets[name]
        left, right = (
            split_budget(amount, [side.peak])[0]
            for amount, side in zip(self.memory, profile, strict=True)
        )
        return left, right


def _lanes(
    plan: Plan, source: Iterator[pa.RecordBatch]
) -> Iterator[tuple[LaneName, Iterator[LaneBatch]]]:
    stream = LaneStream(plan.layout)
    beside = plan.payload or not plan.layout.direct
    numbered = united_batches(stream.batches(source), payload=beside)
    for number, batches in groupby(numbered, itemgetter(0)):
        yield stream.names[number], (batch for _, batch in batches)


def replay_partition(plan: Plan, source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the output tuples of every lane of a partition.

    Memory: the windows, the budget and a batch. A lane that must be seen whole first is put aside
    on disk beyond `spool.HELD_BYTES`.
    """
    for name, batches in _lanes(plan, source):
        with Spool() as spool:
            if plan.looks_ahead:
                for batch in batches:
                    spool.add(batch)
                profile = spool.profile(plan.windows)
                batches = iter(spool)  # noqa: PLW2901 - the same batches, again
            else:
                first = next(batches)
                profile = _guessed(first)
                batches = chain([first], batches)  # noqa: PLW2901 - the same batches, again
            yield from _replay(plan, name, profile, batches)


def _guessed(first: LaneBatch) -> LaneProfile:
    """Return as much of a profile as the first batch tells, enough where `looks_ahead` is False."""
    t0 = min(int(side.ts[0]) for side in (first.left, first.right) if side.ts.size)
    side = SideProfile(1, t0, t0, UNLIMITED, 0.0)
    return LaneProfile(side, side)


def _replay(
    plan: Plan, name: LaneName, profile: LaneProfile, batches: Iterator[LaneBatch]
) -> Iterator[pa.RecordBatch]:
    curves = tuple(None if curve is None else np.array(curve) for curve in plan.curves)
    replay = LaneReplay(
        plan.settings,
        profile,
        plan.budget(name, profile),
        curves=(curves[0], curves[1]),
        emit=True,
    )
    keys = LaneKeys(plan.layout, plan.windows, forgets=plan.forgets)
    held = tuple(PayloadWindow(window) for window in plan.windows)
    for batch in batches:
        ids = keys.intern(batch, [replay])
        left, right = keys.coded(batch, ids)
        if plan.payload:
            for side, window in enumerate(held):
                window.push((batch.left, batch.right)[side].ts, _handed_on(batch, side))
        for out in replay.push(left, ids[0], right, ids[1], keys.size):
            columns = dict(zip(IDS.names, id_columns(out).columns, strict=True))
            if plan.payload:
                for window, seq in zip(held, (out.left_seq, out.right_seq), strict=True):
                    taken = window.take(seq)
                    columns |= dict(zip(taken.column_names, taken.columns, strict=True))
            yield from pa.table(columns).combine_chunks().to_batches()


def _handed_on(batch: LaneBatch, side: int) -> pa.Table:
    """Return one side's payload without the join attributes that travel beside it."""
    table: pa.Table = (batch.left_payload, batch.right_payload)[side]
    own = [name for name in table.column_names if not name.startswith(f"{SIDES[side]}_\0")]
    return table.select(own)


@dataclass(frozen=True)
class Measured:
    """What one pass over a lane told.

    Attributes
    ----------
    name : LaneName
    profile : LaneProfile
    ages : tuple of (buckets,) int64
        Exact matches by the age of the earlier member, left and right.
    """

    name: LaneName
    profile: LaneProfile
    ages: tuple[NDArray[np.int64], NDArray[np.int64]]


def measure_partition(
    plan: Plan, age_buckets: int, source: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield what every lane of a partition is like, pickled; ages only if there are buckets."""
    for name, batches in _lanes(plan, source):
        with Spool() as spool:
            ages = _put_aside(plan, age_buckets, batches, spool)
            measured = Measured(name, spool.profile(plan.windows), ages)
            cells = pa.array([pickle.dumps(measured)], pa.binary())
            yield pa.RecordBatch.from_arrays([cells], ["measured"])


def _put_aside(
    plan: Plan, age_buckets: int, batches: Iterator[LaneBatch], spool: Spool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Put a lane aside and count the ages of its matches on the way."""
    settings = plan.settings
    exact = ExactStream(
        *plan.windows, settings.combine, settings.start_ts, None, age_buckets or None
    )
    keys = LaneKeys(plan.layout, plan.windows, forgets=True)
    outputs, importance = np.zeros(0, np.int64), np.zeros(0)
    for batch in batches:
        spool.add(batch._replace(left_payload=None, right_payload=None))
        if age_buckets:
            ids = keys.intern(batch, [exact])
            if keys.size > outputs.size:
                outputs, importance = np.zeros(2 * keys.size, np.int64), np.zeros(2 * keys.size)
            exact.push(batch.left, ids[0], batch.right, ids[1], outputs, importance)
    return exact.ages_left, exact.ages_right
