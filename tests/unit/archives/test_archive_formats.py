"""Files that are not Parquet have the rows of one: CSV of any dialect, JSON lines, Arrow."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from file_formats import WRITE, Writer, csv, json_lines

import winnow
from engine.archives import readers, texts
from engine.archives.roles import Roles, check_roles
from engine.archives.rows import Rows
from engine.archives.source import open_archive
from engine.archives.spooling import SpoolTask, spool
from engine.runtime.errors import InputError
from engine.runtime.warned import WinnowWarning

ROWS = 300


def table() -> pa.Table:
    random = np.random.default_rng(0)
    words = np.array(["north", "a;b", "it's, so", 'a "b"', "é|ü", ""])
    return pa.table({
        "t": np.arange(ROWS) * 7,
        "k": pa.array(words[random.integers(0, 6, ROWS)]),
        "v": np.round(random.normal(size=ROWS), 3),
    })  # fmt: skip


WRITTEN: dict[str, Writer] = {
    "a.csv": csv(), "a.csv.gz": csv(), "a.csv.bz2": csv(), "a.csv.zst": csv(),
    "semicolon.csv": csv(sep=";"), "a.de.csv": WRITE["de.csv"], "bar.csv": csv(sep="|"),
    "a.tsv": csv(sep="\t"), "a.tsv.zst": csv(sep="\t"), "tab.csv": csv(sep="\t"),
    **dict.fromkeys(("a.jsonl", "a.ndjson.gz", "a.JSON", "a.jsonl.zst"), json_lines),
    **dict.fromkeys(("a.feather", "a.arrow"), WRITE["feather"]),
}  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("block", [1 << 22, 400])
def test_rows_are_those_of_parquet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, block: int
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", block)
    wanted = table()
    WRITTEN[name](wanted, tmp_path / name)
    found = open_archive(str(tmp_path), "left")
    assert found.copied
    assert found.schema == wanted.schema
    parts = Rows(found, ("t", "v"), tmp_path).parts(["v", "t", "k"])
    rows = pa.concat_tables([part.table for part in parts])
    if found.format == "csv":  # of which an empty cell is null
        cells = ["" if cell is None else cell for cell in rows["k"].to_pylist()]
        rows = rows.set_column(2, "k", pa.array(cells))
    assert rows.equals(wanted.select(["v", "t", "k"]))


@pytest.mark.parametrize(
    ("text", "delimiter", "point"),
    [
        ("a,b\n1,2\n", ",", "."), ("a\n1\n", ",", "."), ("", ",", "."), ('"a;b;c",d\n', ",", "."),
        ("a;b\n1;2,5\n", ";", ","), ("a;b\n1;2.5\n", ";", "."), ("a;b\n1;x\n", ";", "."),
        ("a;b\n1\n", ";", "."), ("a;b\n1;2,5", ";", ","), ("a;b", ";", "."),
        ("a|b\n", "|", "."), ("a\tb\n", "\t", "."),
    ],
)  # fmt: skip
def test_the_dialect_is_told_by_the_first_lines(
    tmp_path: Path, text: str, delimiter: str, point: str
) -> None:
    (tmp_path / "a.csv").write_text(text)
    assert readers.dialect(str(tmp_path / "a.csv")) == (delimiter, point)
    (tmp_path / "a.tsv").write_text(text)
    assert readers.dialect(str(tmp_path / "a.tsv")) == ("\t", ".")
    (tmp_path / "a.tsv.csv").write_text(text)
    assert readers.dialect(str(tmp_path / "a.tsv.csv")) == (delimiter, point)


def test_a_cell_that_is_no_number_leaves_decimal_commas_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", 1000)
    monkeypatch.setattr(readers, "_BEGIN", 1000)
    path = tmp_path / "a.csv"
    rows = [f"{i};{i},5" for i in range(900)]
    path.write_text("\n".join(["t;v", *rows, "7;x", ""]))
    schema = texts.first_schema(str(path), "left")
    assert schema.types == [pa.int64(), pa.float64()]
    out = tmp_path / "a.parquet"
    assert spool(SpoolTask(str(path), "left", schema, ("t", "v"), str(out))) == {"v": pa.string()}
    assert pq.read_table(out)["v"].to_pylist() == [*(f"{i}.5" for i in range(900)), "x"]


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_times_are_read_from_text(tmp_path: Path, name: str) -> None:
    times = pd.to_datetime(["2026-03-01T00:00:00.5Z", "2026-03-01T00:00:01.117514864Z"])
    rows = pa.table({"t": pa.array([f"{own.isoformat()}" for own in times]), "k": [1, 2]})
    WRITTEN[name](rows, tmp_path / name)
    found = open_archive(str(tmp_path / name), "left")
    joined = check_roles(found, Roles(("k",), "t"), found, Roles(("k",), "t"))
    assert (joined.unit, joined.zoned) == ("ns", True)


def write(path: Path, objects: list[object]) -> Path:
    path.write_text("".join(f"{json.dumps(own)}\n" for own in objects))
    return path


def read(path: Path, *lenient: str) -> pa.Table:
    rows = Rows(open_archive(str(path), "left"), lenient, path.parent)
    return pa.concat_tables([part.table for part in rows.parts(rows.schema.names)])


def test_members_of_objects_may_be_missing_or_nested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "_BLOCK", 64)
    nested = [{"t": i, "at": {"x": [i]}, "none": None} for i in range(9)]
    later = {"t": 9, "new": 1}  # a member that the first block has not
    with pytest.warns(WinnowWarning, match="a.jsonl have members that none of the first objects"):
        found = read(write(tmp_path / "a.jsonl", [*nested, later]))
    wanted = [*nested, {"t": 9, "at": None, "none": None}]
    assert found.to_pylist() == wanted


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([{"t": 1, "k": "a"}, {"t": 2, "k": 5}], "(k is number and no string): correct it"),
        ([[{"t": 1}, {"t": 2}]], "holds an array: write each of its objects on a line"),
        ([{"t": 1, "t ": 2}, 5], "malformed line '5' (it is number and no object)"),
        ([{"t": {"x": 1}}, {"t": [1]}], "(t is array and no object)"),
        ([], "is empty: it needs an object on a line"),
    ],
)
def test_lines_that_are_no_objects_of_one_kind_are_told(
    tmp_path: Path, objects: list[object], message: str
) -> None:
    with pytest.raises(InputError, match=r"left archive: file .*a\.jsonl") as told:
        read(write(tmp_path / "a.jsonl", objects))
    assert message in str(told.value)


@pytest.mark.parametrize("nothing", [b"", b"\n"])
@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_a_file_of_json_without_objects_has_no_rows(
    tmp_path: Path, nothing: bytes, ending: str
) -> None:
    nothing = gzip.compress(nothing) if ending.endswith("gz") else nothing
    for name in ("a", "c"):
        (tmp_path / f"{name}.{ending}").write_bytes(nothing)
    with pytest.raises(InputError, match="is empty: it needs an object on a line"):
        open_archive(str(tmp_path), "left")
    write(tmp_path / "b.jsonl", [{"t": "2024-01-01", "k": 1}, {"t": "2024-01-02", "k": 2}])
    found, roles = open_archive(str(tmp_path), "left"), Roles(("k",), "t")
    assert check_roles(found, roles, found, roles).unit == "day"
    assert read(tmp_path).column_names == ["t", "k"]
    outputs = winnow.replay(tmp_path, tmp_path, on="k", time="t", window=1, columns="ids").outputs
    assert outputs["left_row"].to_pylist() == [0, 1]


def test_columns_of_one_name_in_an_arrow_file_are_told(tmp_path: Path) -> None:
    rows = pa.table([[1], [2], [3]], names=["t", "k", "k"])
    with pa.ipc.new_file(tmp_path / "a.arrow", rows.schema) as file:
        file.write_table(rows)
    with pytest.raises(InputError, match="has more than one column k: rename one"):
        open_archive(str(tmp_path), "left")


def test_what_is_no_arrow_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.feather").write_text("hello")
    with pytest.raises(InputError, match="cannot be read as an Arrow IPC file"):
        open_archive(str(tmp_path), "left")


def test_text_that_holds_no_times_is_told_with_a_cell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("t,k\n01.03.2026 08:00:00,1\n")
    found = open_archive(str(tmp_path), "left")
    told = "time column t holds text such as '01.03.2026 08:00:00': write times as in 2026-03-01T"
    with pytest.raises(InputError, match=told):
        check_roles(found, Roles(("k",), "t"), found, Roles(("k",), "t"))


def test_integers_that_lose_digits_as_floats_are_told(tmp_path: Path) -> None:
    own = [
        {"t": 2**60 + i, "k": 2**64 + i, "x": [0.5, 2**70][i % 2], "q": f"{i}"} for i in range(4)
    ]
    path = write(tmp_path / "a.jsonl", own)
    with pytest.warns(WinnowWarning, match=f"column k is .* floats, and none equals {2**64 + 1}:"):
        found = open_archive(str(path), "left")
    assert found.schema.types == [pa.int64(), pa.float64(), pa.float64(), pa.string()]
    with pytest.raises(InputError, match="floating-point numbers are not compared"):
        check_roles(found, Roles(("k",), "t"), found, Roles(("k",), "t"))


@pytest.mark.parametrize("text", ["t,k", "t;k", "\n"])
def test_a_header_without_an_end_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=r"a\.csv needs a line of column names that has an end$"):
        open_archive(str(tmp_path), "left")
