"""What is said of frames that cannot be joined: in words of the frame, not of files made of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import winnow
from engine.runtime.errors import InputError, SpecError, WinnowError

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 1}
TASKS: dict[str, Callable[..., Any]] = {
    "replay": lambda *own, **more: winnow.replay(*own, **JOIN, **more),
    "profile": lambda *own, **more: winnow.profile(*own, **JOIN, **more),
    "bound": lambda *own, **more: winnow.bound(*own, memory=2, **JOIN, **more),
    "sample": lambda *own, **more: winnow.sample(*own, memory=2, **JOIN, **more),
    "sweep": lambda *own, **more: winnow.sweep(*own, memory=2, policies="prob", **JOIN, **more),
    "estimate": lambda *own, **more: winnow.estimate(*own, **JOIN, **more),
}
PLAIN = pa.table({"t": [1, 2], "k": [1, 2]})


@pytest.mark.parametrize("name", TASKS)
def test_two_columns_of_one_name_are_refused(name: str) -> None:
    twice = pa.table([[1, 2], [1, 2], [5, 6]], names=["t", "k", "k"])
    for sides, side in (((twice, PLAIN), "left"), ((PLAIN, twice), "right")):
        message = rf"^the {side} table has more than one column k: rename"
        with pytest.raises(InputError, match=message):
            TASKS[name](*sides)


def seconds(zone: str | None) -> pa.Table:
    return pa.table({"t": pa.array([1, 2], pa.timestamp("s", zone)), "k": [1, 2]})


@pytest.mark.parametrize("name", TASKS)
def test_types_are_those_of_the_frames(name: str) -> None:
    said = (
        r"left archive \(timestamp\[s, tz=UTC\]\) and t of the right archive \(timestamp\[s\]\): "
        "only one"
    )
    with pytest.raises(InputError, match=said):
        TASKS[name](seconds("UTC"), seconds(None))
    for cells, kind in (
        (pa.array([1, 2], pa.timestamp("s")), r"timestamp\[s\]"),
        (pa.array([[1], [2]]), "list<item: int64>"),
    ):
        with pytest.raises(InputError, match=rf"column k of the left archive \({kind}\)"):
            TASKS[name](PLAIN.set_column(1, "k", cells), PLAIN)
    with pytest.raises(InputError, match=r"right archive \(timestamp\[s\]\): they are not of one"):
        TASKS[name](PLAIN, PLAIN.set_column(1, "k", seconds(None)["t"]))


def test_types_of_facts_are_those_of_their_frame() -> None:
    fact = pa.table({"x": seconds(None)["t"], "y": [1, 2]})
    with pytest.raises(InputError, match=r"column x of the fact archive \(timestamp\[s\]\)"):
        winnow.replay(PLAIN, PLAIN, fact=fact, fact_left="x", fact_right="y", **JOIN)


def test_a_frame_beside_a_file_has_its_types(tmp_path: Path) -> None:
    pq.write_table(PLAIN, tmp_path / "right.parquet")
    with pytest.raises(InputError, match=r"left archive \(timestamp\[s\]\) and t of the right"):
        winnow.replay(seconds(None), tmp_path / "right.parquet", **JOIN)


BAD = pa.table({"t": [4, None, 3, 1], "k": [0, 1, 2, 3]})


@pytest.mark.parametrize("name", TASKS)
def test_bad_rows_are_those_of_a_frame(name: str) -> None:
    for sides, side in (((BAD, PLAIN), "left"), ((PLAIN, BAD), "right")):
        with pytest.raises(InputError) as caught:
            TASKS[name](*sides)
        row, order = (3, " in order of time") if name == "estimate" else (1, "")
        assert str(caught.value) == (
            f"{side} frame: column t: 1 row is null (row {row}): correct them or use bad_rows "
            f"quarantine (rows count from 0{order})"
        )


def test_bad_rows_of_facts_and_of_several_streams_are_those_of_frames() -> None:
    fact = pa.table({"x": [1, 2], "y": [1, 2], "b": [1, 5], "e": [3, 1]})
    sides = {"fact_left": "x", "fact_right": "y", "fact_begin": "b", "fact_end": "e"}
    with pytest.raises(InputError, match=r"^fact frame: column b: 1 row is not .*from 0\)$"):
        winnow.replay(PLAIN, PLAIN, fact=fact, **sides, **JOIN)
    streams = {"a": BAD, "b": PLAIN}
    with pytest.raises(InputError, match=r"column t of stream a: 1 row is null .*from 0\)$"):
        winnow.multijoin(streams, predicate="equi:k", time="t", window=1)
    with pytest.raises(InputError, match=r"^column t of stream a: 1 row is null .*from 0\)$"):
        winnow.replay_streams(streams, pa.table({"a": [1], "b": [1]}), **JOIN)
    changing = pa.table({"k": [1, 2], "b": [1, 5], "e": [3, 1]})
    with pytest.raises(InputError, match=r"^column b of the facts: 1 row is not .*from 0\)$"):
        winnow.lookup(PLAIN, changing, on="k", time="t", fact_begin="b", fact_end="e")
    with pytest.raises(InputError, match=r"^column t of the stream: 1 row is null .*from 0\)$"):
        winnow.lookup(BAD, changing, on="k", time="t")
    with pytest.raises(WinnowError, match="the a archive: row group 0 of the a frame does not say"):
        winnow.estimate(streams, predicate="equi:k", time="t", window=1)


def test_bad_rows_of_a_frame_beside_a_file_say_which_is_which(tmp_path: Path) -> None:
    pq.write_table(BAD, tmp_path / "b.parquet")
    message = (
        r"^left frame: column t: .*; the right archive: file .*b.parquet: column t: .* from 0 "
        r"within a file\)$"
    )
    with pytest.raises(InputError, match=message):
        winnow.replay(BAD, tmp_path / "b.parquet", **JOIN)
    found = winnow.replay(BAD, tmp_path / "b.parquet", bad_rows="quarantine", **JOIN).rejected
    assert found["right"]["file"].to_pylist() == [str(tmp_path / "b.parquet")]
    assert found["left"].to_pylist() == [{"row": 1, "reason": "null time", "t": None, "k": 1}]


def test_rows_set_aside_have_the_columns_of_their_frame() -> None:
    facts = pa.table({"x": [1, 1], "y": [1, 1], "b": [5, 1], "e": [3, 3], "file": ["p", "q"]})
    sides = {"fact_left": "x", "fact_right": "y", "fact_begin": "b", "fact_end": "e"}
    own = {"bad_rows": "quarantine"} | JOIN
    found = winnow.replay(PLAIN, PLAIN, fact=facts, **sides, **own).rejected["fact"]
    assert found.column_names == ["row", "reason", "x", "y", "b", "e", "original_file"]


WIDE = pl.DataFrame({"t": [1, 2], "k": pl.Series([1, 2], dtype=pl.Int128)})
CAST = "cast the column to one type that Arrow has, such as a decimal or text, or leave it out"
FRAME = "it is one column: give a frame, as its to_frame() or pyarrow.table makes"
RENAME = "rename one of the columns, or the index"


class Refused:
    """What has no rows to give."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        raise ValueError("no rows today")


