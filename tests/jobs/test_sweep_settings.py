"""Sweeps over splits, estimators and lanes: each cell is its own replay, and the advice runs."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from fact_job_cases import JOIN, NAMES, fact_table
from fact_job_cases import case as through_facts
from job_cases import table
from options_given import line_of
from sweep_cases import COMMON, FIGURES, alone, drifting, swept

import winnow
from engine.commands import main
from engine.jobs.replay import run as replay_run
from engine.jobs.sweep import run as sweep_run
from engine.jobs.sweep import task
from engine.options import cells
from engine.options.budget import SPLITS, Split
from engine.policies import POLICIES, SAMPLING
from engine.runtime.errors import SpecError

EVERY = [name for name in POLICIES if name != "custom"]
SUMS = {"exact_importance", "importance_recall"}
"""Figures of several lanes, which may add up in another order."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return drifting(tmp_path_factory.mktemp("settings"))


def kinds(lines: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(line["policy"], line["split"], line["estimator"], line["lanes"]) for line in lines]


@pytest.mark.parametrize(
    "grid",
    [
        {"policies": EVERY, "splits": "even,expected,pooled,0.8", "memory": "13,30%"},
        {"policies": "simp,prob,dgl,age", "estimators": "all", "lanes": "1,3", "memory": "20%",
         "splits": ["expected", 0.3], "windows": "4,9"},
        {"policies": "dimpprob,rand", "splits": "expected,1", "partition_by": "g", "lanes": [2, 1],
         "memory": "8", "seeds": "0,4"},
    ],
)  # fmt: skip
def test_every_cell_equals_its_own_replay(folder: Path, grid: dict[str, Any]) -> None:
    lines = swept(folder, **grid).table.to_pylist()
    shared = {name: own for name, own in grid.items() if name == "partition_by"}
    for line in lines:
        own = alone(folder, line, {}, **shared)
        for name in FIGURES:
            wanted = pytest.approx(own[name], rel=1e-12) if name in SUMS else own[name]
            assert line[name] == wanted, (line, name)
    assert [line["cell"] for line in lines] == list(range(len(lines)))
    assert len({tuple(line[name] for name in FIGURES) for line in lines}) > len(lines) // 3


def test_policies_that_count_no_matches_are_replayed_once(folder: Path) -> None:
    lines = swept(
        folder, policies="yield,dgl,recent", estimators="history,memory"
    ).table.to_pylist()
    assert kinds(lines) == [
        ("yield", "even", None, 1), ("dgl", "even", "history", 1), ("dgl", "even", "memory", 1),
        ("recent", "even", None, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_the_estimator_matters_where_a_policy_says_so(folder: Path, name: str) -> None:
    left, right = (pq.read_table(folder / f"{side}.parquet") for side in ("left", "right"))
    found = [
        winnow.replay(
            left, right, **COMMON, window=30, memory=20, policy=name, estimator=estimator
        ).outputs
        for estimator in ("memory", "window", "history")
    ]
    same = all(one.equals(found[0]) for one in found)
    assert same is not POLICIES[name].estimates


def test_samples_count_no_matches() -> None:
    assert not any(policy.estimates for policy in SAMPLING.values())


def test_the_exact_join_is_counted_once_for_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = []
    true = task.ExactCounter
    monkeypatch.setattr(task, "ExactCounter", lambda own: counted.append(own.windows) or true(own))
    found = swept(folder, policies="dgl", lanes="1,2", splits="even,0.5", windows="4,9")
    assert counted == [(4, 4), (9, 9)]
    assert found.table.num_rows == 8


def words(folder: Path, **options: Any) -> list[str]:
    told = {
        "engine": "local", "left": folder / "left.parquet", "right": folder / "right.parquet",
        "on": "k", "time": "t", "importance": "i", "cache": folder / "cache", "windows": "9,30",
        "memory": "10%:90%:x1.17", "policies": "dgl,simp,multiplicative",
        "splits": "even,expected,0.55", "estimators": "all", "lanes": "1,2",
    } | options  # fmt: skip
    return line_of("sweep", told)


@pytest.mark.parametrize(
    "options",
    [
        {"target": "recall=0.5"},
        {"target": "importance_recall=0.6", "start_ts": 60,
         "param": "multiplicative.A=0.3333333333"},
        {"target": "recall=0.3", "policies": "rand", "seeds": "7,-2", "lanes": 3, "splits": "0.7"},
        {"target": "recall=0.4", "policies": "age", "param": "curve=3,2,1", "partition_by": "g"},
        {"target": "recall=0.4", "policies": "custom", "param": "function=replay_cases:remaining",
         "combine": "max", "probe": "after_admission"},
    ],
)  # fmt: skip
def test_the_advised_command_gives_the_advised_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any]
) -> None:
    place = tmp_path / "it's here"
    place.mkdir()
    folder = drifting(place)
    report = tmp_path / "report.json"
    assert main(words(folder, report=report, **options)) == 0
    shown = capsys.readouterr().out
    content = json.loads(report.read_text())
    assert len(content["advice"]) == 2
    for advice in content["advice"]:
        assert advice["check"]["problem"] is None
        pasted = shlex.split(advice["command"])
        assert pasted[:2] == ["winnow", "replay"]
        assert main([*pasted[1:], "--report", str(tmp_path / "again.json")]) == 0
        again = json.loads((tmp_path / "again.json").read_text())
        measure = advice["target"]["measure"]
        assert again[measure] == advice["check"][measure]
        if advice["best"]["seeds"] == 1:
            assert again[measure] == pytest.approx(advice["best"][measure], rel=1e-12)
        assert again["memory"]["left"] + again["memory"]["right"] == advice["best"]["tuples"]
        assert again[measure] >= advice["target"]["value"]
    printed = shown[shown.index("winnow replay") :].split("checked:")[0]
    assert shlex.split(printed.replace("\\\n", " ")) == shlex.split(content["advice"][0]["command"])


