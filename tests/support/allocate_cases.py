"""Joins that share a memory, over small generated streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import winnow
from engine.generate import AgeCurveSpec, ZipfSpec, age_curve_sources, write_streams, zipf_sources
from engine.runtime.executors import Executor, ThreadExecutor

ROWS, WINDOW = 3000, 199


def files(folder: Path) -> dict[str, Any]:
    """Return a join of the streams in a folder."""
    sides = {side: str(folder / f"{side}.parquet") for side in ("left", "right")}
    return sides | {"name": folder.name, "on": "key", "time": "ts"}


def zipf(folder: Path, correlation: str, seed: int, skew: float = 1.2) -> dict[str, Any]:
    """Write streams of one order of their keys' frequencies; only stored left tuples match."""
    spec = ZipfSpec(
        rows=ROWS, rows_right=2 * ROWS, domain=30, skew_left=skew, skew_right=skew,
        correlation=correlation, rate=1.0, rate_right=2.0, seed=seed,
    )  # fmt: skip
    write_streams(folder, dict(zip(("left", "right"), zipf_sources(spec), strict=True)))
    return files(folder) | {"window_left": WINDOW, "window_right": 0}


def aged(folder: Path, curve: str, seed: int) -> dict[str, Any]:
    """Write streams that match by age."""
    spec = AgeCurveSpec(rows=ROWS, curve=curve, window=WINDOW + 1, ticks_per_unit=1, seed=seed)
    write_streams(folder, dict(zip(("left", "right"), age_curve_sources(spec), strict=True)))
    return files(folder) | {"window_left": WINDOW, "window_right": 0}


def allocated(
    folder: Path, memory: Any, *joins: dict[str, Any], executor: Executor | None = None, **more: Any
) -> dict[str, Any]:
    """Divide a memory over joins and return the report."""
    return winnow.allocate(
        {"memory": memory, "join": list(joins)} | more,
        cache=folder / "cache",
        executor=executor or ThreadExecutor(2),
    ).report
