"""What hash lanes cost: against replays with one lane, whole and on stretches; and its warning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fact_job_cases
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import arguments, stream, table
from thorough import guarded

import winnow
from engine.commands import main
from engine.jobs.trial import lane_cost as costs
from engine.lanes.held import Held
from engine.lanes.reader import lane_batches, whole_lane
from engine.report.join_tables import MOST_POINTS, cost_of_lanes, warning_of
from engine.runtime.streams import StreamBatch

JOIN: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 9}


def tables(rows: int = 400, keys: int = 25, **columns: Any) -> tuple[pa.Table, pa.Table]:
    left, right = (table(stream(seed, rows, keys=keys), **columns) for seed in (4, 5))
    return left, right


def lost(sides: tuple[pa.Table, pa.Table], lanes: int, **options: Any) -> tuple[float, Any]:
    """Return the points that lanes lose, and what the report says of them."""
    given = JOIN | options
    one, many = (winnow.replay(*sides, **given, lanes=number).report for number in (1, lanes))
    assert one["lanes"]["cost"] is None
    points = 100 * (one["importance_recall"] - many["importance_recall"])
    return points, many["lanes"]["cost"]


@pytest.mark.parametrize("lanes", [2, 7])
@pytest.mark.parametrize("split", ["even", "pooled", "0.3"])
@pytest.mark.parametrize("policy", ["prob", "dgl", "yield", "age", "rand", "dimpprob"])
def test_where_all_is_replayed_the_cost_is_what_is_lost(
    policy: str, split: str, lanes: int
) -> None:
    if (policy, split) == ("rand", "pooled"):
        split = "even"
    points, cost = lost(tables(), lanes, policy=policy, split=split, memory="20%")
    assert cost["points"] == pytest.approx(points, abs=1e-9)
    assert (cost["low"], cost["high"]) == (cost["points"],) * 2
    assert (cost["stretches"], cost["share"]) == (0, 1.0)


@pytest.mark.parametrize("estimator", ["window", "history"])
def test_other_estimators_and_probes(estimator: str) -> None:
    options = {"policy": "simpprob", "estimator": estimator, "probe": "after_admission"}
    points, cost = lost(tables(), 5, memory=14, start_ts=40, combine="sum", **options)
    assert cost["points"] == pytest.approx(points, abs=1e-9)


def test_groups_are_added_up() -> None:
    sides = tables(g=[i % 3 for i in range(400)])
    points, cost = lost(sides, 3, policy="prob", memory="30%", partition_by="g")
    assert cost["points"] == pytest.approx(points, abs=1e-9)
    assert points != 0


def test_through_facts() -> None:
    one = fact_job_cases.parted(5)
    given = fact_job_cases.NAMES | {"fact": fact_job_cases.fact_table(one.facts)}
    points, cost = lost(one.tables, 4, policy="simp", memory="30%", **given)
    assert cost["points"] == pytest.approx(points, abs=1e-9)
    assert points != 0


def test_nothing_is_said_where_lanes_cost_nothing_by_nature(tmp_path: Path) -> None:
    sides = tables()
    assert winnow.replay(*sides, **JOIN, lanes=4).report["lanes"]["cost"] is None
    for side, own in zip(("left", "right"), sides, strict=True):
        pq.write_table(own, tmp_path / f"{side}.parquet")
    files = tmp_path / "left.parquet", tmp_path / "right.parquet"
    given = JOIN | {"cache": tmp_path / "cache", "memory": 12}
    winnow.bound(*files, **given, lanes=4, split="even", out=tmp_path / "plan")
    planned = winnow.replay(*files, **given, lanes=4, plan=tmp_path / "plan").report
    assert planned["lanes"]["cost"] is None


def bursty(seed: int, rows: int = 6000) -> tuple[pa.Table, pa.Table]:
    """Return streams whose frequent keys come and go."""
    rng = np.random.default_rng(seed)
    sides = []
    for _ in range(2):
        ts = np.sort(rng.integers(0, 12_000, rows))
        keys = (rng.zipf(1.3, rows) + ts // 700) % 60
        importance = rng.choice([1.0, 2.0, 9.0], rows)
        sides.append(pa.table({"t": ts, "k": keys, "i": importance}))
    return sides[0], sides[1]


@pytest.mark.parametrize(
    "policy",
    [
        "prob",
        *guarded(
            ["yield"], "engine/jobs/trial", "engine/jobs/replay", "tests/jobs/test_lane_cost.py"
        ),
    ],
)
def test_stretches_tell_it_within_an_interval(monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    monkeypatch.setattr(costs, "TUPLES", 7_000)
    monkeypatch.setattr("engine.jobs.trial.stretches.ROWS", 100)
    monkeypatch.setattr("engine.jobs.trial.stretches.FEWEST", 0)
    covered, off = 0, []
    for seed in range(8):
        options = {"policy": policy, "memory": "10%", "seed": seed, "window": 40}
        points, cost = lost(bursty(seed), 6, **options)
        assert cost["stretches"] >= 2
        assert 0 < cost["share"] < 1
        assert cost["low"] < cost["points"] < cost["high"]
        covered += cost["low"] <= points <= cost["high"]
        off.append(abs(cost["points"] - points))
    assert covered >= 7
    assert float(np.mean(off)) < 3


def test_a_stretch_is_the_replay_of_its_tuples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every stretch that is compared, against replays of its tuples as archives of their own."""
    monkeypatch.setattr(costs, "TUPLES", 7_000)
    monkeypatch.setattr("engine.jobs.trial.stretches.ROWS", 100)
    monkeypatch.setattr("engine.jobs.trial.stretches.FEWEST", 0)
    seen: list[tuple[costs.CostTask, costs.Reached]] = []
    compared = costs.compared

    def noting(task: costs.CostTask) -> costs.Reached:
        seen.append((task, compared(task)))
        return seen[-1][1]

    monkeypatch.setattr(costs, "compared", noting)
    sides = bursty(3)
    options = JOIN | {"window": 40, "policy": "prob", "memory": 30}
    paths = [tmp_path / name for name in ("left.parquet", "right.parquet")]
    for path, one in zip(paths, sides, strict=True):
        pq.write_table(one, path)
    winnow.replay(*paths, **options, lanes=6, cache=tmp_path / "cache")
    assert len(seen) >= 2
    for task, found in seen:
        lead, first = task.whole.profile.left.first_ts, task.whole.settings.start_ts
        last = max(
            int(side.ts[-1])
            for files in task.files
            for side in whole_lane(files.left, files.right)[:2]
            if side.ts.size
        )
        own = [
            one.filter((pa.compute.field("t") >= lead) & (pa.compute.field("t") <= last))
            for one in sides
        ]
        report = winnow.replay(*own, **options, start_ts=first).report
        assert found.one == pytest.approx(report["result"]["importance"])
        assert found.exact.importance == pytest.approx(report["exact"]["importance"])
        assert sum(cell.budget[0] for cell in task.cells) == task.whole.budget[0] == 15