def test_the_advised_seed_meets_the_target_itself(folder: Path) -> None:
    lines = swept(folder, policies="rand", seeds="0:4").table.to_pylist()
    reached = {line["seed"]: line["recall"] for line in lines}
    mean, seeds = sum(reached.values()) / len(reached), sorted(reached, key=reached.__getitem__)
    (advice,) = swept(folder, policies="rand", seeds=seeds, targets={"recall": mean - 1e-9}).advice
    assert advice.check is not None
    assert reached[seeds[0]] < advice.target.value <= advice.check.recall
    wanted = next(seed for seed in seeds if reached[seed] >= advice.target.value)
    assert advice.options.get("seed", 0) == wanted


def test_the_advised_command_has_the_window_as_it_was_typed(tmp_path: Path) -> None:
    given: dict[str, Any] = {"policies": "simp", "memory": "50%", "targets": {"recall": 0.1}}
    windows = "9s, 1min,4min:8min:4min"
    found = swept(drifting(tmp_path), windows=windows, time_unit="s", **given)
    typed = [own.options["window"] for own in found.advice]
    assert typed == ["9s", "1min", "240", "480"]


def test_the_advice_is_of_the_least_memory_of_all_settings(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    times, keys = np.sort(rng.integers(0, 300, 400)), rng.integers(0, 60, 400)
    for name, later in (("left", 0), ("right", 7)):  # what is on the right comes too late
        rows = [(int(t) + later, int(key), 1.0) for t, key in zip(times, keys, strict=True)]
        pq.write_table(table(rows), tmp_path / f"{name}.parquet")
    grid = {"policies": "dgl,simp,prob", "splits": "even,expected,0.2,0.9", "estimators": "all",
            "memory": "5%:100%:5%", "targets": {"recall": 0.6}}  # fmt: skip
    found = swept(tmp_path, **grid)
    (advice,) = found.advice
    meets = [line for line in found.table.to_pylist() if line["recall"] >= 0.6]
    shares = [float(line["memory"].rstrip("%")) for line in meets]
    assert advice.best is not None
    assert float(advice.best.memory.rstrip("%")) == min(shares)
    even = swept(tmp_path, **grid | {"splits": "even"}).advice[0].best
    assert even is not None
    assert advice.best.tuples < even.tuples


def test_python_replays_the_advice_by_its_options(folder: Path) -> None:
    told: dict[str, Any] = COMMON | {"windows": 9, "memory": "20%:80%:20%", "policies": "dgl,simp"}
    told |= {"splits": ["even", 0.7], "targets": {"recall": 0.4}}
    found = swept(folder, **told)
    best = found.advice[0].best
    again = winnow.replay(**found.advice[0].options).report
    assert again["recall"] == best.recall  # type: ignore[union-attr]
    tables = [pq.read_table(folder / f"{side}.parquet") for side in ("left", "right")]
    advice = winnow.sweep(*tables, **told).advice[0]
    assert advice.command is None
    assert advice.best == best._replace(seconds=advice.best.seconds)  # type: ignore[union-attr]
    replayed = winnow.replay(*tables, **advice.options)
    assert replayed.report["recall"] == best.recall  # type: ignore[union-attr]


def test_a_disagreement_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    true = replay_run.run_replay

    def wrong(*args: Any) -> Any:
        report = true(*args)
        report.content["result"]["outputs"] += 1
        return report

    monkeypatch.setattr(sweep_run, "run_replay", wrong)
    told = words(folder, windows="9", target="recall=0.5", report=folder / "report.json")
    assert main(told) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "ERROR: its own replay has" in shown
    (advice,) = json.loads((folder / "report.json").read_text())["advice"]
    assert "and the sweep" in advice["check"]["problem"]


def test_settings_that_are_equal_are_checked_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = []
    true = replay_run.run_replay
    monkeypatch.setattr(sweep_run, "run_replay", lambda *args: ran.append(args) or true(*args))
    swept(folder, memory="50%", policies="dgl", targets={"recall": 0.1, "importance_recall": 0.1})
    assert len(ran) == 1
    swept(folder, memory="50%", policies="dgl", targets={"recall": 1.0})  # nothing meets it
    assert len(ran) == 1


def test_a_profile_tells_frequencies(folder: Path, tmp_path: Path) -> None:
    files = [str(folder / f"{side}.parquet") for side in ("left", "right")]
    profile = tmp_path / "profile.json"
    assert main([
        "profile", "--engine=local", f"--left={files[0]}", f"--right={files[1]}", "--on=k",
        "--time=t", "--window=9", f"--out={profile}",
    ]) == 0  # fmt: skip
    told: dict[str, Any] = {"policies": "dgl,prob", "splits": "even,expected", "memory": "17"}
    found = swept(folder, **told, profile=profile, targets={"recall": 0.3})
    for line in found.table.to_pylist():
        given = {"profile": profile} if line["split"] == "expected" else {}
        own = alone(folder, line, {}, **given)
        assert {name: line[name] for name in FIGURES} == own
    assert found.advice[0].check is not None
    assert found.advice[0].check.problem is None
    with pytest.raises(SpecError, match="profile tells the curves of policy age and"):
        swept(folder, policies="dgl", profile=profile)


def test_pairs_that_cannot_be_replayed_are_left_out() -> None:
    one = through_facts(9)
    told: Any = {k: v for k, v in (JOIN | NAMES).items() if k != "window"}
    told |= {"fact": fact_table(one.facts), "windows": 9, "memory": 12}
    found = winnow.sweep(
        *one.tables,
        policies="prob,age",
        splits="even,expected,0.25",
        **told,
        targets={"recall": 0.1},
    )
    lines = found.outputs.to_pylist()
    assert [pair[:2] for pair in kinds(lines)] == [
        ("prob", "even"), ("prob", "0.25"), ("age", "even"), ("age", "expected"), ("age", "0.25"),
    ]  # fmt: skip
    (left_out,) = found.report["grid"]["left_out"]
    assert (left_out["policy"], left_out["split"]) == ("prob", "expected")
    assert "joined through facts" in left_out["reason"]
    assert found.advice[0].check.problem is None  # type: ignore[union-attr]
    for policies, splits in (("prob,dgl", "even,expected"), ("prob,age", "expected")):
        with pytest.raises(SpecError, match=r"split expected goes by .* \(policy prob\)"):
            winnow.sweep(*one.tables, policies=policies, splits=splits, **told)


def test_what_does_not_compare_across_sides_is_left_out(folder: Path) -> None:
    told = {"splits": "pooled", "estimators": "history"}
    found = swept(folder, policies="dimpprob,prob", **told)
    assert {line["policy"] for line in found.table.to_pylist()} == {"prob"}
    (left_out,) = found.report["grid"]["left_out"]
    assert (left_out["policy"], left_out["split"]) == ("dimpprob", "pooled")
    with pytest.raises(SpecError, match=r"dimpprob changes every priority at every instant"):
        swept(folder, policies="dimpprob", **told)


def test_every_named_split_is_swept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = swept(folder, policies="simp", splits="all").table.to_pylist()
    assert [line["split"] for line in lines] == list(SPLITS)
    asked: list[Split] = []
    monkeypatch.setattr(cells, "check_split", lambda split, *_, **__: asked.append(split))
    swept(folder, policies="simp", splits="all")
    assert asked == list(SPLITS.values())


def test_options_of_one_side_are_named(folder: Path) -> None:
    for name, instead in (("window_left", "windows"), ("memory_left", "memory")):
        with pytest.raises(TypeError, match=f"unexpected keyword '{name}': give {instead}"):
            swept(folder, **{name: 3})


def test_the_best_possible_of_one_memory_is_that_of_any_split(folder: Path) -> None:
    lines = swept(
        folder, policies="dgl", splits="even,pooled", memory="20%", bound=True
    ).table.to_pylist()
    even, one = lines
    assert even["best_upper"] <= one["best_upper"] == one["best_any_upper"]
    assert even["best_any_upper"] == one["best_any_upper"]
    assert one["importance"] <= one["best_upper"] * (1 + 1e-12)
