"""Measurements of the lanes of a partition before their replay."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.exact.stream import ExactStream
from engine.facts.links import Links
from engine.lanes.profile import LaneProfile
from engine.lanes.reader import LaneBatch
from engine.policies import ValueKind
from engine.value_model.summary import LaneSummary, summarised_lane
from spark_plugin.lanes import LaneName
from spark_plugin.spool import Spool
from spark_plugin.worker import Keys, Plan, lanes_in, linked, untils


@dataclass(frozen=True)
class Measured:
    """The result of one pass over a lane."""

    name: LaneName
    profile: LaneProfile
    ages: tuple[NDArray[np.int64], NDArray[np.int64]]
    """tuple of (buckets,) int64. Exact matches by the age of the earlier member, left and right."""
    summaries: dict[ValueKind, LaneSummary]
    """Value summaries of its tuples, by the kinds requested."""


def measure_partition(
    plan: Plan, age_buckets: int, kinds: Sequence[ValueKind], source: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield `Measured` of every lane of a partition, pickled; ages only if there are buckets."""
    for name, batches in lanes_in(plan, source):
        with Spool() as spool:
            ages = _put_aside(plan, age_buckets, batches, spool)
            profile = spool.profile(plan.windows, untils(plan))
            measured = Measured(name, profile, ages, _summaries(spool, kinds, plan.windows))
            cells = pa.array([pickle.dumps(measured)], pa.binary())
            yield pa.RecordBatch.from_arrays([cells], ["measured"])


def _summaries(
    spool: Spool, kinds: Sequence[ValueKind], windows: tuple[int, int]
) -> dict[ValueKind, LaneSummary]:
    """Return value summaries of a whole lane."""

    def arriving(
        side: int,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]]:
        for batch in spool:
            own = (batch.left, batch.right)[side]
            yield own.ts, own.key, own.importance

    return summarised_lane(arriving, kinds, [windows]) if kinds else {}


def _put_aside(
    plan: Plan, age_buckets: int, batches: Iterator[LaneBatch], spool: Spool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Spool a lane and count the ages of its matches; through facts, once it is complete."""
    ages = None if plan.facts is not None else _Ages(plan, age_buckets, None)
    keys = Keys(plan, None)
    for batch in batches:
        left, right = batch.left, batch.right
        if plan.facts is None:
            left, right = keys.coded(batch, keys.intern(batch, []))
        spool.add(LaneBatch(left, right, None, None))
        if ages is not None and age_buckets:
            ages.count(batch)
    if ages is None:
        ages = _Ages(plan, age_buckets, linked(plan, spool))
        for batch in spool if age_buckets else ():
            ages.count(batch)
    return ages.exact.ages_left, ages.exact.ages_right


class _Ages:
    """Counts a lane's exact matches by the age of the earlier member."""

    def __init__(self, plan: Plan, buckets: int, links: Links | None) -> None:
        settings = plan.settings
        self.exact = ExactStream(
            *plan.windows, settings.combine, settings.start_ts, None, buckets or None,
            None if links is None else links.key_links,
        )  # fmt: skip
        self._keys = Keys(plan, links, forgets=True)
        self._outputs, self._importance = np.zeros(0, np.int64), np.zeros(0)

    def count(self, batch: LaneBatch) -> None:
        """Count the matches of a batch."""
        ids = self._keys.intern(batch, [self.exact])
        size = self._keys.size
        if size > self._outputs.size:
            self._outputs, self._importance = np.zeros(2 * size, np.int64), np.zeros(2 * size)
        self.exact.push(batch.left, ids[0], batch.right, ids[1], self._outputs, self._importance)
