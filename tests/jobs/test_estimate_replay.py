"""Estimates of replays: those of whole replays where all is read, and true elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estimate_cases import JOIN, large, streams, written

import winnow
from engine.api.estimate import EstimateFound
from engine.jobs.estimate import budgeted, decide, recall, replay_task, replays
from engine.jobs.estimate.replay_task import ReplayTask
from engine.jobs.sweep import task
from engine.lanes.held import Held
from engine.replay.lane import LaneReplay
from engine.runtime.errors import InputError, SpecError
from engine.runtime.executors import SerialExecutor, ThreadExecutor
from engine.runtime.streams import StreamBatch

MEASURES = ("recall", "importance_recall", "outputs", "importance")


def answers(found: EstimateFound) -> dict[str, dict[str, Any]]:
    """Return the only row of each measure."""
    return {measure: table.to_pylist()[0] for measure, table in found.aggregates.items()}


def truth(options: dict[str, Any], folder: Path) -> dict[str, float]:
    """Return what a replay comes to."""
    report = winnow.replay(**options, cache=folder / "cache").report
    return {
        "recall": report["recall"],
        "importance_recall": report["importance_recall"],
        "outputs": report["result"]["outputs"],
        "importance": report["result"]["importance"],
    }


@pytest.mark.parametrize(
    "options",
    [
        {"memory": 9, "policy": "prob"},
        {"memory": "20%", "policy": "dgl", "estimator": "window"},
        {"memory": "30%", "policy": "dimpprob", "split": "expected"},
        {"memory": "30%", "policy": "simp", "split": "pooled"},
        {"memory": "25%", "policy": "yield"},
        {"memory": "25%", "policy": "age", "estimator": "history"},
        {"memory": "25%", "policy": "rand", "split": "0.3", "seed": 5},
        {"memory_left": 7, "policy": "prob", "estimator": "history", "params": {}},
        {"memory": 8, "policy": "dgl", "params": {"alpha": 3.0}, "probe": "after_admission"},
        {"memory": 8, "policy": "prob", "start_ts": 400, "combine": "product"},
    ],
)
def test_of_everything_it_is_the_replay(tmp_path: Path, options: dict[str, Any]) -> None:
    """So few rows are replayed from end to end, from row groups that overlap."""
    tables = streams(4)
    swapped = np.arange(300)
    swapped[100:120] = swapped[100:120][::-1]  # two row groups that are not in order
    tables[0] = tables[0].take(pa.array(swapped))
    given = {
        **written(tmp_path, tables, 10), "on": "k", "time": "t", "importance": "w",
        "window_left": 40, "window_right": 25, **options,
    }  # fmt: skip
    found = winnow.estimate(**given, within=0.001)
    assert found.report["how"] == "whole replay"
    wanted = truth(given, tmp_path)
    for measure, line in answers(found).items():
        assert line["estimate"] == pytest.approx(wanted[measure], rel=1e-12), measure
        assert line["low"] == line["estimate"] == line["high"]
        assert line["no_interval"] is None
    replayed = winnow.replay(**given, cache=tmp_path / "cache").report["memory"]
    assert found.report["memory"].items() <= replayed.items()


def test_a_sample_reads_a_part_and_its_intervals_hold_the_truth(tmp_path: Path) -> None:
    places = large(tmp_path)
    for policy, split, estimator in (
        ("prob", "even", "memory"), ("dgl", "pooled", "window"), ("rand", "even", "memory"),
    ):  # fmt: skip
        given = {
            **places, **JOIN, "memory": "20%", "policy": policy, "split": split,
            "estimator": estimator,
        }  # fmt: skip
        found = winnow.estimate(**given, within="4%")
        assert found.report["how"] == "sample"
        assert found.report["read"]["share"] < 0.5
        wanted = truth(given, tmp_path)
        for measure, line in answers(found).items():
            assert line["low"] < wanted[measure] < line["high"], (policy, measure)
        lead = found.report["lead_in"]
        assert lead["lifetimes"] > lead["compared_with"]
        assert lead["stretches"] >= 4
        assert lead["loses_keys"] == (policy == "prob")
        reached = found.report["within"]["reached"]
        line = answers(found)["recall"]
        assert reached <= 0.04
        farther = max(line["high"] - line["estimate"], line["estimate"] - line["low"])
        assert farther >= reached * (1 - 1e-9)


def test_without_the_lead_ins_error_the_interval_would_be_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After one window memories are not what they would be; almost every slice is replayed."""
    monkeypatch.setattr(replays, "LEAD", 1)
    monkeypatch.setattr(replays, "SHORT", 0)
    monkeypatch.setattr(budgeted, "LIFETIMES", (3, 3))
    monkeypatch.setattr(decide, "HALF", 9.0)
    given = {**large(tmp_path), **JOIN, "window": 60, "memory": "30%", "policy": "dgl"}
    wanted = truth(given, tmp_path)["recall"]
    line = answers(winnow.estimate(**given, within="0.05%"))["recall"]
    assert line["low"] < wanted < line["high"]
    monkeypatch.setattr(recall, "with_left_over", lambda found, *_: found)
    line = answers(winnow.estimate(**given, within="0.05%"))["recall"]
    assert line["no_interval"] is None
    assert line["high"] - line["low"] < 0.0011
    assert not line["low"] <= wanted <= line["high"]


