"""Lanes that one thread reads, one joins and one writes: the rows and figures of one thread."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from spark_cases import figures, replayed, write

import winnow
from engine.jobs.part import LanePart
from engine.jobs.replay import lane_task
from engine.jobs.sample import task as sample_task
from engine.lanes import reader
from engine.runtime.errors import OutputError


def drawn(seed: int) -> pa.Table:
    """Return a stream with ties in time."""
    rng = np.random.default_rng(seed)
    ts, key = np.sort(rng.integers(0, 800, 900)), rng.zipf(1.5, 900) % 20
    return pa.table({"t": ts, "k": key, "i": rng.integers(1, 9, 900) / 8, "p": rng.random(900)})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path, drawn(1), drawn(2))


def in_small_batches(patch: pytest.MonkeyPatch, *, apart: bool) -> None:
    """Read batches of 50 rows, and have them read, joined and written on threads or on one."""
    for place in (lane_task, sample_task):
        patch.setattr(place, "lane_batches", partial(reader.lane_batches, batch_rows=50))
    patch.setattr(reader, "BATCH_ROWS", 0 if apart else 10**9)


@pytest.mark.parametrize("policy", ["yield", "rand", "prob", None])
def test_threads_give_the_rows_and_figures_of_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, policy: str | None
) -> None:
    given = {"lanes": 1, "window": 60, "memory": policy and 40, "policy": policy or "auto"}
    with monkeypatch.context() as patch:
        in_small_batches(patch, apart=False)
        whole, report = replayed(folder, **given)
    in_small_batches(monkeypatch, apart=True)
    rows, again = replayed(folder, **given)
    assert rows.equals(whole)
    assert len(whole) > 300
    assert figures(again) == figures(report)


@pytest.mark.parametrize("method", ["bottom-k", "pps_cluster", "uniform"])
def test_threads_give_the_sample_of_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def sampled() -> tuple[pa.Table, list[pa.Table]]:
        paths = folder / "left.parquet", folder / "right.parquet"
        found = winnow.sample(
            *paths, on="k", time="t", importance="i", window=60, memory=40, method=method,
            aggregates=["count", "sum(right.p) every 100"], exact_aggregates=True,
        )  # fmt: skip
        return found.outputs, list(found.aggregates.values())

    with monkeypatch.context() as patch:
        in_small_batches(patch, apart=False)
        rows, tables = sampled()
    in_small_batches(monkeypatch, apart=True)
    again, others = sampled()
    assert again.equals(rows)
    assert len(rows) > 100
    assert all(own.equals(other) for own, other in zip(others, tables, strict=True))


def test_an_error_of_the_writer_ends_all_threads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_small_batches(monkeypatch, apart=True)
    tables = []

    def full(part: LanePart, table: pa.Table) -> None:
        del part
        tables.append(table)
        if len(tables) == 3:
            raise OutputError("the disk is full")

    monkeypatch.setattr(LanePart, "write", full)
    before = threading.active_count()
    with pytest.raises(OutputError, match="the disk is full"):
        replayed(folder, lanes=1, window=60, memory=40, policy="yield")
    assert len(tables) == 3
    assert threading.active_count() == before