def test_windows_too_long_for_stretches_are_not_estimated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(costs, "TUPLES", 3_000)
    options = {"policy": "prob", "memory": 30, "lanes": 3, "window": 6_000}
    report = winnow.replay(*bursty(1), **(JOIN | options)).report
    assert report["lanes"]["cost"] is None


@pytest.mark.parametrize("between", [None, (5, 9), (0, 0), (50, 60)])
def test_tuples_that_are_held_are_read_as_from_a_file(between: tuple[int, int] | None) -> None:
    rng = np.random.default_rng(2)
    ts = np.sort(rng.integers(3, 20, 30))
    sides = [
        StreamBatch(ts + i, np.arange(30), rng.integers(0, 4, 30), rng.random(30)) for i in (0, 1)
    ]
    batches = list(lane_batches(Held(sides[0]), Held(sides[1]), batch_rows=7, between=between))
    for side, whole in enumerate(sides):
        kept = np.ones(30, bool)
        if between is not None:
            kept = (whole.ts >= between[0]) & (whole.ts <= between[1])
        for i, column in enumerate(whole):
            parts = [batch[side][i] for batch in batches] or [column[:0]]
            assert np.concatenate(parts).tolist() == column[kept].tolist()


@pytest.mark.parametrize(("lanes", "warned"), [(1, False), (9, True)])
def test_what_costs_much_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], lanes: int, warned: bool
) -> None:
    for side, own in zip(("left", "right"), tables(), strict=True):
        pq.write_table(own, tmp_path / f"{side}.parquet")
    told = arguments(tmp_path, lanes=lanes, memory=14, policy="dgl", split="even")
    assert main(told) == 0
    out, err = capsys.readouterr()
    assert ("hash lanes in place of one cost" in " ".join(out.split())) == warned
    assert ("warning: 9 hash lanes" in err) == warned
    assert ("give fewer --lanes" in err) == warned


def test_words() -> None:
    cost = {"points": MOST_POINTS, "low": 1.0, "high": 3.04, "stretches": 8, "share": 0.5}
    lanes = {"per_group": 4, "cost": cost}
    assert cost_of_lanes(lanes) == (
        "4 hash lanes in place of one cost 2.0 points of recall, estimated on 8 stretches "
        "(95 % interval 1.0 to 3.0)"
    )
    assert warning_of({"lanes": lanes}) is None
    cost["points"] = 2.01
    assert "more --memory" in str(warning_of({"lanes": lanes}))
    assert warning_of({"lanes": {"per_group": 4, "cost": None}}) is None
    assert warning_of({}) is None
