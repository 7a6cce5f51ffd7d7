"""Sweeps over small archives, and the replays that each of their cells must equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import table
from options_given import job_of

import winnow
from engine.jobs.replay.run import run_replay
from engine.jobs.sweep.run import SweepResult
from engine.runtime.executors import Executor, SerialExecutor, ThreadExecutor

COMMON = {"on": "k", "time": "t", "importance": "i"}
FIGURES = (
    "outputs", "importance", "exact_outputs", "exact_importance", "recall", "importance_recall",
    "peak_left", "peak_right", "memory_left", "memory_right", "window_left", "window_right",
)  # fmt: skip


def swept(folder: Path, executor: Executor | None = None, **options: Any) -> SweepResult:
    """Sweep the archives in `folder`."""
    given: dict[str, Any] = COMMON | {"windows": 9, "memory": 12} | options
    found = winnow.sweep(
        folder / "left.parquet",
        folder / "right.parquet",
        cache=folder / "cache",
        executor=executor or ThreadExecutor(2),
        **given,
    )
    return SweepResult(found.outputs, found.advice, found.report)


def swept_alike(folder: Path, **options: Any) -> SweepResult:
    """Sweep on the CPU and on the GPU, and see that the cells are the same; return the GPU's."""
    ref = swept(folder, device="cpu", **options)
    comp = swept(folder, device="gpu", **options)
    columns = [name for name in FIGURES if not name.startswith("importance")]
    columns += ["policy", "memory", "seed"]
    assert comp.table.select(columns).to_pylist() == ref.table.select(columns).to_pylist()
    for name in ("importance", "importance_recall"):
        both = zip(comp.table[name].to_pylist(), ref.table[name].to_pylist(), strict=True)
        assert all(ours == pytest.approx(theirs, rel=1e-12) for ours, theirs in both)
    return comp


def alone(folder: Path, line: dict[str, Any], params: Any, **options: Any) -> dict[str, Any]:
    """Return a cell's figures from a replay of its own."""
    given: Any = COMMON | options
    given |= {
        "policy": line["policy"],
        "memory": line["memory"],
        "window": line["window_left"],
        "split": line["split"],
        "estimator": line["estimator"] or "memory",
        "lanes": line["lanes"],
        "seed": line["seed"] or 0,
        "params": params,
    }
    files = [str(folder / f"{side}.parquet") for side in ("left", "right")]
    report = run_replay(
        job_of(files[0], files[1], None, folder / "cache", given), SerialExecutor()
    ).content
    memory = report["memory"]
    assert line["memory_left"] + line["memory_right"] == memory["both"]
    halves = {side: line[f"memory_{side}"] for side in ("left", "right")}
    sides = halves if memory["split"] == "pooled" else memory
    return {
        "outputs": report["result"]["outputs"],
        "importance": report["result"]["importance"],
        "exact_outputs": report["exact"]["outputs"],
        "exact_importance": report["exact"]["importance"],
        "recall": report["recall"],
        "importance_recall": report["importance_recall"],
        "peak_left": report["peak_memory"]["left"],
        "peak_right": report["peak_memory"]["right"],
        **{f"memory_{side}": sides[side] for side in ("left", "right")},
        "window_left": report["window"]["left"],
        "window_right": report["window"]["right"],
    }


def assert_cells_are_replays(
    folder: Path, found: SweepResult, params: dict[str, Any], **options: Any
) -> None:
    """Hold every cell equal to a replay of its own, bit for bit."""
    for line in found.table.to_pylist():
        own = alone(folder, line, params.get(line["policy"], {}), **options)
        assert {name: line[name] for name in FIGURES} == own, line
        assert line["peak_memory"] == line["peak_left"] + line["peak_right"]


def drifting(folder: Path, rows: int = 400, seed: int = 5) -> Path:
    """Write archives whose keys come and go, unsorted, with groups."""
    for number, side in enumerate(("left", "right")):
        rng = np.random.default_rng(2 * seed + number)
        ts = rng.integers(0, 300, rows)
        keys = rng.integers(0, 5, rows) + ts // 6
        stream = list(zip(ts.tolist(), keys.tolist(), rng.choice([0.1, 0.25, 1, 7], rows).tolist(),
                          strict=True))  # fmt: skip
        groups = pa.array([f"g{key % 3}" for key in rng.integers(0, 9, rows)])
        pq.write_table(table(stream, g=groups), folder / f"{side}.parquet")
    return folder


def steady(folder: Path, rows: int = 12_000) -> Path:
    """Write archives whose keys are of unequal frequency, not in order of time."""
    for seed, side in enumerate(("left", "right")):
        rng = np.random.default_rng(seed)
        own = {
            "t": rng.permutation(np.sort(rng.integers(0, rows, rows))),
            "k": np.minimum(rng.zipf(1.6, rows), 60),
            "i": rng.choice([1.0, 2.0, 9.0], rows),
            "g": rng.choice(["a", "b"], rows),
        }
        pq.write_table(pa.table(own), folder / f"{side}.parquet")
    return folder
