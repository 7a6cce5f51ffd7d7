"""Outputs of a few stored tuples with payload, for tests of aggregates, and the oracle's view."""

from __future__ import annotations

from typing import Any, NamedTuple

import naive_sampling as naive
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.sampling.aggregates import AggregateSpec, LaneAggregates, parse_aggregate
from engine.sampling.layout import SampledOutputs

SCHEMAS = (
    pa.schema([("v", pa.float64()), ("n", pa.int32()), ("flag", pa.bool_())]),
    pa.schema([("g", pa.string()), ("h", pa.int64())]),
)
LAST = 60


class Sample(NamedTuple):
    """Outputs with the payload of their members, and the lane of each."""

    out: SampledOutputs
    left: pa.Table
    right: pa.Table
    lane: NDArray[np.int64]

    def cut(self, rows: NDArray[np.bool_] | slice) -> Sample:
        """Return some rows."""
        out = SampledOutputs(*(part[rows] for part in self.out))
        at = np.arange(self.lane.size)[rows]
        return Sample(out, self.left.take(at), self.right.take(at), self.lane[rows])


def sample(seed: int, *, independent: bool, rows: int = 120) -> Sample:
    """Draw outputs of a few stored tuples; each's inclusion probability does not increase."""
    rng = np.random.default_rng(seed)
    ts = np.sort(rng.integers(-LAST // 2, LAST, rows))
    stored = rng.choice([0, 1, 2], rows, p=[0.5, 0.35, 0.15]).astype(np.int8)
    tuples = rng.integers(0, 12, rows)
    p = rng.choice([1.0, 0.5, 0.1, rng.random()], (2, 12))
    weight = np.ones(rows)
    for j in range(rows):
        if stored[j] < 2 or independent:
            at = min(int(stored[j]), 1), tuples[j]
            p[at] *= rng.choice([1.0, 1.0, 0.7])
            weight[j] = 1 / p[at]
    fresh = np.arange(rows) + 1000
    left_seq = np.where(stored == 0, tuples, fresh)
    right_seq = np.where(stored == 1, tuples, fresh)
    out = SampledOutputs(
        left_row=left_seq,
        right_row=right_seq,
        left_seq=left_seq,
        right_seq=right_seq,
        ts=ts,
        importance=rng.exponential(1, rows),
        weight=weight,
        stored=np.zeros(rows, np.int8) if independent else stored,
    )
    left = pa.table(
        {
            "v": pa.array(rng.normal(2, 3, rows), mask=rng.random(rows) < 0.2),
            "n": pa.array(rng.integers(-2, 5, rows).astype(np.int32), mask=rng.random(rows) < 0.2),
            "flag": pa.array(rng.random(rows) < 0.3),
        }
    )
    right = pa.table(
        {
            "g": pa.array(rng.choice(["x", "y", "zz"], rows), mask=rng.random(rows) < 0.2),
            "h": pa.array(rng.integers(0, 2, rows), mask=rng.random(rows) < 0.3),
        }
    )
    return Sample(out, left, right, tuples % 3)


def resolved(text: str) -> AggregateSpec:
    return parse_aggregate(text).resolve("tick", *SCHEMAS)


def lane_tables(
    spec: AggregateSpec, whole: Sample, *, independent: bool, lanes: int = 3, seed: int = 0,
    lifetime: int | None = None,
) -> list[pa.Table]:  # fmt: skip
    """Aggregate each lane's rows in random runs."""
    rng = np.random.default_rng(seed)
    tables = []
    for lane in range(lanes):
        mine = whole.cut(whole.lane % lanes == lane)
        aggregates = LaneAggregates((spec,), SCHEMAS, independent=independent, lifetime=lifetime)
        begin = 0
        while begin < mine.lane.size:
            end = begin + int(rng.integers(0, 9))
            part = mine.cut(slice(begin, end))
            aggregates.add(part.out, part.left, part.right)
            begin = end
        tables += aggregates.close()
    return tables


class Asked(NamedTuple):
    """What an aggregate is of, in the oracle's terms."""

    function: str
    rows: list[naive.Row]
    values: list[Any]
    groups: list[Any] | None
    windows: dict[str, Any]
    """`every`, `over` and `span`."""


def asked(spec: AggregateSpec, whole: Sample) -> Asked:
    """Return an aggregate of some outputs in the oracle's terms."""
    out = whole.out
    rows = list(
        zip(
            out.left_seq.tolist(), out.right_seq.tolist(), out.ts.tolist(),
            out.importance.tolist(), out.weight.tolist(), out.stored.tolist(), strict=True,
        )
    )  # fmt: skip
    payload = whole.left, whole.right
    values: list[Any] = [1.0] * len(rows)
    if spec.value == "importance":
        values = out.importance.tolist()
    elif not isinstance(spec.value, str):
        column = payload[spec.value.side].column(spec.value.column).to_pylist()
        values = [None if one is None else float(one) for one in column]
    groups = None
    if spec.by:
        columns = [payload[c.side].column(c.column).to_pylist() for c in spec.by]
        groups = list(zip(*columns, strict=True))
    panes = spec.windows
    windows = {"every": panes.every or None, "over": panes.over or None, "span": (-LAST, LAST)}
    return Asked(spec.function, rows, values, groups, windows)
