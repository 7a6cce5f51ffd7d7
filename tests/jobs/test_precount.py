"""The exact join of heavy lanes, counted in slices before their replays: the same reports."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from job_cases import Noting
from spark_cases import figures, job, replayed, write

from engine.exact.stream import ExactStream
from engine.jobs.exact import key_totals as keys
from engine.jobs.replay import lane_task, slices
from engine.jobs.replay.run import run_replay
from engine.lanes import reader
from engine.lanes import write as lanefiles
from engine.runtime.executors import SerialExecutor
from spark_plugin.executor import SparkExecutor

ROWS = 1200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return archives of which one key has half of all tuples; times tie and leave gaps."""
    rng = np.random.default_rng(3)
    tables = []
    for _ in range(2):
        key = np.where(rng.random(ROWS) < 0.5, 4, rng.integers(0, 90, ROWS))
        ts = np.cumsum(rng.choice([0, 1, 2, 40], ROWS, p=[0.5, 0.3, 0.17, 0.03]))
        weight = rng.integers(1, 50, ROWS) / 8
        tables.append(pa.table({"t": ts, "k": key, "i": weight, "p": rng.random(ROWS)}))
    return write(tmp_path, *tables)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make lanes of a few hundred rows large ones, of short row groups."""
    monkeypatch.setattr(lanefiles, "GROUP_ROWS", 16)
    monkeypatch.setattr(slices, "SLICE_ROWS", 150)
    monkeypatch.setattr(slices, "_WINDOWS", 0)


def both(
    folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[tuple[pa.Table, Any], tuple[pa.Table, Any], list[tuple[str, int]]]:
    """Replay with no lane heavy, and as it is; return what both say and which tasks ran."""
    with monkeypatch.context() as none_heavy:
        none_heavy.setattr(slices, "HEAVY", 0)
        beside = replayed(folder, **options)
    noting = Noting()
    return beside, replayed(folder, noting, **options), noting.ran


@pytest.mark.parametrize("dropping", [False, True])
@pytest.mark.parametrize(
    ("options", "heavy"),
    [
        ({"lanes": 1, "window": 9}, 1),
        ({"lanes": 3, "window": 30, "combine": "sum"}, 1),
        ({"lanes": 2, "window": 5, "start_ts": 300, "policy": "rand"}, 2),
        ({"lanes": 1, "window": 9, "estimator": "history", "policy": "prob"}, 1),
        ({"lanes": 1, "window": 9, "policy": "age"}, 0),
        ({"lanes": 1, "window": 9, "memory": None}, 0),
    ],
)
def test_counted_ahead_reports_say_what_they_say_counted_beside(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    heavy: int,
    dropping: bool,
) -> None:
    if dropping:
        monkeypatch.setattr(keys, "IDLE", 1)
        for module in (lane_task, slices):
            batches = partial(reader.lane_batches, batch_rows=16)
            monkeypatch.setattr(module, "lane_batches", batches)
    beside, counted, ran = both(folder, monkeypatch, **{"memory": "20%"} | options)
    assert counted[0].equals(beside[0])
    assert figures(counted[1]) == figures(beside[1])
    tasks = [count for name, count in ran if name == "count_slice"]
    assert bool(tasks) == bool(heavy)
    assert all(count > 2 * heavy for count in tasks)


def test_heavy_lanes_are_counted_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job_options = job(folder, None, folder / "cache", lanes=1, window=9, memory="20%")
    first = run_replay(job_options, SerialExecutor())
    monkeypatch.setattr(ExactStream, "push", None)  # nothing is counted again
    noting = Noting()
    again = run_replay(job_options, noting)
    assert [name for name, _ in noting.ran] == ["replay_lane"]
    assert figures(again) == figures(first)


def test_too_many_keys_are_counted_beside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "IDLE", 1)
    monkeypatch.setattr(keys, "REMEMBERED", 4)
    monkeypatch.setattr(slices, "lane_batches", partial(reader.lane_batches, batch_rows=16))
    beside, counted, ran = both(folder, monkeypatch, lanes=1, window=3, memory="20%")
    assert "count_slice" in dict(ran)
    assert counted[0].equals(beside[0])
    assert figures(counted[1]) == figures(beside[1])


def test_what_could_not_be_kept_is_counted_beside(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.jobs.exact.counting.os.access", lambda *_: False)
    beside, counted, ran = both(folder, monkeypatch, lanes=1, window=9, memory="20%")
    assert "count_slice" not in dict(ran)
    assert figures(counted[1]) == figures(beside[1])


def test_on_spark_they_are_the_same(spark: Any, folder: Path) -> None:
    options = {"lanes": 2, "window": 6, "memory": "10%"}
    rows, report = replayed(folder, **options)
    again, other = replayed(folder, SparkExecutor(spark), **options)
    assert again.equals(rows)
    assert figures(other) == figures(report)
