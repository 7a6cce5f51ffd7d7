"""Columns that names of folders hold: their types and values, and files that are opened."""

from __future__ import annotations

import datetime as dt
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from engine.archives.folders import folder_columns, value_in
from engine.archives.roles import Roles
from engine.archives.rows import Rows
from engine.archives.source import open_archive
from engine.lanes.prepare import prepare
from engine.runtime.errors import InputError
from engine.runtime.executors import SerialExecutor

NULL = "__HIVE_DEFAULT_PARTITION__"


def hive(folder: Path, *values: str, rows: int = 2, **columns: Any) -> Path:
    """Write a file of Parquet into each folder."""
    for at, value in enumerate(values):
        (folder / value).mkdir(parents=True)
        table = pa.table({"t": range(at * rows, (at + 1) * rows), **columns})
        pq.write_table(table, folder / value / "part.parquet")
    return folder


def read(where: Path | str) -> pa.Table:
    """Return all rows of an archive."""
    archive = open_archive(str(where), "left")
    rows = Rows(archive, (), Path("none"))
    found = [part.table for part in rows.parts(archive.schema.names)]
    assert all(own.schema.equals(archive.schema) for own in found)
    return pa.concat_tables(found)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["1", "03", "-7"], pa.array([1, 3, -7], pa.int32())),
        (["1", str(2**31 - 1), str(-(2**31))], pa.array([1, 2**31 - 1, -(2**31)], pa.int32())),
        (["1", str(2**31)], pa.array([1, 2**31], pa.int64())),
        ([str(-(2**63)), str(2**63 - 1)], pa.array([-(2**63), 2**63 - 1], pa.int64())),
        (["1", str(2**63)], pa.array(["1", str(2**63)])),
        (["1", NULL, ""], pa.array([1, None, None], pa.int32())),
        ([NULL], pa.array([None], pa.string())),
        (["1", "a"], pa.array(["1", "a"])),
        (["1", "+1", " 1"], pa.array(["1", "+1", " 1"])),
        (["2024-02-29", NULL], pa.array([dt.date(2024, 2, 29), None])),
        (["2024-02-29", "2023-02-29"], pa.array(["2024-02-29", "2023-02-29"])),
        (["2024-02-29", "20240229"], pa.array(["2024-02-29", "20240229"])),
        (["2024-02-29", "1"], pa.array(["2024-02-29", "1"])),
        (["10%3A00", "a%20b", "%25", "="], pa.array(["10:00", "a b", "%", "="])),
        (["1.5", "true"], pa.array(["1.5", "true"])),
        (["٣"], pa.array(["٣"])),
    ],
)
def test_values_have_the_types_that_spark_and_arrow_infer(
    values: list[str], expected: pa.Array
) -> None:
    paths = [f"/data/x={value}/part.parquet" for value in values]
    schema = folder_columns("/data", paths, "left")
    assert schema == pa.schema([("x", expected.type)])
    assert [value_in(path, schema.field("x")) for path in paths] == list(expected)


def test_arrow_reads_the_same(tmp_path: Path) -> None:
    hive(tmp_path, "year=2024/m%20n=a b", f"year=2024/m%20n={NULL}", "year=2023/m%20n=%C3%A9")
    known = ds.partitioning(flavor="hive")
    theirs = ds.dataset(tmp_path, partitioning=known).to_table().sort_by("t")
    ours = read(tmp_path).sort_by("t")
    assert ours.column_names == ["t", "year", "m n"]
    assert ours.to_pylist() == theirs.select(ours.column_names).to_pylist()
    assert ours.schema.field("year").type == theirs.schema.field("year").type == pa.int32()


def test_folders_count_that_are_named_or_lie_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hive(tmp_path / "a=0" / "b=1", "c=2/b=3")
    whole = read(tmp_path / "a=0")
    assert whole.select(["a", "b", "c"]).to_pylist()[0] == {"a": 0, "b": 3, "c": 2}
    monkeypatch.chdir(tmp_path / "a=0")
    for where in ("b=1", "*/c=2", "b=1/c=2/b=3/part.parquet"):
        assert read(where).column_names == ["t", "b", "c"]
        assert set(read(where)["b"].to_pylist()) == {3}
    marks = {open_archive(own, "left").fingerprint for own in (str(tmp_path / "a=0"), "b=1")}
    assert len(marks) == 2  # as their columns differ


