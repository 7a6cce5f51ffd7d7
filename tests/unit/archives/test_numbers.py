"""Numbers as float64: the nearest to each, whatever their type."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from engine.archives.normalise import normalise
from engine.archives.numbers import as_float64
from engine.archives.roles import JoinColumns, Roles
from engine.jobs.multijoin.attributes import raw_attributes
from engine.multiway.predicate import parse_predicate
from engine.sampling.aggregates.where import Column, Condition
from winnow import multijoin

TENTHS = [Decimal(i) / 10 for i in range(60)]
ONE_DIGIT = pa.decimal128(6, 1)


@pytest.mark.parametrize(
    "kind",
    [
        pa.decimal32(9, 4), pa.decimal64(18, 3), pa.decimal128(9, 2), pa.decimal128(18, 18),
        pa.decimal128(38, 30), pa.decimal128(20, 0), pa.decimal128(9, -3), pa.decimal256(70, 40),
    ],
)  # fmt: skip
@pytest.mark.parametrize("digits", [3, 15, 17, 70])
def test_decimals_become_the_nearest(kind: pa.DataType, digits: int) -> None:
    draw, most = np.random.default_rng(digits), 10 ** min(digits, kind.precision)
    whole = [int.from_bytes(draw.bytes(40)) % (2 * most - 1) - most + 1 for _ in range(200)]
    cells = [None, *(Decimal(own).scaleb(-kind.scale) for own in whole), None]
    column = pa.chunked_array([pa.array(cells, kind), pa.array([Decimal(0), *cells], kind)[3:]])
    expected = [None if cell is None else float(cell) for cell in cells]
    assert as_float64(column).to_pylist() == expected + expected[2:]
    assert as_float64(column.slice(5, 9)).to_pylist() == expected[5:14]
    assert as_float64(column.slice(0, 0)).to_pylist() == []


def test_a_column_without_nulls_and_other_types() -> None:
    assert as_float64(pa.array(TENTHS, ONE_DIGIT)).to_pylist() == [i / 10 for i in range(60)]
    for cells in (pa.array([True, None]), pa.array([1, None], pa.uint64()), pa.array([1.0, None])):
        assert as_float64(cells).to_pylist() == [1.0, None]
    assert as_float64(pa.nulls(2)).to_pylist() == [None, None]


def test_decimal_importances_are_the_nearest() -> None:
    columns = JoinColumns("tick", False, (pa.int64(),), ())
    table = pa.table({"k": [1] * 60, "t": [1] * 60, "i": pa.array(TENTHS, ONE_DIGIT)})
    found = normalise(table, Roles(("k",), "t", "i"), columns, 0)
    assert found.importance.tolist() == [i / 10 for i in range(60)]


def test_decimals_join_the_same_floats() -> None:
    columns = {"a": pa.array(TENTHS, ONE_DIGIT), "b": [float(own) for own in TENTHS]}
    streams = {name: pa.table({"t": [0] * 60, "v": own}) for name, own in columns.items()}
    found = multijoin(streams, predicate="band:v:0", time="t", window=0)
    assert found.outputs.num_rows == 60


def test_decimal_weights_are_the_nearest() -> None:
    cells = pa.array([[(i, own)] for i, own in enumerate(TENTHS)], pa.map_(pa.int64(), ONE_DIGIT))
    inner = parse_predicate("inner:v:0.001")
    raw, _ = raw_attributes(inner, pa.table({"v": cells}), ["v"], [pa.int64()], "a")
    assert [own[0]["weight"] for own in raw.vectors.to_pylist()] == [i / 10 for i in range(60)]


def test_decimals_compare_with_what_people_write() -> None:
    cells = pa.array(TENTHS, ONE_DIGIT)
    held = [
        Condition(Column(0, "v", "left"), "=", Decimal(i) / 10).holds(cells)[i] for i in range(60)
    ]
    assert all(held)
