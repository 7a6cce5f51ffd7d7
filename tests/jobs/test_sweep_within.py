"""Sweeps that are estimated: every cell on the same slices, as the whole sweep has it or near."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from sweep_cases import drifting, steady, swept
from thorough import guarded

from engine.jobs.estimate import replays
from engine.jobs.estimate import sweep as estimate_sweep
from engine.jobs.estimate.replay_task import Replayed, ReplayTask, replay_slice
from engine.jobs.sweep.rows import INTERVALS
from engine.runtime.errors import SpecError
from engine.runtime.executors import Executor, SerialExecutor, ThreadExecutor

GRID: dict[str, Any] = {
    "windows": [9, 19], "memory": ["10%", "40%"], "policies": ["prob", "dgl", "rand", "simp"],
    "splits": ["even", "pooled"], "estimators": ["memory", "window"], "seeds": [0, 1],
}  # fmt: skip
MEASURES = ("recall", "importance_recall", "outputs", "importance")


def test_where_stretches_do_not_pay_it_is_the_sweep(tmp_path: Path) -> None:
    drifting(tmp_path)
    found = swept(tmp_path, **GRID, within="1%")
    whole = swept(tmp_path, **GRID)
    told = found.report["estimated"]
    assert [own["why"] is None for own in told] == [False]
    changing = {"seconds", "tuples_per_second"}
    same = [name for name in whole.table.column_names if name not in changing]
    assert found.table.select(same) == whole.table.select(same)
    for line in found.table.to_pylist():
        assert line["stretches"] == 0
        for name in MEASURES:
            assert line[f"{name}_low"] == line[name] == line[f"{name}_high"]


@pytest.mark.parametrize(
    "options",
    [
        {"lanes": 3},
        *guarded(
            [{}, {"partition_by": "g"}],
            "engine/jobs/estimate",
            "engine/sampling",
            "tests/jobs/test_sweep_within.py",
        ),
    ],
)
def test_its_intervals_hold_the_whole_sweeps_values(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    steady(tmp_path, rows=20_000)
    given = {
        **GRID,
        "windows": [4, 9],
        "estimators": "memory",
        **options,
        "targets": {"recall": 0.3},
    }
    found = swept(tmp_path, **given, within="15%", confidence=0.99, out=tmp_path / "swept")
    whole = swept(tmp_path, **given)
    [told] = found.report["estimated"]
    assert told["why"] is None
    assert told["stretches"] < told["all"] / 2
    assert found.report["device"]["reason"] == "stretches are replayed on the CPU"
    exactly = ("cell", "policy", "memory_left", "memory_right", "seed", "split", "lanes")
    held, known = 0, 0
    lines = list(zip(found.table.to_pylist(), whole.table.to_pylist(), strict=True))
    for own, true in lines:
        assert [own[name] for name in exactly] == [true[name] for name in exactly]
        assert own["exact_outputs"] == pytest.approx(true["exact_outputs"], rel=0.15)
        for name in MEASURES:
            if own[f"{name}_low"] is None:
                assert own["no_interval"].startswith("one stretch has")
                continue
            known += 1
            assert own[f"{name}_low"] <= own[name] * (1 + 1e-3)
            held += own[f"{name}_low"] <= true[name] <= own[f"{name}_high"]
    assert known > 0.85 * len(MEASURES) * len(lines)
    assert held > 0.95 * known
    assert len({own["stretches"] for own, _ in lines}) == 1
    for advice in found.advice:
        assert advice.check is not None
        assert advice.check.problem is None
    assert pq.read_table(tmp_path / "swept" / "sweep.parquet") == found.table
    written = json.loads((tmp_path / "swept" / "sweep.json").read_text())
    assert written["estimated"] == [told]


def test_cells_that_learn_have_no_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[int] = []

    def noted(task: ReplayTask) -> Replayed:
        again.extend(len(one.cells) for one in (*task.again, *task.halved))
        return replay_slice(task)

    monkeypatch.setattr(replays.ReplaySlices, "work", staticmethod(noted))
    given = {"windows": 9, "memory": "20%", "policies": ["yield", "dgl"]}
    estimators = ["window", "history"]
    found = swept(steady(tmp_path), **given, estimators=estimators, within="9%")
    for line in found.table.to_pylist():
        learns = line["policy"] == "yield" or line["estimator"] == "history"
        assert (line["no_interval"] is not None) == learns
        assert (line["recall_low"] is None) == learns
    assert found.report["estimated"][0]["without_interval"] == 2
    assert set(again) == {1}  # of the three


def test_a_cell_is_the_same_whatever_the_others_and_the_executor(tmp_path: Path) -> None:
    steady(tmp_path)

    def lines(executor: Executor, **options: Any) -> dict[tuple[str, int], dict[str, Any]]:
        found = swept(tmp_path, executor, windows=9, memory="20%", within="9%", **options)
        chosen = ("recall", "importance_recall", "outputs", *INTERVALS)
        return {
            (line["policy"], line["stretches"]): {name: line[name] for name in chosen}
            for line in found.table.to_pylist()
        }

    many = lines(SerialExecutor(), policies=["prob", "simp", "rand"])
    assert lines(ThreadExecutor(3), policies=["prob", "simp", "rand"]) == many
    assert len(many) == 3


def test_the_first_seed_draws_the_slices(tmp_path: Path) -> None:
    steady(tmp_path)
    given = {"windows": 9, "memory": "20%", "policies": "simp", "within": "9%"}
    found = [swept(tmp_path, **given, seeds=seeds).table["recall"] for seeds in (0, [3, 0], 3)]
    assert found[0] != found[1]
    assert found[1] == found[2]


def test_a_sweep_of_everything_has_no_columns_of_estimates(tmp_path: Path) -> None:
    found = swept(drifting(tmp_path))
    assert not {*INTERVALS, "stretches", "no_interval"} & {*found.table.column_names}
    assert "estimated" not in found.report


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"within": "0%"}, "within is 0; give more than 0% and less than 100%"),
        ({"within": "much"}, "within is 'much'; give a share"),
        ({"within": "5%", "confidence": 2}, "confidence is 2; give one between 0 and 1"),
        ({"within": "1%", "bound": True}, "bound is of everything"),
        ({"within": "1%", "device": "gpu"}, "stretches on the CPU"),
    ],
)
def test_options_that_mean_nothing(tmp_path: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        swept(drifting(tmp_path), **options)


def test_slices_are_cut_finer_to_be_counted() -> None:
    edges = np.array([0, 16, 19])
    found = estimate_sweep._finer(edges).tolist()  # noqa: SLF001
    assert found == [0, 2, 4, 6, 8, 10, 12, 14, 16, 17, 18, 19]