def _in_step(folder: Path, keys: int = 30, rounds: int = 7_500) -> dict[str, Any]:
    """Write two streams of sensors that send at equal intervals: a key that is lost stays so."""
    rng = np.random.default_rng(0)
    for side in ("left", "right"):
        ts = (rng.uniform(0, 20, (keys, 1)) + 20 * np.arange(rounds)).astype(np.int64).ravel()
        order = np.argsort(ts, kind="stable")
        table = pa.table({"t": ts[order], "k": np.repeat(np.arange(keys), rounds)[order]})
        pq.write_table(table, folder / f"{side}.parquet", row_group_size=100)
    given = {"on": "k", "time": "t", "window": 100, "memory": 12, "policy": "prob"}
    return {side: folder / f"{side}.parquet" for side in ("left", "right")} | given


def test_where_a_replay_does_not_forget_how_it_began_the_interval_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = _in_step(tmp_path)
    wanted = truth(given, tmp_path)["recall"]
    found = winnow.estimate(**given, read="30%")
    line = answers(found)["recall"]
    assert line["low"] < wanted < line["high"]
    assert abs(found.report["lead_in"]["share"]) > 0.05
    forgets = winnow.estimate(**given, read="30%", estimator="window")
    assert abs(forgets.report["lead_in"]["share"]) < 0.01
    monkeypatch.setattr(recall, "with_left_over", lambda found, *_: found)
    line = answers(winnow.estimate(**given, read="30%"))["recall"]
    assert not line["low"] <= wanted <= line["high"]


