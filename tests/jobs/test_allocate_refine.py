"""Divisions that replays refine: curves through what was measured, and the best of all rounds."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from allocate_cases import aged, allocated, zipf

from engine.jobs.allocate.recall import RecallModel, calibrated
from engine.models.rate_curve import from_pieces, merged


def model(seed: int) -> RecallModel:
    """Return a model of two sides of a few keys."""
    rng = np.random.default_rng(seed)
    sides = [from_pieces(rng.uniform(0, 20, 6), rng.choice([0.0, 0.5, 2.0], 6)) for _ in range(2)]
    peaks = [int(np.ceil(side.full)) + 1 for side in sides]
    left, right = sides
    free = float(rng.choice([0.0, 3.0]))
    return RecallModel("frequency", (left, right), merged(sides), free, (peaks[0], peaks[1]))


@pytest.mark.parametrize("seed", range(20))
def test_a_curve_goes_through_the_replays_and_never_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = model(seed)
    peak = sum(own.peaks)
    at = np.sort(rng.choice(np.arange(1, peak), 3, replace=False)).tolist()
    predicted = [own.recall(*own.split(memory)) for memory in at]
    # that more memory gave more, as replays nearly always do
    replays = dict(zip(at, np.sort(predicted * rng.uniform(0.8, 1.0, 3)).tolist(), strict=True))
    curve = calibrated(own, replays)
    for memory, recall in replays.items():
        assert curve.at(memory) >= recall - 1e-9
    assert curve.at(at[0]) == pytest.approx(replays[at[0]], abs=0.01)
    told = [curve.at(memory) for memory in np.linspace(0, peak, 500)]
    assert all(a <= b for a, b in itertools.pairwise(told))
    assert curve.at(peak) == pytest.approx(1.0)
    steps = (curve.recall[1:] + curve.recall[:-1]) / 2
    for recall in [*np.linspace(0, 1, 31), *steps]:
        memory = curve.memory_for(float(recall))
        assert curve.at(memory) >= recall - 1e-9
        if memory > 1e-6:
            assert curve.at(memory * (1 - 1e-6)) < recall + 1e-9
    between = (at[0] + at[1]) // 2
    if at[0] < between < at[1]:
        part = (between - at[0]) / (at[1] - at[0])
        factors = [replays[at[i]] / predicted[i] for i in (0, 1)]
        factor = (1 - part) * factors[0] + part * factors[1]
        wanted = factor * own.recall(*own.split(between))
        assert curve.at(between) >= wanted - 0.01


def test_replays_as_predicted_change_nothing() -> None:
    own = model(3)
    exact = {memory: own.recall(*own.split(memory)) for memory in (5, 9, 30)}
    for curve in (calibrated(own, exact), calibrated(own, {})):
        for memory in range(sum(own.peaks) + 1):
            wanted = own.recall(*own.split(memory))
            assert curve.at(memory) == pytest.approx(wanted, abs=1e-3)


def test_a_join_without_outputs_needs_nothing_for_all_of_them() -> None:
    none = from_pieces(np.zeros(1), np.zeros(1))
    curve = calibrated(RecallModel("age", (none, none), none, 0.0, (4, 0)), {0: 1.0, 2: 1.0})
    assert curve.memory_for(1.0) == 0.0
    assert curve.at(3) == 1.0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("refine")


@pytest.fixture(scope="module")
def joins(folder: Path) -> list[dict[str, Any]]:
    return [
        zipf(folder / "DC", "direct", 1, 1.0),
        zipf(folder / "IC", "inverse", 2, 1.0),
        aged(folder / "INC", "increasing", 3) | {"weight": 0.8},
    ]


@pytest.mark.parametrize("memory", ["5%", "20%", "45%"])
def test_what_is_settled_on_replays_best_of_all_rounds(
    folder: Path, joins: list[dict[str, Any]], memory: str
) -> None:
    report = allocated(folder, memory, *joins, refine=3)
    rounds = report["rounds"]
    assert [one["by"] for one in rounds][:2] == ["model", "prop"]
    assert {one["by"] for one in rounds[2:]} <= {"refined"}
    assert len(rounds) <= 2 + report["refine"]
    for one in rounds:
        assert sum(part["memory"] for part in one["joins"]) == report["memory"]["tuples"]
        for what in ("predicted", "replayed"):
            own = [
                part[what] / join["weight"]
                for part, join in zip(one["joins"], report["joins"], strict=True)
            ]
            assert one[what] == min(own)
    given = [tuple(part["memory"] for part in one["joins"]) for one in rounds]
    assert len(set(given[2:])) == len(given[2:])
    best = max(rounds, key=lambda one: one["replayed"])
    settled = next(one for one in rounds if one["settled"])
    assert sum(one["settled"] for one in rounds) == 1
    assert settled == best
    assert [join["alloc"] for join in report["joins"]] == settled["joins"]
    assert [join["prop"] for join in report["joins"]] == rounds[1]["joins"]
    assert report["alloc"]["replayed"] == settled["replayed"] >= report["prop"]["replayed"]


def test_a_refined_division_is_nearer_to_what_is_replayed(
    folder: Path, joins: list[dict[str, Any]]
) -> None:
    policies = ("prob", "prob", "age")  # models of policies err more than replays do
    own = [join | {"policy": policy} for join, policy in zip(joins, policies, strict=True)]
    report = allocated(folder, "20%", *own, refine=1)
    by = {one["by"]: one for one in report["rounds"]}
    wrong = {
        name: max(abs(part["predicted"] - part["replayed"]) for part in by[name]["joins"])
        for name in ("model", "refined")
    }
    assert wrong["refined"] < wrong["model"]


def test_without_rounds_the_model_alone_is_taken(folder: Path, joins: list[dict[str, Any]]) -> None:
    once, never = (allocated(folder, "20%", *joins, refine=rounds) for rounds in (1, 0))
    assert never["refine"] == 0
    assert [one["settled"] for one in never["rounds"]] == [True, False]
    for ours, theirs in zip(once["rounds"], never["rounds"], strict=False):
        assert ours["joins"] == theirs["joins"]
    assert allocated(folder, "20%", *joins)["refine"] == 1


def test_errors_are_not_refined(folder: Path, joins: list[dict[str, Any]]) -> None:
    both = {"window_left": 99, "window_right": 39, "method": "eq-cluster"}
    report = allocated(folder, "30%", joins[0] | both, joins[1] | both, metric="error")
    assert report["refine"] == 0
    assert [(one["by"], one["settled"]) for one in report["rounds"]] == [
        ("model", True),
        ("prop", False),
    ]
