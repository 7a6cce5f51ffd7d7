"""Archives large enough to be estimated, and joins of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 15}
SEVERAL = ["count", "avg(left.v) by right.g"]


def streams(seed: int, rows: int = 300, ticks: int = 900, keys: int = 9) -> list[pa.Table]:
    """Return two streams with ties, null keys and null values."""
    rng = np.random.default_rng(seed)
    tables = []
    for _ in range(2):
        nulls = rng.random((3, rows)) < 0.1
        tables.append(
            pa.table(
                {
                    "t": np.sort(rng.integers(0, ticks, rows)),
                    "k": pa.array(rng.integers(0, keys, rows), mask=nulls[0]),
                    "w": rng.integers(0, 9, rows) / 4,
                    "v": pa.array(rng.normal(0, 5, rows), mask=nulls[1]),
                    "g": pa.array(rng.choice(["a", "b", "c"], rows), mask=nulls[2]),
                    "p": rng.integers(0, 2, rows),
                }
            )
        )
    return tables


def written(folder: Path, tables: list[pa.Table], size: int) -> dict[str, str]:
    """Write both streams in row groups of a size, and return where they are."""
    found = {}
    for name, table in zip(("left", "right"), tables, strict=True):
        found[name] = str(folder / f"{name}.parquet")
        pq.write_table(table, found[name], row_group_size=size)
    return found


def large(folder: Path, rows: int = 60_000, size: int = 150) -> dict[str, str]:
    """Write two archives of which a part suffices."""
    rng = np.random.default_rng(2)
    tables = [
        pa.table(
            {
                "t": np.sort(rng.integers(0, rows, rows)),
                "k": rng.integers(0, 40, rows),
                "v": rng.normal(10, 1, rows),
                "g": rng.integers(0, 3, rows),
            }
        )
        for _ in range(2)
    ]
    return written(folder, tables, size)
