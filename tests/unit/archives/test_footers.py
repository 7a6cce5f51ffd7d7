"""What footers tell of columns."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.archives import footers
from engine.archives.footers import footer_of, ranges
from engine.archives.source import open_archive
from engine.runtime.errors import InputError
from engine.runtime.storage import footers as storage

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


@pytest.mark.parametrize("long", [0, 1 << 30], ids=["in one go", "one by one"])
def test_the_range_of_every_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, long: int
) -> None:
    monkeypatch.setattr(footers, "LONG", long)
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=2)
    pq.write_table(TABLE.slice(2), tmp_path / "b.parquet", row_group_size=2, write_statistics=False)
    archive = open_archive(str(tmp_path / "*.parquet"), "left")
    file, number = np.array([0, 1, 0]), np.array([1, 0, 0])

    def found(column: str) -> list[float]:
        return np.abs(ranges(archive, file, number, column)).max(axis=1).tolist()

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


def test_a_file_that_goes_after_its_archive_was_opened_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"t": [1]}), path)
    file = open_archive(str(path), "left").files[0]
    monkeypatch.setattr(storage, "_kept", {})
    path.write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"an archive: file .* changed while it was read"):
        footer_of(file.path, file.changed)
    path.unlink()
    with pytest.raises(InputError, match=r"changed while it was read: it is gone"):
        footer_of(file.path, file.changed)


def test_footers_are_kept_up_to_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of 1,024 files of 500 columns took 900 MB."""
    monkeypatch.setattr(storage, "_kept", {})
    monkeypatch.setattr(storage, "_held", [0])
    parsed = []
    given = footers.reading.parquet_file
    monkeypatch.setattr(
        footers.reading, "parquet_file", lambda path: parsed.append(path) or given(path)
    )
    paths = []
    for i in range(5):
        paths.append(str(tmp_path / f"{i}.parquet"))
        pq.write_table(pa.table({"t": [i]}), paths[-1])
    size = footer_of(paths[0], 0).serialized_size
    monkeypatch.setattr(storage, "_MOST_BYTES", 3 * size + size // 2)
    for at in (1, 2, 0, 3, 0, 2, 1):  # 3 drops 1, and 1 drops 3
        assert footer_of(paths[at], 0).num_rows == 1
    assert parsed == [paths[at] for at in (0, 1, 2, 3, 1)]
    assert sum(own.serialized_size for own in storage._kept.values()) == storage._held[0]  # noqa: SLF001
    assert len(storage._kept) == 3  # noqa: SLF001


def test_that_of_an_archive_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    [file] = open_archive(str(tmp_path), "left").files
    monkeypatch.setattr(footers.reading, "parquet_file", None)
    assert footer_of(file.path, file.changed).num_rows == TABLE.num_rows
