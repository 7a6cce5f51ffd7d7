"""Exact joins of large lanes by slices of time: the rows and figures of the whole lane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from spark_cases import figures, replayed, write

from engine.archives.roles import Roles
from engine.archives.source import open_archive
from engine.jobs.replay import slices
from engine.lanes import runfiles
from engine.lanes import write as lanefiles
from engine.lanes.prepare import prepare
from engine.lanes.reader import lane_batches, whole_lane
from engine.lanes.stored import MergedFile, RunPieces, Stored
from engine.runtime.executors import SerialExecutor, ThreadExecutor
from engine.runtime.streams import SIDES
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
    """Make lanes of a few hundred rows large ones, of row groups of 16 and runs of at most 50."""
    patch.setattr(lanefiles, "GROUP_ROWS", 16)
    patch.setattr(slices, "SLICE_ROWS", rows)
    patch.setattr(lanefiles, "PIECE_ROWS", 1)
    patch.setattr("engine.lanes.split.SPLIT_BYTES", 50 * 32)


@pytest.mark.parametrize(
    "options",
    [
        {"lanes": 1, "window": 9},
        {"lanes": 3, "window_left": 0, "window_right": 25, "window": None, "combine": "sum"},
        {"lanes": 2, "window": 5, "start_ts": 300, "columns": "ids"},
        {"lanes": 1, "window": 20, "columns": "ids"},
        {"lanes": 1, "window": 3000},
    ],
)
def test_slices_give_the_rows_and_figures_of_the_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    given = {"memory": None} | options
    if given["window"] is None:
        del given["window"]
    whole, report = replayed(folder, **given)
    small(monkeypatch)
    monkeypatch.setattr(slices, "_WINDOWS", 0)
    begun = []
    cut = slices.sliced
    monkeypatch.setattr(
        "engine.jobs.replay.run.sliced", lambda task: begun.append(cut(task)) or begun[-1]
    )
    for executor in (SerialExecutor(), ThreadExecutor(2)):
        rows, again = replayed(folder, executor, **given)
        assert rows.equals(whole)
        assert figures(again) == figures(report)
    assert max(map(len, begun)) > 2
    for parts in begun:
        lane = parts[0].files.rows
        assert lane - len(parts) < sum(part.rows for part in parts) <= lane
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
    monkeypatch.setattr(
        "engine.jobs.replay.run.sliced", lambda task: found.append(cut(task)) or found[-1]
    )
    replayed(folder, memory="10%", lanes=1)
    replayed(folder, memory=None, lanes=1, estimator="history")
    replayed(folder, memory=None, lanes=1, window=5000)  # a slice would read all before it
    assert list(map(len, found)) == [1, 1, 1]


def streams(folder: Path, *, payload: bool) -> list[Stored | None]:
    """Return both streams in one lane: merged into files with payload, else pieces of runs."""
    archives = [open_archive(str(folder / f"{side}.parquet"), side) for side in SIDES]
    roles = Roles(("k",), "t", "i")
    prepared = prepare(
        *archives, roles, roles, lanes=1, folder=folder / "lanes", bad_rows="error",
        payload=payload, executor=SerialExecutor(), split_rows=50,
    )  # fmt: skip
    return [prepared.stream(0, side) for side in (0, 1)]


@pytest.mark.parametrize("payload", [True, False])
@pytest.mark.parametrize("between", [(-5, 40), (37, 37), (100, 400), (10**6, 10**7)])
def test_a_stretch_of_a_lane_is_read_from_its_own_rows(
    folder: Path, monkeypatch: pytest.MonkeyPatch, between: tuple[int, int], payload: bool
) -> None:
    small(monkeypatch)
    both = streams(folder, payload=payload)
    assert {type(stream) for stream in both} == {MergedFile if payload else RunPieces}
    whole = whole_lane(*both)
    read: list[int] = []
    batches, run = pq.ParquetFile.iter_batches, runfiles.RunRows.fill

    def of_file(file: pq.ParquetFile, rows: int, groups: list[int], **given: Any) -> Any:
        read.extend(file.metadata.row_group(group).num_rows for group in groups)
        return batches(file, rows, groups, **given)

    def of_run(run_: runfiles.RunRows, start: int, into: dict[str, Any]) -> None:
        read.append(into["_ts"].size)
        run(run_, start, into)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", of_file)
    monkeypatch.setattr(runfiles.RunRows, "fill", of_run)
    found = list(lane_batches(*both, between=between))
    wanted = [(side.ts >= between[0]) & (side.ts <= between[1]) for side in whole[:2]]
    for side in (0, 1):
        for name in whole[side]._fields:
            parts = [getattr(batch[side], name) for batch in found]
            joined = np.concatenate([getattr(whole[side], name)[:0], *parts])
            assert joined.tolist() == getattr(whole[side], name)[wanted[side]].tolist()
    own = sum(int(mask.sum()) for mask in wanted)
    assert own <= sum(read) <= own + (4 * 50 if payload else 0)
    assert sum(read) < 2 * ROWS


@pytest.mark.parametrize("between", [None, (37, 37), (100, 400), (10**6, 10**7)])
@pytest.mark.parametrize("rows", [1, 7, 49, 50, 51, 100, 10**6])
def test_pieces_are_read_together_in_batches_of_as_many_rows_as_asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, rows: int, between: tuple[int, int] | None
) -> None:
    small(monkeypatch)
    for stored in streams(folder, payload=False):
        assert isinstance(stored, RunPieces)
        assert len(stored.pieces) > 3
        with stored.open() as opened:
            (whole,) = opened.batches(["_ts", "_row"], rows=10**9)
            batches = list(opened.batches(["_row", "_ts"], between=between, rows=rows))
        ts = whole.column("_ts").to_numpy()
        low, high = between or (ts[0], ts[-1])
        wanted = whole.filter(pa.array((ts >= low) & (ts <= high)))
        assert [batch.num_rows for batch in batches[:-1]] == [rows] * (len(batches) - 1)
        assert all(0 < batch.num_rows <= rows for batch in batches)
        for name in ("_ts", "_row"):
            found = [value for batch in batches for value in batch.column(name).to_pylist()]
            assert found == wanted.column(name).to_pylist()


@pytest.mark.parametrize("payload", [True, False])
def test_a_lane_file_is_not_mapped_while_it_is_read(folder: Path, payload: bool) -> None:
    for _ in lane_batches(*streams(folder, payload=payload)):
        assert str(folder) not in Path("/proc/self/maps").read_text()
