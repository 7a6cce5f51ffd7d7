"""Recall within a memory that holds all of a quiet hour's tuples, and a part of a busy one's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import winnow
from engine.jobs.estimate import sweep
from engine.jobs.estimate.replays import LaneSlices

DAY, DAYS, HOURS = 4_800, 25, 24
QUIET, BUSY = 1, 12


def archive(path: Path, seed: int) -> str:
    """Write a stream with six quiet hours a day and eighteen busy ones."""
    draw = np.random.default_rng(seed)
    hour = np.arange(DAY * DAYS) % DAY // (DAY // HOURS)
    ts = np.repeat(np.arange(DAY * DAYS), draw.poisson(np.where(hour < 6, QUIET, BUSY) / 4))
    table = pa.table({"ts": ts, "key": draw.integers(0, 60, ts.size)})
    pq.write_table(table, path, row_group_size=300)
    return str(path)


def test_intervals_of_few_slices_hold(tmp_path: Path) -> None:
    recall, _, found = estimated(tmp_path, "12%", "recall")
    assert held(found, recall) >= 27  # samples of busy hours alone would look precise


def test_quiet_hours_that_are_drawn_more_often_do_not_make_outputs_vague(tmp_path: Path) -> None:
    _, outputs, found = estimated(tmp_path, "25%", "outputs")
    assert held(found, outputs) >= 27
    apart = np.array([one["estimate"] for one in found]) / outputs - 1
    assert np.sqrt((apart**2).mean()) < 0.02


def test_a_sweep_draws_quiet_hours_more_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair = archive(tmp_path / "left.parquet", 1), archive(tmp_path / "right.parquet", 2)
    plans, plan = [], sweep._plan  # noqa: SLF001

    def kept(*given: Any) -> LaneSlices:
        plans.append(plan(*given))
        return plans[-1]

    monkeypatch.setattr(sweep, "_plan", kept)
    winnow.sweep(
        *pair, on="key", time="ts", windows=30, memory="20%,90%", policies="simp,prob",
        splits="even,pooled", estimators="memory", lanes="3", within="4%", cache=tmp_path / "cache",
    )  # fmt: skip
    [found] = plans
    assert found.uneven is not None
    first, quiet = found.edges[:-1] % DAY, DAY // 4
    all_quiet = first + np.diff(found.edges) <= quiet
    assert found.uneven[all_quiet].min() > 3 * np.median(found.uneven[first >= quiet])


def estimated(folder: Path, read: str, measure: str) -> tuple[float, int, list[dict[str, Any]]]:
    """Return a replay's recall and outputs, and estimates of a measure with 30 seeds."""
    pair = archive(folder / "left.parquet", 1), archive(folder / "right.parquet", 2)
    join: dict[str, Any] = {"on": "key", "time": "ts", "window": 30}
    replay = {"memory": "20%", "policy": "simp", "split": "even"}
    exact = winnow.replay(*pair, **join, **replay, count_only=True, cache=folder / "cache").report
    lines = []
    for seed in range(30):
        found = winnow.estimate(*pair, **join, **replay, read=read, seed=seed)
        assert found.report["how"] == "sample"
        [one] = found.aggregates[measure].to_pylist()
        assert one["no_interval"] is None
        lines.append(one)
    return exact["recall"], exact["result"]["outputs"], lines


def held(found: list[dict[str, Any]], true: float) -> int:
    """Return how many intervals hold a value."""
    return sum(one["low"] <= true <= one["high"] for one in found)