def test_where_one_beginning_keeps_other_keys_than_another_the_interval_shows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The differences of stretches cancel out; those of one whole replay do not."""
    given = _in_step(tmp_path) | {"policy": "dgl"}
    wanted = truth(given, tmp_path)["recall"]
    found = winnow.estimate(**given, read="30%")
    line = answers(found)["recall"]
    assert line["low"] < wanted < line["high"]
    assert found.report["lead_in"]["lasting"] > 0.02
    forgets = winnow.estimate(**given, read="30%", estimator="window")
    assert forgets.report["lead_in"]["lasting"] < 0.01
    own = recall.left_over
    monkeypatch.setattr(recall, "left_over", lambda *some: own(*some)._replace(alike=0.0))
    line = answers(winnow.estimate(**given, read="30%"))["recall"]
    assert not line["low"] <= wanted <= line["high"]


def test_half_of_the_keys_arrive_in_the_last_part_of_the_lead_in_alone() -> None:
    rng = np.random.default_rng(1)
    ts = np.sort(rng.integers(0, 100, 4000))
    tuples = StreamBatch(ts, np.arange(4000), rng.integers(-50, 50, 4000), rng.random(4000))
    halves = []
    for place in (6, 7):
        task = ReplayTask(place, (), (), (), 60, {}, ())
        found = replay_task.without_half(Held(tuples), task)
        kept = np.isin(tuples.row, found.tuples.row)
        assert kept[ts >= 60].all()
        halves.append({*tuples.key[kept & (ts < 60)].tolist()})
        assert {*tuples.key[~kept].tolist()}.isdisjoint(halves[-1])
        for own, whole in zip(found.tuples, tuples, strict=True):
            assert (own == whole[kept]).all()
    assert halves[0].isdisjoint(halves[1])
    assert len(halves[0] | halves[1]) == 100
    assert 30 < len(halves[0]) < 70


def test_the_same_seed_gives_the_same_estimate_on_any_executor(tmp_path: Path) -> None:
    given = {**large(tmp_path), **JOIN, "memory": "20%", "policy": "prob", "within": "2%"}
    runs = [
        winnow.estimate(**given, seed=4, executor=executor)
        for executor in (SerialExecutor(), ThreadExecutor(3))
    ]
    assert runs[0].aggregates == runs[1].aggregates
    assert winnow.estimate(**given, seed=5).aggregates != runs[0].aggregates


def test_policies_that_learn_have_no_interval(tmp_path: Path) -> None:
    given = {**large(tmp_path), **JOIN, "memory": "20%", "read": "30%"}
    for own in ({"policy": "yield"}, {"policy": "dgl", "estimator": "history"}):
        for line in answers(winnow.estimate(**given, **own)).values():
            assert line["low"] is None
            assert line["no_interval"].startswith("it goes by all that has arrived before")
            assert line["estimate"] > 0


def test_time_parts_have_the_recall_of_their_own(tmp_path: Path) -> None:
    given = {**large(tmp_path), **JOIN, "memory": "20%", "policy": "prob"}
    found = winnow.estimate(**given, read="45%")
    parts = [part["estimate"] for part in found.report["by_time"] if part["estimate"] is not None]
    line = answers(found)["recall"]
    assert len(parts) == found.report["slices"]["drawn"] // 5 > 3
    assert min(parts) < line["estimate"] < max(parts)
    known = [part["no_interval"] is None for part in found.report["by_time"]]
    assert sum(known) >= 0.75 * len(parts)


def test_bad_rows_are_errors_or_set_aside(tmp_path: Path) -> None:
    tables = streams(2)
    weights = np.array(tables[1].column("w").to_pylist())
    weights[[7, 8]] = -1
    tables[1] = tables[1].set_column(2, "w", pa.array(weights))
    given = {
        **written(tmp_path, tables, 20), **JOIN, "importance": "w", "memory": 9, "policy": "prob",
    }  # fmt: skip
    with pytest.raises(InputError, match=r"right\.parquet: column w: 2 rows are .*\(rows 7, 8\)"):
        winnow.estimate(**given)
    given["bad_rows"] = "quarantine"
    found = answers(winnow.estimate(**given, within=0.001))
    assert found["outputs"]["estimate"] == truth(given, tmp_path)["outputs"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"memory": 9}, "policy is missing: name the policy whose replay"),
        ({"policy": "prob"}, "policy is of a replay within a memory: give memory"),
        ({"estimator": "window"}, "estimator is of a replay within a memory"),
        ({"memory": 9, "policy": "prob", "aggregates": "count"}, "aggregates? is of the exact"),
        ({"memory": 9, "policy": "prob", "partition_by": "p"}, "a memory of its own"),
        ({"memory": 9, "policy": "auto"}, "policy is auto, and an estimate is of one"),
        ({"memory_left": 9, "policy": "prob", "split": "pooled"}, "splits one memory"),
    ],
)
def test_options_that_do_not_go_together(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    given = {**written(tmp_path, streams(1), 20), **JOIN, **options}
    with pytest.raises(SpecError, match=said):
        winnow.estimate(**given)


def test_streams_of_which_one_has_nothing_to_join(tmp_path: Path) -> None:
    left, _ = streams(1)
    nulls = left.set_column(1, "k", pa.nulls(left.num_rows, pa.int64()))
    given = {**written(tmp_path, [left, nulls], 20), **JOIN, "memory": "50%", "policy": "prob"}
    found = answers(winnow.estimate(**given))
    assert found["recall"]["estimate"] == 1.0
    assert found["outputs"]["estimate"] == 0.0


def test_only_row_groups_of_stretches_are_read_besides_times(tmp_path: Path) -> None:
    """Keys outside are spoilt: a damaged page would be an error."""
    places = large(tmp_path)
    given = {**places, **JOIN, "memory": "20%", "policy": "prob", "read": "20%"}
    before = winnow.estimate(**given)
    assert before.report["read"]["share"] < 0.25
    assert before.report["pass"] == pytest.approx(
        1 - sum(_bytes(path, "k") for path in places.values()) / before.report["exact"]["bytes"]
    )


def _bytes(path: str, name: str) -> int:
    footer = pq.read_metadata(path)
    groups = (footer.row_group(i) for i in range(footer.num_row_groups))
    columns = (group.column(i) for group in groups for i in range(footer.num_columns))
    return sum(own.total_compressed_size for own in columns if own.path_in_schema == name)


def test_one_policy_does_not_have_the_kernel_for_all_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: set[bool] = set()
    made = task.LaneReplay

    def noted(*arguments: Any, **options: Any) -> LaneReplay:
        given.add(options["spares"])
        return made(*arguments, **options)

    monkeypatch.setattr(task, "LaneReplay", noted)
    options = {**large(tmp_path), **JOIN}
    winnow.estimate(**options, memory="20%", policy="prob", within="4%")
    assert given == {False}
