"""Leading zeros of CSV cells: 007 is not 7."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.archives.rows import Rows
from engine.archives.source import open_archive
from engine.archives.spooling import SpoolTask, spool
from engine.runtime.errors import InputError
from winnow import estimate, lookup, multijoin, replay


def column(where: Path, name: str) -> pa.ChunkedArray:
    folder = where.parent / f"{where.stem}-parquet"
    folder.mkdir()
    parts = Rows(open_archive(str(where), "left"), (), folder).parts([name])
    return pa.concat_tables([part.table for part in parts]).column(name)


@pytest.mark.parametrize("cell", ["007", "00", "-07", " 007", '"007"'])
def test_integers_of_which_one_has_a_leading_zero_are_text(tmp_path: Path, cell: str) -> None:
    (tmp_path / "a.csv").write_text(f"zip,t\n7,1\n{cell},2\n")
    found = column(tmp_path / "a.csv", "zip")
    assert found.to_pylist() == ["7", cell.strip('"')]


@pytest.mark.parametrize("cell", ["0", "-0", "0.5", "-0.5", "00.5", "70"])
def test_other_numbers_stay_numbers(tmp_path: Path, cell: str) -> None:
    (tmp_path / "a.csv").write_text(f"zip,t\n7,1\n{cell},2\n")
    assert column(tmp_path / "a.csv", "zip").to_pylist() == [7, float(cell)]


def test_a_leading_zero_in_one_file_makes_text_of_all(tmp_path: Path) -> None:
    parts = tmp_path / "parts"
    parts.mkdir()
    (parts / "a.csv").write_text("zip,t\n7,1\n")
    (parts / "b.csv").write_text("zip,t\n007,2\n,3\n")
    assert column(parts, "zip").to_pylist() == ["7", "007", None]


def test_007_joins_007_alone(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,zip\n1,007\n2,7\n3,0123\n")
    (tmp_path / "b.csv").write_text("t,zip\n1,7\n2,007\n3,0123\n")
    found = replay(tmp_path / "a.csv", tmp_path / "b.csv", on="zip", time="t", window=5)
    rows = found.outputs.select(["left_zip", "right_zip"]).to_pylist()
    assert [row["left_zip"] for row in rows] == [row["right_zip"] for row in rows]
    assert sorted(row["left_zip"] for row in rows) == ["007", "0123", "7"]


def test_times_with_leading_zeros_are_numbers(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,k,i\n0001,a,01\n0002,b,02\n0010,a,03\n")
    options = {"on": "k", "time": "t", "importance": "i", "window": 9}
    found = replay(tmp_path / "a.csv", tmp_path / "a.csv", **options)
    assert found.outputs["ts"].to_pylist() == [1, 2, 10, 10, 10]
    assert sum(found.outputs["importance"].to_pylist()) == 1 + 2 + 3 + 1 + 1


def late(folder: Path, cell: str, lenient: tuple[str, ...] = ()) -> pa.ChunkedArray:
    """Return the cells of a column whose first block holds plain integers."""
    (folder / "a.csv").write_text("t,k\n" + "1,1\n" * 1_200_000 + f"2,{cell}\n")
    schema = open_archive(str(folder / "a.csv"), "left").schema
    assert schema.field("k").type == pa.int64()
    place = str(folder / "a.parquet")
    spool(SpoolTask(str(folder / "a.csv"), "left", schema, lenient, place))
    return pq.read_table(place).column("k")


def test_leading_zeros_further_on_are_refused(tmp_path: Path) -> None:
    message = (
        r"a\.csv: column k holds integers in its first lines but 007 further on, which would lose "
        "its leading zero: correct the cells, or convert the archive to Parquet with k as text"
    )
    with pytest.raises(InputError, match=message):
        late(tmp_path, "007")
    assert late(tmp_path, "007", lenient=("k",))[-1].as_py() == 7  # a time, an importance


@pytest.mark.parametrize(("cell", "value"), [("", None), ("NA", None), (" 7 ", 7), ("0", 0)])
def test_cells_further_on_are_integers_as_before(
    tmp_path: Path, cell: str, value: int | None
) -> None:
    found = late(tmp_path, cell)
    assert found.type == pa.int64()
    assert found[-1].as_py() == value


def rows_of(found: pa.Table, *columns: str) -> list[tuple[int, ...]]:
    return sorted(tuple(row.values()) for row in found.select(columns).to_pylist())


def test_integers_of_csv_join_text_by_their_digits(tmp_path: Path) -> None:
    """Whether a file has a leading zero decides its type, and not what joins."""
    (tmp_path / "a.csv").write_text("t,zip\n1,007\n2,10001\n3,7\n4,\n")
    (tmp_path / "b.csv").write_text("t,zip\n1,10001\n2,7\n3,7\n4,\n")
    pq.write_table(pa.table({"t": [1, 2], "zip": ["10001", "007"]}), tmp_path / "c.parquet")
    text, whole, stored = (tmp_path / name for name in ("a.csv", "b.csv", "c.parquet"))
    on: dict[str, Any] = {"on": "zip", "time": "t", "window": 5}
    for sides, expected in (((text, whole), [(1, 0), (2, 1), (2, 2)]), ((whole, stored), [(0, 0)])):
        found = replay(*sides, **on).outputs
        assert rows_of(found, "left_row", "right_row") == expected
        assert estimate(*sides, **on).report.aggregates[0].estimate == len(expected)
        streams = dict(zip("xy", sides, strict=True))
        found = multijoin(streams, predicate="equi:zip", time="t", window=5).outputs
        assert rows_of(found, "x_row", "y_row") == expected
    found = lookup(whole, text, on="zip", time="t").outputs
    assert rows_of(found, "row", "fact_row") == [(0, 1), (1, 2), (2, 2)]
    with pytest.raises(InputError, match=r"\(string\) .* \(int64\): they are not of one kind"):
        replay(stored, pa.table({"t": [1], "zip": [7]}), **on)
