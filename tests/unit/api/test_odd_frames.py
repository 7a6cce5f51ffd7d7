"""Frames without values or rows, and frames that can be read once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import winnow
from engine.runtime.errors import InputError

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 5}
PLAIN = pa.table({"t": [1, 2], "k": ["a", "a"]})


def in_seconds(table: pa.Table) -> pa.Table:
    return table.set_column(0, "t", table["t"].cast(pa.timestamp("s")))


@pytest.mark.parametrize(
    "nothing", [pa.nulls(2), pa.nulls(2).dictionary_encode()], ids=["nulls", "dictionary"]
)
@pytest.mark.parametrize("seconds", [False, True])
def test_a_column_without_values_is_one_of_nulls(nothing: pa.Array, *, seconds: bool) -> None:
    table = PLAIN.append_column("note", nothing)
    table = in_seconds(table) if seconds else table
    found = winnow.replay(table, table, **JOIN)
    assert found.outputs.schema.field("left_note").type == pa.null()
    assert found.to_pandas()["right_note"].isna().tolist() == [True] * 4
    assert found.to_polars().equals(pl.DataFrame(found))
    assert winnow.replay(table, table, **{**JOIN, "on": "note"}).outputs.num_rows == 0


def test_a_dictionary_without_values_may_lie_in_a_file(tmp_path: Path) -> None:
    table = PLAIN.append_column("note", pa.nulls(2).dictionary_encode())
    place = tmp_path / "a.arrow"
    with pa.ipc.new_file(place, table.schema) as file:
        file.write_table(table)
    assert winnow.replay(place, place, **JOIN).outputs["left_note"].null_count == 4


def test_a_reader_is_read_once() -> None:
    reader = PLAIN.to_reader()
    with pytest.raises(InputError, match=r"^right is a pyarrow.*Reader, which can be read once"):
        winnow.replay(reader, reader, **JOIN)
    with pytest.raises(InputError, match=r"^left is .* and was: give a table, as its read_all"):
        winnow.replay(reader, PLAIN, **JOIN)
    streams: Any = {"a": reader, "b": PLAIN}
    with pytest.raises(InputError, match=r"^stream a is .* which can be read once and was"):
        winnow.multijoin(streams, predicate="equi:k", time="t", window=5)
    with pytest.raises(InputError, match=r"^left is .* which can be read once and was"):
        winnow.estimate(reader, PLAIN, **JOIN)
    assert winnow.replay(PLAIN.to_reader(), PLAIN.to_reader(), **JOIN).outputs.num_rows == 4


@pytest.mark.parametrize("other", [None, PLAIN])
def test_a_frame_of_pandas_made_of_nothing_joins_nothing(other: pa.Table | None) -> None:
    empty = pd.DataFrame({"t": [], "k": []})
    found = winnow.replay(empty, empty if other is None else other, **JOIN)
    assert found.outputs.num_rows == 0


def test_an_empty_frame_of_pandas_with_types_keeps_them() -> None:
    typed = pd.DataFrame({"t": [1], "k": [1], "price": [0.5]}).head(0)
    kind = winnow.replay(typed, typed, **JOIN).outputs.schema.field("left_price").type
    assert kind == pa.float64()
