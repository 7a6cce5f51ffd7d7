"""Exact joins of large lanes by slices of time: the rows and figures of the whole lane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cases import figures, replayed, write

from engine.executors import SerialExecutor, ThreadExecutor
from engine.job import slices
from engine.lanes import lanefiles
from engine.lanes.reader import lane_batches, whole_lane
from spark_plugin.executor import SparkExecutor

ROWS = 900


def drawn(seed: int, *, heavy: bool = False) -> pa.Table:
    """Return a stream with ties and gaps in time; half of its tuples of one key if `heavy`."""
    rng = np.random.default_rng(seed)
    key = rng.integers(0, 9, ROWS)
    if heavy:
        key[rng.random(ROWS) < 0.5] = 4
    ts = np.cumsum(rng.choice([0, 0, 1, 2, 40], ROWS, p=[0.3, 0.3, 0.2, 0.17, 0.03]))
    return pa.table({"t": ts, "k": key, "i": rng.integers(1, 50, ROWS) / 8, "p": rng.random(ROWS)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, drawn(1, heavy=True), drawn(2))


def small(patch: pytest.MonkeyPatch, rows: int = 100) -> None:
    """Make lanes of a few hundred rows large ones, in row groups of 16."""
    patch.setattr(lanefiles, "GROUP_ROWS", 16)
    patch.setattr(slices, "SLICE_ROWS", rows)


@pytest.mark.parametrize(
    "options",
    [
        {"lanes": 1, "window": 9},
        {"lanes": 3, "window_left": 0, "window_right": 25, "window": None, "combine": "sum"},
        {"lanes": 2, "window": 5, "start_ts": 300, "columns": "ids"},
        {"lanes": 1, "window": 3000},
    ],
)
def test_slices_give_the_rows_and_figures_of_the_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    told = {"memory": None} | options
    if told["window"] is None:
        del told["window"]
    whole, report = replayed(folder, **told)
    small(monkeypatch)
    monkeypatch.setattr(slices, "_WINDOWS", 0)
    begun = []
    cut = slices.sliced
    monkeypatch.setattr("engine.job.run.sliced", lambda task: begun.append(cut(task)) or begun[-1])
    for executor in (SerialExecutor(), ThreadExecutor(2)):
        rows, again = replayed(folder, executor, **told)
        assert rows.equals(whole)
        assert figures(again) == figures(report)
    assert max(map(len, begun)) > 2
    assert whole.num_rows


def test_slices_on_spark_are_those_of_the_local_engine(
    spark: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small(monkeypatch)
    local, report = replayed(folder, memory=None, lanes=2, window=4)
    rows, again = replayed(folder, SparkExecutor(spark), memory=None, lanes=2, window=4)
    assert rows.equals(local)
    assert figures(again) == figures(report)


def test_what_the_past_decides_is_not_cut(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small(monkeypatch)
    found = []
    cut = slices.sliced
    monkeypatch.setattr("engine.job.run.sliced", lambda task: found.append(cut(task)) or found[-1])
    replayed(folder, memory="10%", lanes=1)
    replayed(folder, memory=None, lanes=1, estimator="history")
    replayed(folder, memory=None, lanes=1, window=5000)  # a slice would read all before it
    assert list(map(len, found)) == [1, 1, 1]


@pytest.mark.parametrize("between", [(-5, 40), (37, 37), (100, 400), (10**6, 10**7)])
def test_a_stretch_of_a_lane_is_read_from_its_own_row_groups(
    folder: Path, monkeypatch: pytest.MonkeyPatch, between: tuple[int, int]
) -> None:
    small(monkeypatch)
    replayed(folder, memory=None, lanes=1)
    files = [next(folder.glob(f"run-0/cache/*/*/{side}.parquet")) for side in ("left", "right")]
    whole = whole_lane(*files)
    read = []
    one = pq.ParquetFile.read_row_group

    def counted(file: pq.ParquetFile, group: int, columns: list[str]) -> pa.Table:
        read.append(group)
        return one(file, group, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counted)
    found = list(lane_batches(*files, between=between))
    for side in (0, 1):
        wanted = (whole[side].ts >= between[0]) & (whole[side].ts <= between[1])
        for name in whole[side]._fields:
            parts = [getattr(batch[side], name) for batch in found]
            joined = np.concatenate([getattr(whole[side], name)[:0], *parts])
            assert joined.tolist() == getattr(whole[side], name)[wanted].tolist()
    assert len(read) < sum(pq.ParquetFile(file).num_row_groups for file in files)


def test_a_lane_file_is_not_mapped_while_it_is_read(folder: Path) -> None:
    replayed(folder, memory=None, lanes=1)
    files = [next(folder.glob(f"run-0/cache/*/*/{side}.parquet")) for side in ("left", "right")]
    for _ in lane_batches(*files):
        assert str(folder) not in Path("/proc/self/maps").read_text()
