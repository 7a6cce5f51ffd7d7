"""Types that Arrow barely computes with, or Parquet does not store, wherever they come from."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import winnow
from engine.archives.storable import storable, storable_type
from engine.runtime.errors import InputError

CELLS: dict[str, list[Any]] = {
    "texts": [["a", None], None, []],
    "records": [{"x": "b", "y": [{"z": "c"}]}, None, {"x": None, "y": None}],
}
RIGHT = pa.table({"t": [0, 1, 2], "k": [1, 2, 3]})
CATEGORIES = ["a", "b", None]


def frame() -> pl.DataFrame:
    own = pl.DataFrame({"t": [0, 1, 2], "k": [1, 2, 3], **CELLS})
    kinds = {"category": pl.Categorical(), "one_of": pl.Enum(["a", "b"])}
    own = own.with_columns(pl.Series(name, CATEGORIES, kind) for name, kind in kinds.items())
    return own.with_columns(categories=pl.concat_list("category"))


def stored(folder: Path, form: str) -> Any:
    """Return the frame, or the path of a file of it."""
    own = frame()
    if form == "frame":
        return own
    path = folder / f"left.{form}"
    if form == "arrow":
        own.write_ipc(path)
    else:
        pq.write_table(own.select("t", "k", "texts").to_arrow(), path)
    return path


@pytest.mark.parametrize("form", ["frame", "arrow", "parquet"])
def test_text_of_polars_within_other_types_is_joined(tmp_path: Path, form: str) -> None:
    left = stored(tmp_path, form)
    join: dict[str, Any] = {"on": "k", "time": "t", "window": 1}
    found = winnow.replay(left, RIGHT, **join).outputs.to_pylist()
    wanted = {**CELLS, "category": CATEGORIES, "one_of": CATEGORIES}
    wanted["categories"] = [[own] for own in CATEGORIES]
    names = ["texts"] if form == "parquet" else [*wanted]
    cells = {name: [row[f"left_{name}"] for row in found] for name in names}
    assert cells == {name: wanted[name] for name in names}


@pytest.mark.parametrize("form", ["frame", "arrow"])
def test_other_tasks_take_text_of_polars_within_other_types(tmp_path: Path, form: str) -> None:
    left = stored(tmp_path, form)
    streams: Any = {"a": left, "b": RIGHT}
    joined = winnow.multijoin(streams, predicate="equi:k", time="t", window=1)
    assert joined.outputs["a_texts"].to_pylist() == CELLS["texts"]
    looked = winnow.lookup(left, RIGHT, on="k", time="t")
    assert looked.outputs["stream_texts"].to_pylist() == CELLS["texts"]


NESTED = [
    pa.list_(pa.string_view()),
    pa.large_list(pa.binary_view()),
    pa.list_(pa.string_view(), 2),
    pa.map_(pa.string_view(), pa.list_(pa.string_view())),
    pa.struct([("a", pa.list_(pa.struct([("b", pa.string_view())])))]),
]


@pytest.mark.parametrize("kind", NESTED, ids=str)
def test_no_views_are_left(kind: pa.DataType) -> None:
    plain = storable_type(kind)
    assert "view" not in str(plain)
    assert str(plain) == str(kind).replace("_view", "")
    table = storable(pa.table({"p": pa.nulls(2, kind)}))
    assert table.schema.types == [plain]
    assert table["p"].null_count == 2


HUNDREDS = pa.decimal128(5, -2)
CELLS_OF = {
    "plain": (HUNDREDS, [Decimal(100), None]),
    "list": (pa.list_(HUNDREDS), [[Decimal(200)], []]),
    "struct": (pa.struct([("x", HUNDREDS)]), [{"x": Decimal(-300)}, None]),
    "long": (pa.decimal128(5, -36), [Decimal("1E+38"), None]),
}


@pytest.mark.parametrize("name", CELLS_OF)
def test_decimals_of_negative_scale_are_whole_numbers(tmp_path: Path, name: str) -> None:
    kind, cells = CELLS_OF[name]
    left = pa.table({"t": [0, 1], "k": [1, 2], "d": pa.array(cells, kind)})
    path = tmp_path / "left.arrow"
    with pa.ipc.new_file(path, left.schema) as writer:
        writer.write_table(left)
    for given in (left, path):
        found = winnow.replay(given, RIGHT, on="k", time="t", window=1).outputs
        assert found["left_d"].to_pylist() == cells
    streams: Any = {"a": left, "b": RIGHT}
    joined = winnow.multijoin(streams, predicate="equi:k", time="t", window=1).outputs
    assert joined["a_d"].to_pylist() == cells


def test_decimals_of_more_digits_than_any_decimal_are_refused() -> None:
    none = pa.nulls(2, pa.decimal128(38, -60))
    left = pa.table({"t": [0, 1], "k": [1, 2], "d": none})
    with pytest.raises(InputError, match=r"a column of decimal128\(38, -60\) is of more than 76"):
        winnow.replay(left, RIGHT, on="k", time="t", window=1)