def test_files_outside_a_pattern_are_not_opened(tmp_path: Path) -> None:
    hive(tmp_path, "day=2024-03-01", "day=2024-03-02", "day=2024-04-01")
    (tmp_path / "day=2024-04-01" / "part.parquet").write_bytes(b"no Parquet")
    found = read(f"{tmp_path}/day=2024-03-*")
    assert found["day"].to_pylist() == [dt.date(2024, 3, day) for day in (1, 1, 2, 2)]


def test_a_column_of_the_files_is_that_of_the_files(tmp_path: Path) -> None:
    hive(tmp_path, "x=1", "x=2", x=["own", "own"])
    assert read(tmp_path)["x"].to_pylist() == ["own"] * 4


@pytest.mark.parametrize("names", [("x=1", "flat"), ("flat", "x=1"), ("x=1", "y=1")])
def test_some_files_in_folders_and_some_not_are_refused(
    tmp_path: Path, names: tuple[str, str]
) -> None:
    hive(tmp_path, *names)
    with pytest.raises(InputError, match=r"mixes folders: \S+/x=1/\S+ lies in a folder x=\.\.\."):
        open_archive(str(tmp_path), "left")


def test_the_folder_of_a_table_format_is_refused(tmp_path: Path) -> None:
    hive(tmp_path, "x=1")
    (tmp_path / "_delta_log").mkdir()
    with pytest.raises(InputError, match=r"is a table of Delta Lake.*deltalake\.DeltaTable"):
        open_archive(str(tmp_path), "left")


@pytest.mark.parametrize(
    ("mark", "what"),
    [("_delta_log/0.json", "Delta Lake"), ("metadata/v1.metadata.json", "Iceberg")],
)
def test_a_folder_within_a_table_is_refused(tmp_path: Path, mark: str, what: str) -> None:
    table = tmp_path / "table"
    hive(table / "data", "x=1")
    (table / mark).parent.mkdir()
    (table / mark).write_text("{}")
    for folder in (table, table / "data", table / "data" / "x=1"):
        with pytest.raises(InputError, match=rf"folder \S+/table is a table of {what}"):
            open_archive(str(folder), "left")


def test_text_files_lie_in_folders_too(tmp_path: Path) -> None:
    for value in ("a", "b"):
        (tmp_path / f"x={value}").mkdir()
        pv.write_csv(pa.table({"t": [1, 2]}), tmp_path / f"x={value}" / "part.csv")
    archive = open_archive(str(tmp_path), "left")
    with_folders = Rows(archive, ("t",), tmp_path)
    found = pa.concat_tables(part.table for part in with_folders.parts(["x", "t"]))
    assert found.to_pydict() == {"x": ["a", "a", "b", "b"], "t": [1, 2, 1, 2]}


def test_many_small_files_are_listed_once_and_opened_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = 600
    for side in ("left", "right"):
        hive(tmp_path / side, *(f"n={at}" for at in range(files)), rows=3, k=["a", "b", None])
    opened: Counter[str] = Counter()
    listed: Counter[str] = Counter()
    whole, scan = pq.ParquetFile, os.scandir

    def opening(place: Any, **how: Any) -> pq.ParquetFile:
        opened[str(place)] += 1
        return whole(place, **how)

    def scanning(place: Any) -> Any:
        listed[str(place)] += 1
        return scan(place)

    monkeypatch.setattr(pq, "ParquetFile", opening)
    monkeypatch.setattr(os, "scandir", scanning)
    pair = [open_archive(str(tmp_path / side), side) for side in ("left", "right")]
    roles = Roles(("k", "n"), "t")
    found = prepare(
        *pair, roles, roles, folder=tmp_path / "lanes", lanes=1, bad_rows="error", payload=True,
        executor=SerialExecutor(),
    )  # fmt: skip
    assert [summary.joined for summary in found.streams] == [2 * files] * 2
    folders = [Path(file.path).parent for archive in pair for file in archive.files]
    folders += [tmp_path / "left", tmp_path / "right"]
    assert {place: listed[str(place)] for place in folders} == dict.fromkeys(folders, 1)
    archives = {path: count for path, count in opened.items() if path.endswith("part.parquet")}
    assert archives == {file.path: 2 for archive in pair for file in archive.files}
    assert len(opened) - len(archives) < files / 20  # runs of many files each