@pytest.mark.parametrize(
    ("frame", "reason", "remedy"),
    [
        (WIDE, r"column k is Int128; .*'_pli128'", CAST),
        (WIDE.lazy(), "column k is Int128; ", CAST),
        (pd.DataFrame({"t": [1, 2], "k": [1, "x"]}), "Could not convert 'x' .* column k", CAST),
        (pd.DataFrame({"t": [1], "k": [2**70]}), "too large", CAST),
        (pd.Series([1, 2], name="t"), "non-struct type int64", FRAME),
        (pl.Series("t", [1, 2]), "non-struct type int64", FRAME),
        (pa.chunked_array([[1, 2]]), "non-struct type int64", FRAME),
        (pd.DataFrame([[1, 2, 3]], columns=["t", "k", "k"]), "'t', 'k', 'k'", RENAME),
        (pd.DataFrame({"k": [2]}, index=pd.Index([1], name="k")), "cannot insert k", RENAME),
        (pl.DataFrame({"t": [1], "k": pl.Series([{1}], dtype=pl.Object)}), "k is Object", CAST),
        (Refused(), "no rows today", "give a pyarrow.Table of it"),
    ],
    ids=range(11),
)
def test_the_remedy_is_one_for_what_arrow_refuses(frame: Any, reason: str, remedy: str) -> None:
    message = rf"^left is a [\w.]+, of which Arrow makes no table \(.*{reason}.*\): {remedy}$"
    with pytest.raises(InputError, match=message.replace("to_frame()", r"to_frame\(\)")):
        winnow.replay(frame, PLAIN, **JOIN)


