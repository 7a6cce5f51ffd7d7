"""Replays whose exact join is not counted beside: the same rows, and no word of what was lost."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fact_job_cases import JOIN, NAMES, case
from hypothesis import given, settings
from hypothesis import strategies as st
from job_cases import Noting, by_row, oracle, outputs_of, streams, winnow
from spark_cases import figures, job, replayed, write

from engine.commands import main
from engine.exact.stream import ExactStream
from engine.jobs import age_curves
from engine.jobs.exact import key_totals as keys
from engine.jobs.replay import lane_task, slices
from engine.jobs.replay.run import run_replay
from engine.lanes import reader
from engine.lanes import write as lanefiles
from engine.policies import POLICIES
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, SerialExecutor, ThreadExecutor
from spark_plugin.executor import SparkExecutor
from winnow import replay

COMPARED = {"exact", "recall", "importance_recall", "lost"}
NUMBERED = [name for name in sorted(POLICIES) if name != "custom"]


def uncounted(content: dict[str, Any]) -> dict[str, Any]:
    """Return what a report is to say where the exact join was not counted."""
    return {name: value for name, value in content.items() if name not in COMPARED}


class NoExactJoin:
    """Fails where an exact join is begun."""

    def __init__(self, *_: Any) -> None:
        raise AssertionError("an exact join is counted")


@pytest.fixture
def archives(tmp_path: Path) -> Path:
    streams(tmp_path, seed=5, rows=300)
    return tmp_path


@pytest.mark.parametrize("policy", NUMBERED)
def test_rows_and_figures_are_those_beside_the_exact_join(
    archives: Path, monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    place = NUMBERED.index(policy)
    given: dict[str, Any] = {
        "policy": policy,
        "estimator": ("memory", "window", "history")[place % 3],
        "probe": ("before_admission", "after_admission")[place % 2],
        "lanes": 1 + place % 3,
        "memory": ("12", "20%")[place % 2],
        "start_ts": (None, 40)[place % 2],
        "columns": ("all", "ids")[place % 2],
    }
    given |= {"params": {"curve": "0.5,0.25,0.5"}} if policy == "age" else {}
    rows, report = replayed(archives, **given)
    monkeypatch.setattr(lane_task, "ExactStream", NoExactJoin)
    alone, other = replayed(archives, **given, reference="none")
    assert rows.num_rows > 0
    assert alone.equals(rows)
    wanted = uncounted(dict(figures(report)))
    if policy == "age":
        del wanted["predicted"]
    assert figures(other) == wanted
    assert report.content.keys() >= COMPARED


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10_000), st.sampled_from(["dgl", "prob", "rand"]), st.sampled_from([0, 1, 7, 40])
)
def test_keys_that_come_and_go(seed: int, policy: str, budget: int) -> None:
    """Ids are dropped at every turn and given out again; beside the exact join they all stay."""
    rng = np.random.default_rng(seed)
    sides = [
        pa.table(
            {
                "t": np.cumsum(rng.integers(0, 3, 120)),
                "k": rng.integers(0, 8, 120) + np.arange(120) // 10 * 5,
                "i": rng.choice([0.0, 1.0, 2.5], 120),
            }
        )
        for _ in range(2)
    ]
    arguments: dict[str, Any] = {
        "on": "k", "time": "t", "importance": "i", "window": 9, "memory": budget, "policy": policy,
    }  # fmt: skip
    beside = replay(*sides, **arguments)
    with pytest.MonkeyPatch.context() as dropping:
        dropping.setattr(keys, "IDLE", 1)
        batches = partial(reader.lane_batches, batch_rows=16)
        dropping.setattr(lane_task, "lane_batches", batches)
        alone = replay(*sides, **arguments, reference="none")
    assert alone.outputs.equals(beside.outputs)
    assert alone.report["result"] == beside.report["result"]
    assert alone.report["peak_memory"] == beside.report["peak_memory"]


def test_rows_are_the_oracles(archives: Path) -> None:
    made = streams(archives, seed=5, rows=300)
    found = winnow(archives, reference="none", policy="simpprob")
    wanted = oracle(made.left, made.right, policy="simpprob")
    assert found.outputs == by_row(wanted)
    assert not COMPARED & found.report.keys()
    assert found.report["result"]["outputs"] == len(wanted)


def test_nothing_is_kept_nor_looked_up(archives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def replay(**options: Any) -> dict[str, Any]:
        job_options = job(archives, None, archives / "lanes", lanes=2, policy="prob", **options)
        return dict(figures(run_replay(job_options, SerialExecutor())))

    alone = replay(reference="none")
    assert not list(archives.glob("lanes/*/lane-*/exact-*"))
    beside = replay()
    assert len(list(archives.glob("lanes/*/lane-*/exact-*"))) == 2
    monkeypatch.setattr(lane_task, "ExactStream", NoExactJoin)
    assert replay(reference="none") == alone == uncounted(beside)
    assert replay() == beside


def test_a_heavy_lane_is_not_counted_ahead(archives: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanefiles, "GROUP_ROWS", 16)
    monkeypatch.setattr(slices, "SLICE_ROWS", 50)
    monkeypatch.setattr(slices, "_WINDOWS", 0)
    ran = {}
    for reference in ("exact", "none"):
        noting = Noting()
        replayed(archives, noting, policy="prob", reference=reference)
        ran[reference] = [name for name, _ in noting.ran]
    assert slices.count_slice.__name__ in ran["exact"]
    assert slices.count_slice.__name__ not in ran["none"]


@pytest.mark.parametrize("policy", ["age", "dgl"])
def test_through_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str) -> None:
    """A pass that measures age curves is no exact join beside, and is made all the same."""
    paths = case(4).written(tmp_path)
    given: Any = JOIN | NAMES | {"fact": paths["fact"], "policy": policy, "memory": 20}
    out = {name: tmp_path / name for name in ("exact", "none")}
    beside = replay(paths["left"], paths["right"], out=out["exact"], **given).report
    begun = []

    def noted(*args: Any, **how: Any) -> ExactStream:
        begun.append(args)
        return ExactStream(*args, **how)

    for module in (lane_task, age_curves):
        monkeypatch.setattr(module, "ExactStream", noted)
    alone = replay(paths["left"], paths["right"], out=out["none"], reference="none", **given).report
    assert len(begun) == (1 if policy == "age" else 0)
    assert outputs_of(pq.read_table(out["none"])) == outputs_of(pq.read_table(out["exact"]))
    assert alone["result"] == beside["result"]
    assert not (COMPARED | {"predicted"}) & alone.keys()


def test_a_plan_is_followed_and_the_best_possible_told(archives: Path) -> None:
    command: list[str] = ["--on=k", "--time=t", "--importance=i", "--window=9", "--memory=12"]
    command += [f"--{side}={archives}/{side}.parquet" for side in ("left", "right")]
    command += ["--engine=local", f"--cache={archives}/cache"]
    assert main(["bound", *command, f"--out={archives}/plan", f"--report={archives}/b.json"]) == 0
    bound = json.loads((archives / "b.json").read_text())
    plan = winnow(archives, plan=archives / "plan", reference="none", policy=None)
    assert plan.report["result"]["importance"] == pytest.approx(bound["importance"])
    assert not COMPARED & plan.report.keys()
    (archives / "out").rename(archives / "planned")
    best = winnow(archives, reference="none", bound="flow").report
    for told in (best["bound"], best["bound"]["any_split"]):
        assert told["share_of_best"]["least"] == pytest.approx(
            best["result"]["importance"] / told["upper"]
        )
    assert told["upper"] == pytest.approx(bound["upper"])


@pytest.mark.parametrize("policy", ["dgl", "prob"])
def test_engines_agree(archives: Path, spark: Any, policy: str) -> None:
    given = {"policy": policy, "lanes": 3, "memory": "30%", "reference": "none"}
    executors: list[Executor] = [SerialExecutor(), ThreadExecutor(), SparkExecutor(spark)]
    found = [replayed(archives, executor, **given) for executor in executors]
    for rows, report in found:
        assert rows.equals(found[0][0])
        assert figures(report) == figures(found[0][1])
        assert not COMPARED & report.content.keys()


def test_the_frequency_model_still_predicts(archives: Path) -> None:
    given = {"policy": "prob", "split": "expected", "memory": "20%", "estimator": "history"}
    beside, alone = (
        replayed(archives, **given, reference=name)[1].content for name in ("exact", "none")
    )
    assert alone["predicted"] == beside["predicted"]


def test_empty_streams(tmp_path: Path) -> None:
    none = pa.table({name: pa.array([], pa.int64()) for name in ("t", "k", "i")})
    write(tmp_path, none, none)
    rows, report = replayed(tmp_path, reference="none")
    assert rows.num_rows == report.content["result"]["outputs"] == 0
    assert not COMPARED & report.content.keys()


def test_the_terminal_says_so(archives: Path, capsys: pytest.CaptureFixture[str]) -> None:
    winnow(archives, reference="none")
    said = capsys.readouterr().out
    assert "the exact join was not counted" in said
    assert "recall" not in said
    assert "keys that lost most" not in said


def test_a_job_file_may_say_so(archives: Path) -> None:
    (archives / "job.toml").write_text('reference = "none"\n')
    assert not COMPARED & winnow(archives, job=archives / "job.toml").report.keys()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"memory": None}, "--reference none leaves the exact join beside an approximate one"),
        ({"reference": "exat"}, "--reference is 'exat'; choose one of exact, none. Did you mean"),
    ],
)
def test_what_means_nothing(archives: Path, options: dict[str, Any], said: str) -> None:
    given: dict[str, Any] = {"memory": 12, "reference": "none"} | options
    with pytest.raises(SpecError, match=said):
        job(archives, None, archives / "lanes", **given)
