"""Archives large enough to be estimated, and joins of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 15}
SEVERAL = ["count", "avg(left.v) by right.g"]


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
