"""Clusters that can have no more outputs are summed up before their window ends."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from aggregate_cases import Sample, lane_tables, resolved, sample

import engine.sampling.aggregates.state as state_module
from engine.sampling.aggregates import LaneAggregates, parse_aggregate
from engine.sampling.aggregates.kernels import BEGIN, PARTIALS
from engine.sampling.layout import SIMULTANEOUS, SampledOutputs

LIFETIME = 7
SPECS = (
    "count(*)", "sum(importance)", "avg(left.v)", "sum(left.n) by right.g",
    "avg(left.v) by right.g every 25", "count(*) by left.n, right.g", "count(*) every 10 over 20",
)  # fmt: skip


def short_lived(seed: int) -> Sample:
    """Return outputs of tuples that have none `LIFETIME` after their first."""
    whole = sample(seed, independent=False, rows=400)
    seq = np.where(whole.out.stored == 0, whole.out.left_seq, whole.out.right_seq)
    cluster = np.stack([whole.out.stored, seq])
    _, first, of = np.unique(cluster, axis=1, return_index=True, return_inverse=True)
    since = whole.out.ts[first][of.ravel()]
    return whole.cut((whole.out.ts - since <= LIFETIME) | (whole.out.stored == SIMULTANEOUS))


def summed(whole: Sample, spec: str, lifetime: int | None, seed: int) -> pa.Table:
    """Return an aggregate of outputs that come in random runs."""
    [table] = lane_tables(
        resolved(spec), whole, independent=False, lanes=1, seed=seed, lifetime=lifetime
    )
    return table


@pytest.mark.parametrize("spec", SPECS)
def test_when_clusters_are_summed_up_changes_no_bit(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_module, "_SPARE", 0)
    monkeypatch.setattr(state_module, "_SMALLEST", 4)
    for seed in range(8):
        whole = short_lived(seed)
        late = summed(whole, spec, None, seed)
        assert late.num_rows
        for own in range(3):
            assert summed(whole, spec, LIFETIME, own).equals(late)


def test_a_total_holds_the_clusters_that_may_have_more_outputs() -> None:
    spec = parse_aggregate("count(*)").resolve("tick", pa.schema([]), pa.schema([]))
    lane, rows, held = LaneAggregates((spec,), (pa.schema([]),) * 2, independent=False,
                                      lifetime=50), 1000, []  # fmt: skip
    state = lane._each[0]._state  # noqa: SLF001 - what it holds
    none = pa.table({})
    for begin in range(0, 20 * rows, rows):
        seq = np.arange(begin, begin + rows)
        stored = np.where(seq % 10 == 0, SIMULTANEOUS, 0).astype(np.int8)
        out = SampledOutputs(
            seq, seq, seq, seq, ts=seq, importance=np.ones(rows), weight=np.full(rows, 2.0),
            stored=stored,
        )  # fmt: skip
        lane.add(out, none, none)
        held.append(state._progress[PARTIALS] - state._progress[BEGIN])  # noqa: SLF001
    assert max(held) <= 2 * rows
    [table] = lane.close()
    assert table["rows"].to_pylist() == [20 * rows]
    assert table["clusters"].to_pylist() == [18 * rows]
