"""What footers tell of columns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.footers import magnitudes
from engine.archives.source import open_archive

TABLE = pa.table(
    {
        "whole": pa.array([3, -7, 1, 2], pa.int32()),
        "unsigned": pa.array([1, 2**63 + 1, 0, 0], pa.uint64()),
        "real": pa.array([0.5, float("nan"), -2.5, None]),
        "exact": pa.array([Decimal("1.50"), Decimal("-2.25"), None, None], pa.decimal128(9, 2)),
        "truth": [True, False, False, False],
        "text": ["a", "b", "c", "d"],
        "nested": pa.array([{"x": 1.0, "y": 5.0}] * 4),
    }
)


def test_the_greatest_magnitude_of_every_row_group(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=2)
    pq.write_table(TABLE.slice(2), tmp_path / "b.parquet", row_group_size=2, write_statistics=False)
    archive = open_archive(str(tmp_path / "*.parquet"), "left")
    file, number = np.array([0, 1, 0]), np.array([1, 0, 0])

    def found(column: str) -> list[float]:
        return magnitudes(archive, file, number, column).tolist()

    unknown = np.nan
    for column, wanted in {
        "whole": [2, unknown, 7],
        "unsigned": [0, unknown, 2**63],
        "real": [2.5, unknown, 0.5],
        "exact": [unknown, unknown, 2.25],
        "truth": [0, unknown, 1],
        "text": [unknown] * 3,
        "nested": [unknown] * 3,
        "none": [unknown] * 3,
    }.items():
        np.testing.assert_array_equal(found(column), wanted, column)
