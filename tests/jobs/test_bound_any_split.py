"""The best possible over any split of the memory: what it is of, and what is compared with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import naive_optimum as oracle
import pytest
from job_cases import MEMORY, WINDOW, Streams, arguments, streams

from engine.commands import main


@pytest.fixture(name="case", scope="module")
def _case(tmp_path_factory: pytest.TempPathFactory) -> Streams:
    return streams(tmp_path_factory.mktemp("bound"), seed=11, rows=200)


def run(command: str, case: Streams, folder: Path, **options: Any) -> dict[str, Any]:
    """Run a command on the case's streams and return its report."""
    report = folder / f"{command}.json"
    given = {"out": None, "report": report, "cache": folder / "cache", "policy": None} | options
    flags = [f"--{name}" for name, value in given.items() if value is True]
    rest = {name: value for name, value in given.items() if value is not True}
    assert main([command, *arguments(case.folder, **rest)[1:], *flags]) == 0
    content: dict[str, Any] = json.loads(report.read_text())
    return content


def test_it_is_the_oracles(tmp_path: Path) -> None:
    small = streams(tmp_path, seed=3, rows=24)
    for memory in (2, 3):
        found = run("bound", small, tmp_path, memory=memory, method="flow")
        half = {"budget_left": memory - memory // 2, "budget_right": memory // 2}
        windows = {"window_left": WINDOW, "window_right": WINDOW}
        best = oracle.optimum(small.left, small.right, **windows, **half, shared=True)
        assert found["lower"] == found["upper"] == pytest.approx(best.value, rel=1e-12)
        assert found["memory"]["both"] == memory


def test_no_split_of_a_replay_or_a_bound_is_better(tmp_path: Path, case: Streams) -> None:
    best = run("bound", case, tmp_path)
    assert best["memory"] == {
        "left": None, "right": None, "both": MEMORY, "split": "any",
        "asked": {"left": str(MEMORY // 2), "right": str(MEMORY // 2)},
    }  # fmt: skip
    for split in ("even", "expected", 0, 0.3, 0.8, 1):
        own = run("bound", case, tmp_path, split=split)
        assert own["memory"]["split"] == str(split)
        assert own["memory"]["left"] + own["memory"]["right"] == own["memory"]["both"] == MEMORY
        assert own["upper"] <= best["lower"] * (1 + 1e-12)
        told = run("replay", case, tmp_path, split=split, policy="simpprob", bound=True)
        assert told["result"]["importance"] <= told["bound"]["lower"] * (1 + 1e-12)
        assert told["bound"]["lower"] == pytest.approx(own["lower"], rel=1e-12)
        assert told["bound"]["any_split"]["lower"] == pytest.approx(best["lower"], rel=1e-12)


def test_budgets_of_two_sides_are_one_memory_of_their_sum(tmp_path: Path, case: Streams) -> None:
    best = run("bound", case, tmp_path)["lower"]
    given = {"memory": None, "memory_left": 3, "memory_right": MEMORY - 3}
    assert run("bound", case, tmp_path, **given)["lower"] == best
    as_given = run("bound", case, tmp_path, split="even", **given)
    assert (as_given["memory"]["left"], as_given["memory"]["right"]) == (3, MEMORY - 3)
    assert as_given["upper"] < best
    plan = tmp_path / "plan"
    run("bound", case, tmp_path, out=plan, **given)
    done = run("replay", case, tmp_path, plan=plan, memory=MEMORY)
    assert done["result"]["importance"] == pytest.approx(best, rel=1e-12)
    assert done["peak_memory"]["left"] > 3
    assert done["peak_memory"]["both"] <= MEMORY
    assert done["memory"]["split"] == "pooled"


def test_a_plan_must_fit_the_budgets_of_the_sides(
    tmp_path: Path, case: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"memory": None, "memory_left": 3, "memory_right": MEMORY - 3}
    plans = {split: tmp_path / split for split in ("any", "even")}
    for split, plan in plans.items():
        best = run("bound", case, tmp_path, split=split, out=plan, **given)["importance"]
    done = run("replay", case, tmp_path, plan=plans["even"], bound=True, **given)
    assert done["result"]["importance"] == pytest.approx(best, rel=1e-12)
    assert done["peak_memory"]["left"] <= 3
    assert done["memory"]["left"] == 3
    assert done["memory"]["split"] == "even"
    assert done["bound"]["lower"] == pytest.approx(best, rel=1e-12)
    assert done["bound"]["any_split"]["lower"] > best
    words = arguments(case.folder, plan=plans["any"], out=None, report=None, **given)
    assert main(words) == 2
    assert (
        "left tuples at once with probe before_admission, and its memory is 3: give the plan"
        in (capsys.readouterr().err)
    )


def test_a_pooled_replay_has_but_one_best_possible(tmp_path: Path, case: Streams) -> None:
    best, again = (run("bound", case, tmp_path, **own) for own in ({}, {"split": "pooled"}))
    assert (again["lower"], again["memory"]) == (best["lower"], best["memory"])
    told = run("replay", case, tmp_path, split="pooled", policy="simpprob", bound=True)
    own = {name: value for name, value in told["bound"].items() if name != "any_split"}
    assert own == told["bound"]["any_split"]
    assert own["lower"] == own["upper"] == pytest.approx(best["lower"], rel=1e-12)
    assert told["result"]["importance"] <= own["lower"]


def test_a_percentage_is_of_both_peaks(tmp_path: Path, case: Streams) -> None:
    given = {"memory": "30%", "window": None, "window_left": 3, "window_right": 20}
    found = run("bound", case, tmp_path, **given)
    split = run("bound", case, tmp_path, split=0.5, **given)
    assert found["memory"]["both"] == split["memory"]["left"] + split["memory"]["right"]


def test_with_a_limit_on_one_side_only_there_is_nothing_to_split(
    tmp_path: Path, case: Streams, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"memory": None, "memory_left": 3}
    found, even = (run("bound", case, tmp_path, **given | own) for own in ({}, {"split": "even"}))
    assert found["memory"] == even["memory"]
    assert found["memory"]["split"] == "even"
    assert found["lower"] == even["lower"]
    told = run("replay", case, tmp_path, bound=True, policy="rand", **given)
    assert told["bound"]["lower"] == pytest.approx(even["lower"])
    assert told["bound"]["any_split"] is None
    words = arguments(case.folder, out=None, report=None, policy=None, split="any", **given)
    assert main(["bound", *words[1:]]) == 2
    assert "--split any divides one memory over both streams, and one of them has no limit" in (
        capsys.readouterr().err
    )


def test_hash_lanes_share_the_memory(tmp_path: Path, case: Streams) -> None:
    best = run("bound", case, tmp_path)
    plan = tmp_path / "plan"
    lanes = run("bound", case, tmp_path, lanes=3, out=plan)
    for name in ("lower", "upper", "exact"):
        assert lanes[name] == pytest.approx(best[name], rel=1e-12)
    assert lanes["memory"] == best["memory"]
    apart = run("bound", case, tmp_path, lanes=3, split="even")
    assert apart["upper"] < best["lower"]
    done = run("replay", case, tmp_path, lanes=3, plan=plan)
    assert done["result"]["importance"] == pytest.approx(best["lower"], rel=1e-12)
    assert done["peak_memory"]["both"] == MEMORY
    told = run("replay", case, tmp_path, lanes=3, policy="simp", bound=True)["bound"]
    assert told["lower"] == pytest.approx(apart["lower"], rel=1e-12)
    assert told["any_split"]["lower"] == pytest.approx(best["lower"], rel=1e-12)


def test_memory_for_all_leaves_nothing_to_split(tmp_path: Path, case: Streams) -> None:
    told = run("replay", case, tmp_path, memory="100%", policy="rand", bound=True)["bound"]
    same = {name: value for name, value in told.items() if name != "any_split"}
    assert told["any_split"] == same
    assert same["share_of_best"] == {"least": 1.0, "most": 1.0}


def test_a_split_that_there_is_not(case: Streams, capsys: pytest.CaptureFixture[str]) -> None:
    words = arguments(case.folder, out=None, report=None, policy=None, split="half")
    assert main(["bound", *words[1:]]) == 2
    assert "--split is 'half'; choose one of any, even, expected, pooled, or give" in (
        capsys.readouterr().err
    )
    words = arguments(case.folder, out=None, report=None, split="any")
    assert main(words) == 2
    assert "--split is 'any'; choose one of even, expected" in capsys.readouterr().err


def test_no_split_has_more_tuples_than_a_replay_whose_percentage_is_rounded_down(
    tmp_path: Path, case: Streams
) -> None:
    told = run("replay", case, tmp_path, memory="3%", policy="simpprob", bound=True)
    assert told["memory"]["both"] == told["memory"]["left"] + told["memory"]["right"] == 0
    assert told["bound"]["any_split"]["lower"] == pytest.approx(told["bound"]["lower"], rel=1e-12)
    best = run("bound", case, tmp_path, memory="3%")
    assert best["memory"]["both"] == 1
    assert best["lower"] > told["bound"]["any_split"]["upper"]
