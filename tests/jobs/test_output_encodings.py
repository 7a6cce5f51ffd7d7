"""How rows are written: every type comes back, also in other engines; rising columns are small."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.jobs.output import PartWriter, write_file

_TIMES = [dt.datetime(2024, 1, 1, tzinfo=dt.UTC), None]
ROWS = pa.table({
    "left_row": [2**62, -5],
    "a_row": pa.array([1, None], pa.int64()),
    "ts": pa.array(_TIMES, pa.timestamp("us", "UTC")),
    "importance": [0.5, 1e100],
    "left.of_row": ["a", "b"],
    "right.small_row": pa.array([1, 2], pa.int32()),
    "left.list": [["x", "y"], []],
    "left.long": pa.array([["x"], None], pa.large_list(pa.string())),
    "left.vector": pa.array([[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "left.parts": [{"a": 1, "b": "z"}, {"a": 2, "b": None}],
})  # fmt: skip


def _encodings(path: Path) -> dict[str, set[str]]:
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {column.path_in_schema: set(column.encodings) for column in columns}


def test_rows_of_every_type_come_back(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    write_file(path, ROWS)
    assert pq.read_table(path).equals(ROWS)
    found = _encodings(path)
    for name in ("a_row", "ts", "right.small_row"):
        assert found[name] == {"RLE", "DELTA_BINARY_PACKED"}
    for name in ("left_row", "left.of_row", "left.list.list.element", "importance"):
        assert "RLE_DICTIONARY" in found[name]


@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_other_engines_read_them(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    names = ["left_row", "a_row", "importance", "left.of_row", "left.list"]
    rows = pa.concat_tables([ROWS.select(names)] * 3000)
    write_file(path, rows)
    if engine == "polars":
        found = pl.read_parquet(path).to_arrow()
    else:
        found = duckdb.sql(f"SELECT * FROM '{path}'").to_arrow_table()  # noqa: S608 - our own path
    assert found.cast(rows.schema).equals(rows)


def test_dictionaries_are_given_up_where_values_differ(tmp_path: Path) -> None:
    size = 1 << 17
    rng = np.random.default_rng(0)
    rows = pa.table({
        "left_row": np.arange(size), "ts": np.arange(size) // 3, "importance": rng.random(size),
        "weight": np.ones(size), "left.key": rng.integers(0, 100, size).astype(str),
        "left.id": rng.integers(0, 2**62, 50)[rng.integers(0, 50, size)],
        "left.size": rng.integers(0, 60_000, size),
    })  # fmt: skip
    path = tmp_path / "rows.parquet"
    writer = PartWriter(path)
    writer.write(rows)
    writer.close()
    assert pq.read_table(path).equals(rows)
    group = pq.read_metadata(path).row_group(0)
    sizes = {
        group.column(i).path_in_schema: group.column(i).total_compressed_size / size
        for i in range(group.num_columns)
    }
    assert sizes["left_row"] < 0.2
    assert sizes["ts"] < 0.3
    assert sizes["importance"] < 8.5
    assert sizes["weight"] < 0.01
    assert sizes["left.key"] < 1.1
    assert sizes["left.id"] < 1.0
    assert sizes["left.size"] < 2.3


def test_small_tables_fill_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.jobs.output.GROUP_ROWS", 10)
    path = tmp_path / "part-00000.parquet"
    writer = PartWriter(path)
    for begin in range(0, 24, 4):
        writer.write(pa.table({"n": range(begin, begin + 4)}))
    assert writer.close()
    found = pq.ParquetFile(path).metadata
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [12, 12]
    assert pq.read_table(path).column("n").to_pylist() == list(range(24))