MONTHS = PLAIN.append_column("p", pa.array([pa.MonthDayNano([1, 2, 3]), None]))


@pytest.mark.parametrize("name", TASKS)
def test_columns_that_parquet_cannot_hold_are_refused(name: str) -> None:
    said = "frame right: column p is month_day_nano_interval, for which Parquet, .*: cast it or"
    with pytest.raises(InputError, match=said):
        TASKS[name](PLAIN, MONTHS)


def test_outputs_that_parquet_cannot_hold_are_refused() -> None:
    join: dict[str, Any] = {"predicate": "equi:k", "time": "t", "window": 1}
    with pytest.raises(SpecError, match="a_p of the output would be month_day_nano_interval, for"):
        winnow.multijoin({"a": MONTHS, "b": PLAIN}, **join)
    assert winnow.multijoin({"a": MONTHS, "b": PLAIN}, columns="ids", **join).outputs.num_rows == 2


@pytest.mark.parametrize("name", ["row", "reason", "file"])
def test_rows_that_are_set_aside_keep_columns_named_as_what_is_said_of_them(name: str) -> None:
    table = pa.table({"t": [1, 2], name: [7, 8], "w": [1.0, -1.0]})
    given = {"on": name, "time": "t", "window": 9, "bad_rows": "quarantine"}
    ids = {"columns": "ids"} if name == "row" else {}
    found = winnow.replay(table, table, importance="w", **given, **ids).rejected["left"]
    own = found.select(["row", "reason", f"original_{name}"])
    assert [*own.to_pylist()[0].values()] == [1, "negative importance", 8]
    many = winnow.multijoin(
        {"a": table, "b": table}, predicate=f"equi:{name}", importance="w",
        time="t", window=9, bad_rows="quarantine", **ids,
    )  # fmt: skip
    assert many.rejected["a"][f"original_{name}"].to_pylist() == [8]


def failing() -> dict[str, Callable[[], Any]]:
    """Return frames whose query fails: at once, where it is answered, and rows later."""
    own = duckdb.connect()
    text = pl.LazyFrame({"t": [1, 2], "k": ["1", "x"]})
    late = "CASE WHEN range = 300000 THEN error('too late') ELSE 1 END"
    return {
        "polars": lambda: text.with_columns(pl.col("k").cast(pl.Int64)),
        "file": lambda: pl.scan_parquet("nowhere.parquet"),
        "function": lambda: text.map_batches(lambda rows: rows[[1 // (len(rows) - 2)]]),
        "duckdb": lambda: own.sql("SELECT 1 AS t, CAST('x' || range AS INT) AS k FROM range(3)"),
        "late": lambda: own.sql(f"SELECT range AS t, {late} AS k FROM range(400000)"),  # noqa: S608
    }


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("polars", "InvalidOperationError: conversion from"),
        ("file", "FileNotFoundError: No such file"),
        ("function", "ZeroDivisionError: integer"),
        ("duckdb", "ConversionException: Conversion Error: Could not"),
        ("late", "OSError: .*too late"),
    ],
)
def test_the_stream_is_told_whose_query_fails(name: str, reason: str) -> None:
    frame = failing()[name]
    end = r".*\): correct its query, or give its rows as a table$"
    for sides, side in (((frame(), PLAIN), "left"), ((PLAIN, frame()), "right")):
        said = rf"^{side} is a .*, whose rows cannot be read \({reason}"
        with pytest.raises(InputError, match=said + end):
            TASKS["replay"](*sides)
    with pytest.raises(InputError, match=r"^stream b is a .*, whose rows cannot be read \("):
        winnow.multijoin({"a": PLAIN, "b": frame()}, predicate="equi:k", time="t", window=1)
