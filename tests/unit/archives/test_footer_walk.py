"""Long footers, gone through in one go: the same as PyArrow tells column by column."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.archives import source
from engine.archives.footer_walk import TOLD, note, walked
from engine.archives.footers import one_by_one
from engine.runtime.storage import reading

STOP = b"\0"
I32, I64, BINARY, LIST, STRUCT, MAP = 5, 6, 8, 9, 12, 11


def table(rows: int, seed: int) -> pa.Table:
    draw = np.random.default_rng(seed)
    some = draw.random(rows) < 0.2
    extremes = [0, -1, 2**31 - 1, -(2**31)]
    return pa.table(
        {
            "ts": np.sort(draw.integers(-(2**62), 2**62, rows)),
            "narrow": pa.array(draw.choice(extremes, rows), pa.int32(), mask=some),
            "unsigned": pa.array(draw.integers(0, 2**63, rows), pa.uint64()),
            "real": pa.array(draw.normal(size=rows), mask=some),
            "half": pa.array(draw.normal(size=rows).astype(np.float32)),
            "text": pa.array(draw.choice(["", "a" * 300, "ä"], rows)),
            "truth": draw.random(rows) < 0.5,
            "moment": pa.array(draw.integers(0, 9**9, rows), pa.timestamp("us", "UTC")),
            "nested": [{"x": 1.0, "y": [1, 2]}] * rows,
            "vector": pa.array([[1.0, 2.0]] * rows, pa.list_(pa.float32(), 2)),
            "none": pa.array([None] * rows, pa.int64()),
            **{f"more{i}": draw.integers(0, 9, rows) for i in range(9)},
        }
    )


def same_of(footer: Any, own: Any, columns: list[int]) -> np.ndarray:
    """Check that what is gone through is what PyArrow tells of a footer; return what is told."""
    ref, comp = one_by_one(footer, columns), walked(own, columns)
    assert comp is not None
    np.testing.assert_array_equal(comp.rows, ref.rows)
    told = ref.found[:, :, TOLD] > 0
    np.testing.assert_array_equal(comp.found[told][:, :TOLD], ref.found[told][:, :TOLD])
    np.testing.assert_array_equal(comp.found[:, :, :2], ref.found[:, :, :2])
    return comp.found[told]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "options",
    [
        {}, {"write_statistics": False}, {"write_statistics": ["ts", "real"]},
        {"write_page_index": True, "version": "1.0", "use_dictionary": False},
        {"sorting_columns": [pq.SortingColumn(0)], "compression": "zstd", "store_schema": False},
    ],
)  # fmt: skip
def test_it_tells_what_pyarrow_tells(tmp_path: Path, seed: int, options: dict[str, Any]) -> None:
    pq.write_table(table(400, seed), tmp_path / "a.parquet", row_group_size=20 + seed, **options)
    footer = pq.read_metadata(tmp_path / "a.parquet")
    every = range(footer.num_columns)
    for columns in (list(every), list(every)[::-2], [0], []):
        assert (same_of(footer, footer, columns)[:, TOLD] & 3 == 3).all()


def by_pyarrow(few: pa.Table, path: Path) -> None:
    pq.write_table(few, path, row_group_size=20)


def by_polars(few: pa.Table, path: Path) -> None:
    pl.DataFrame(few).write_parquet(path, row_group_size=20)


def by_duckdb(few: pa.Table, path: Path) -> None:
    base = duckdb.connect()
    base.register("few", few)
    base.sql(f"COPY few TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048)")


@pytest.mark.parametrize("written", [by_pyarrow, by_polars, by_duckdb])
@pytest.mark.parametrize("more", [[], ["truth", *(f"more{i}" for i in range(9))]])
def test_bytes_of_files_tell_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: Any, more: list[str]
) -> None:
    path = tmp_path / "a.parquet"
    columns = ["ts", "narrow", "real", "half", "text", "moment", "none", *more]
    written(table(5000, 1).select(columns), path)
    noted: list[tuple[Any, bytes]] = []
    monkeypatch.setattr(source, "LONG", 1)
    monkeypatch.setattr(source, "note", lambda *given: noted.append(given))
    source.open_archive(str(path), "left")
    [(footer, data)] = noted
    again = pq.read_metadata(path)
    note(again, data)
    every = range(footer.num_columns)
    for some in (list(every), [1, 0], []):
        same_of(footer, again, some)


def test_a_footer_is_not_noted_of_a_file_that_was_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    by_pyarrow(table(50, 1), path)
    opened = reading.parquet_now(str(path))
    by_pyarrow(table(50, 2), path)  # as long a footer, or nearly
    monkeypatch.setattr(source, "LONG", 1)
    monkeypatch.setattr(source, "note", lambda *_: pytest.fail("another file's footer"))
    monkeypatch.setattr(reading, "parquet_now", lambda _: opened)
    source.open_archive(str(path), "left")


class Made(NamedTuple):
    """A footer of one row group and one column, as bytes."""

    data: bytes
    num_columns: int = 1
    num_row_groups: int = 1

    def write_metadata_file(self, sink: Any) -> None:
        """Write it as PyArrow does."""
        sink.write(b"PAR1" + self.data)


def number(value: int) -> bytes:
    value, found = value << 1 ^ value >> 63, b""
    while value >= 128:
        value, found = value >> 7, found + bytes([value & 127 | 128])
    return found + bytes([value])


def field(kind: int, delta: int, value: bytes) -> bytes:
    return bytes([delta << 4 | kind]) + value


def far(kind: int, at: int, value: bytes) -> bytes:
    """Return a field whose number is told whole."""
    return bytes([kind]) + number(at) + value


def listed(kind: int, *items: bytes) -> bytes:
    size = len(items)
    head = [15 << 4 | kind, size] if size >= 15 else [size << 4 | kind]
    return bytes(head) + b"".join(items)


def text(value: bytes) -> bytes:
    return bytes([len(value)]) + value


def footer_of(statistics: bytes, more: bytes = b"") -> Made:
    meta = field(I64, 7, number(99)) + field(STRUCT, 5, statistics + STOP) + more + STOP
    chunk = field(I64, 2, number(4)) + field(STRUCT, 1, meta) + STOP
    group = field(LIST, 1, listed(STRUCT, chunk)) + field(I64, 2, number(7)) + STOP
    return Made(field(I32, 1, number(2)) + field(LIST, 3, listed(STRUCT, group)) + STOP)


def ends(low: int, high: int) -> tuple[bytes, bytes]:
    return text(struct.pack("<q", low)), text(struct.pack("<q", high))


def test_older_statistics_are_told_apart() -> None:
    low, high = ends(-5, 2**40)
    older = field(BINARY, 1, high) + field(BINARY, 1, low) + field(I64, 1, number(3))
    found = walked(footer_of(older), [0])
    assert found.found.tolist() == [[[99, 3, -5, 2**40, 12]]]
    newer = older + b"".join(field(BINARY, 2 - i, own) for i, own in enumerate(ends(-4, 6)[::-1]))
    assert walked(footer_of(newer), [0]).found.tolist() == [[[99, 3, -4, 6, 15]]]


PAIR = field(LIST, 1, listed(1, b"\1", b"\0")) + STOP
DEEP = field(STRUCT, 1, field(BINARY, 1, text(b"x" * 90)) + STOP) + STOP


@pytest.mark.parametrize(
    "value",
    [
        far(LIST, 40, listed(STRUCT, *[PAIR] * 17)),
        far(1, 40, b"") + field(2, 1, b"") + field(3, 1, b"\7") + field(4, 1, number(-300)),
        far(7, 41, b"\1" * 8) + field(10, 1, listed(I32, number(1), number(-(2**30)))),
        far(STRUCT, 50, DEEP),
    ],
)
def test_what_else_stands_in_it_is_passed_over(value: bytes) -> None:
    low, high = ends(1, 2)
    known = field(BINARY, 5, high) + field(BINARY, 1, low)
    for made in (footer_of(known, value), footer_of(known + value)):
        found = walked(made, [0])
        assert (found.rows.tolist(), found.found.tolist()) == ([7], [[[99, -1, 1, 2, 3]]])
        assert walked(made, []).rows.tolist() == [7]


@pytest.mark.parametrize(
    "value",
    [far(MAP, 40, b"\1" + bytes([I32 << 4 | I32]) + b"\2\2"), far(LIST, 40, b"\x19" * 70 + b"\5")],
)
def test_other_structs_are_left_to_pyarrow(value: bytes) -> None:
    assert walked(footer_of(b"", value), [0]) is None
    assert walked(footer_of(value), [0]) is None
    assert walked(footer_of(b"", value), []) is None
