"""Aggregates of the outputs for which conditions hold: of samples and of estimates."""

from __future__ import annotations

import datetime as dt
import operator
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import naive_estimate
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from estimate_cases import several_archives, streams, written

import winnow
from engine.runtime.errors import InputError, SpecError
from engine.sampling.aggregates import parse_aggregate
from engine.sampling.aggregates.where import Column, Condition

WHERE = {
    "left.v > 1.5": lambda left, _: left["v"] is not None and left["v"] > 1.5,
    "right.g = 'a' and left.w <= 1": lambda left, right: right["g"] == "a" and left["w"] <= 1,
    "left.g != 'b'": lambda left, _: left["g"] is not None and left["g"] != "b",
    "right.v is null": lambda _, right: right["v"] is None,
    "right.v IS NOT NULL and right.v<0": lambda _, right: (right["v"] or 0) < 0,
    "left.p = 1": lambda left, _: left["p"] == 1,
    "left.w > 99": lambda *_: False,
}


def outputs(tables: list[pa.Table]) -> list[tuple[dict[str, Any], dict[str, Any], int]]:
    """Return the members of all outputs and their time; windows of 30."""
    rows = [table.to_pylist() for table in tables]
    sides = [[(row["t"], row["k"]) for row in own] for own in rows]
    pairs = naive_estimate.pairs_of(*sides, (30, 30))
    return [(rows[0][i], rows[1][j], ts) for i, j, ts in pairs]


@pytest.mark.parametrize("where", WHERE)
def test_only_outputs_that_meet_the_conditions_count(tmp_path: Path, where: str) -> None:
    tables = streams(8)
    holds, given = WHERE[where], {**written(tmp_path, tables, 20), "on": "k", "time": "t"}
    texts = [f"count where {where}", f"sum(right.w) where {where} by left.p every 300"]
    options = {**given, "window": 30, "aggregates": texts}
    found = winnow.estimate(**options, within=0.001)
    sampled = winnow.sample(**options, fraction=1, exact_aggregates=True, cache=tmp_path / "cache")
    meeting = [own for own in outputs(tables) if holds(*own[:2])]
    for name, tables_of in (("estimate", found.aggregates), ("sample", sampled.aggregates)):
        lines = tables_of[texts[0]].to_pylist()
        assert sum(line["estimate"] for line in lines) == len(meeting), name
        wanted: dict[Any, float] = {}
        for left, right, ts in meeting:
            key = ts // 300 * 300, left["p"]
            wanted[key] = wanted.get(key, 0.0) + right["w"]
        for line in tables_of[texts[1]].to_pylist():
            key = line["window_begin"], line["left.p"]
            assert line["estimate"] == pytest.approx(wanted.pop(key, 0.0)), name
        assert not any(wanted.values()), name


def test_a_sample_covers_what_meets_the_conditions(tmp_path: Path) -> None:
    tables = streams(2, rows=3000, ticks=9000, keys=40)
    given = {**written(tmp_path, tables, 100), "on": "k", "time": "t", "window": 200}
    held, text = 0, "count where right.g = 'a'"
    for seed in range(20):
        found = winnow.sample(
            **given, aggregates=text, memory="40%", seed=seed, exact_aggregates=True,
            cache=tmp_path / "cache",
        )  # fmt: skip
        [line] = found.aggregates[text].to_pylist()
        assert 0 < line["exact"] < 0.5 * found.report["exact"]["outputs"]
        held += line["covered"]
    assert held >= 17


def test_conditions_of_several_streams(tmp_path: Path) -> None:
    options = several_archives(tmp_path, rows=3000)
    texts = [
        "count",
        "count by b.g, c.g",
        "count where b.g = 1 and c.g > 0",
        "sum(a.v) where a.v<0",
    ]
    found = winnow.estimate(**options, aggregates=texts, within=1e-6).aggregates
    grouped = found[texts[1]].to_pylist()
    wanted = sum(own["estimate"] for own in grouped if own["b.g"] == 1 and own["c.g"] > 0)
    [line] = found[texts[2]].to_pylist()
    assert line["estimate"] == wanted > 0
    [line] = found[texts[3]].to_pylist()
    assert line["estimate"] == 0


OPERATORS = {
    ">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le, "=": operator.eq,
    "!=": operator.ne, "<>": operator.ne,
}  # fmt: skip
NUMBERS = [
    2**64 - 1, 2**64, 2**53 + 1, 2, -1, Decimal("1.5"), Decimal("1e18"), Decimal("-128.5"),
    Decimal("9007199254740992.5"), Decimal("12345678901234567.88"),
    Decimal("12345678901234567.885"), Decimal("1e-9999"), Decimal("-1e999999999"),
    Decimal("1e999999999"), Decimal("inf"), 10**400,
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        (pa.uint64(), [2**64 - 1, 2**63, 0, None]),
        (pa.int64(), [2**62 + 1, 2**53 + 1, -3, None]),
        (pa.float64(), [1e300, 2.0, -0.5, None]),
        (pa.float16(), [2.0, 0.5, -0.5, None]),
        (pa.float32(), [2.0, -1.0, 1e30, None]),
        (pa.decimal128(38, 30), [Decimal(2), Decimal("-0.5"), Decimal(0), None]),
        (pa.decimal128(38, 2), [Decimal("12345678901234567.88"), Decimal("12345678901234567.89")]),
        (pa.decimal256(76, 1), [Decimal("9007199254740992.5"), Decimal(2**64), None]),
        (pa.decimal32(5, 1), [Decimal("1.5"), Decimal("9999.9"), Decimal("-9999.9"), None]),
        (pa.int8(), [-128, 127, -1, 2, None]),
        (pa.null(), [None, None]),
    ],
)
@pytest.mark.parametrize("value", NUMBERS)
def test_numbers_compare_whatever_their_types_hold(
    kind: pa.DataType, cells: list[Any], value: int | Decimal
) -> None:
    for op, compare in OPERATORS.items():
        found = Condition(Column(0, "v", "left"), op, value).holds(pa.array(cells, kind))
        assert found.tolist() == [cell is not None and compare(cell, value) for cell in cells]


@pytest.mark.parametrize("kind", [pa.int32(), pa.decimal128(30, 2), pa.float32()])
def test_no_cell_equals_nan(kind: pa.DataType) -> None:
    cells = pa.array([1, 2, None]).cast(kind)
    for op in OPERATORS:
        [own] = parse_aggregate(f"count where left.v {op} nan").where
        assert own.holds(cells).tolist() == [op in ("!=", "<>")] * 2 + [False]


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
def test_a_number_is_the_nearest_that_a_column_of_floats_has(kind: pa.DataType) -> None:
    cells = pa.array([0.1, 0.2, -0.1, None]).cast(kind)
    for op, wanted in (("=", [True, False, False]), (">", [False, True, False])):
        [own] = parse_aggregate(f"count where left.v {op} 0.1").where
        assert own.holds(cells).tolist() == [*wanted, False]


@pytest.mark.parametrize(
    ("kind", "cells", "where", "held"),
    [
        (pa.decimal128(38, 2), ["12345678901234567.88"], "= '12345678901234567.88'", [True]),
        (pa.decimal128(38, 2), ["12345678901234567.88"], "= '12345678901234567.885'", [False]),
        (pa.int64(), ["5", "6"], ">= '5.5'", [False, True]),
        (pa.float32(), ["0.1"], "= '0.1'", [True]),
        (pa.bool_(), ["true", "false"], "= 'true'", [True, False]),
        (pa.binary(3), ["abc", "abd"], "> 'abc'", [False, True]),
        (pa.binary(3), ["abc", "abd"], "< 'abd0'", [True, True]),
        (pa.large_string(), ["abc", "abd"], "= 'abd'", [False, True]),
    ],
)
def test_texts_compare_as_what_a_column_has(
    kind: pa.DataType, cells: list[str], where: str, held: list[bool]
) -> None:
    [own] = parse_aggregate(f"count where left.v {where}").where
    own.check(kind)
    assert own.holds(pa.array(cells).cast(kind)).tolist() == held


def test_uuids_compare() -> None:
    ids = [uuid.UUID(int=1), uuid.UUID(int=2), None]
    cells = pa.array([None if own is None else own.bytes for own in ids], pa.uuid())
    for op, held in (("=", [False, True, False]), ("<", [True, False, False])):
        [own] = parse_aggregate(f"count where left.v {op} '{ids[1]}'").where
        own.check(pa.uuid())
        assert own.holds(cells).tolist() == held


@pytest.mark.parametrize("value", ["a", 1, Decimal("0.5"), True])
@pytest.mark.parametrize("kind", [pa.null(), pa.string(), pa.int64(), pa.list_(pa.int8())])
def test_a_column_of_nulls_compares_with_nothing(kind: pa.DataType, value: Any) -> None:
    condition = Condition(Column(0, "v", "left"), "!=", value)
    assert not condition.holds(pa.nulls(3, kind)).any()


def test_an_empty_column_of_csv_groups_and_compares(tmp_path: Path) -> None:
    (tmp_path / "left.csv").write_text("at,k,note\n1,a,\n2,b,\n")
    (tmp_path / "right.csv").write_text("at,k,n\n2,a,5\n3,b,6\n")
    sides = {name: tmp_path / f"{name}.csv" for name in ("left", "right")}
    wanted = {"count by left.note": 2, "count where left.note = 1": 0,
              "count where left.note is null": 2, "count where left.note != 'x'": 0}  # fmt: skip
    given = {**sides, "on": "k", "time": "at", "window": 5, "aggregates": [*wanted]}
    for found in (
        winnow.sample(**given, memory=9, aggregates_out=tmp_path / "tables"),
        winnow.estimate(**given, within=0.01),
    ):
        for text, number in wanted.items():
            lines = found.aggregates[text].to_pylist()
            assert [line["estimate"] for line in lines] == [number], text


@pytest.mark.parametrize(
    ("text", "held"),
    [
        ("2024-03-01", [False, True]),
        ("2024-03-01 00:00", [False, True]),
        ("2024-02-29T23:00:00Z", [False, True]),
        ("2024-02-29 23:59+01:00", [True, True]),
    ],
)
def test_a_time_without_an_offset_is_of_the_zone_of_the_column(text: str, held: list[bool]) -> None:
    times = pa.array(["2024-02-29 23:59", "2024-03-01 00:00"]).cast(pa.timestamp("ms"))
    zoned = pc.assume_timezone(times, "Europe/Berlin")
    assert Condition(Column(0, "at", "left"), ">=", text).holds(zoned).tolist() == held


BACK, ON = 1_698_537_600, 1_679_788_800
"""Days of 2023: at 1:00 UTC clocks in Berlin go back from 3:00, and on from 2:00, by an hour."""


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("2023-10-29 01:30:00", BACK - 1_800),
        ("2023-10-29 02:30:00", BACK + 1_800),  # the first of two
        ("2023-10-29 03:30:00", BACK + 9_000),
        ("2023-10-29T02:30:00+01:00", BACK + 5_400),
        ("2023-03-26 02:30:00", ON + 3_600),  # no clock shows it
    ],
)
def test_times_when_clocks_change(text: str, first: int) -> None:
    cells = pa.array([first - 1, first], pa.timestamp("s", "Europe/Berlin"))
    condition = Condition(Column(0, "at", "left"), ">=", text)
    assert condition.holds(cells).tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("count where", r"'' is no condition: write it as in where left.price > 10 and right"),
        ("count where left.v", r"'left.v' is no condition"),
        ("count where v > 1", r"'v > 1' is no condition"),
        ("count where left.v == 1", r"'==' is no comparison: use =, !=, <, <=, > or >="),
        ("count where left.v => 1", r"'=>' is no comparison: use"),
        ("count where left.v = snan", r"'snan' is no value to compare with"),
        ("count where left.v > x", r"'x' is no value to compare with: give a number, true"),
        ("count by left.g where left.v > 1", r"'where left.v > 1' is out of place: after the"),
        ("count where left.v > 1 or left.v < 0", r"'or left.v < 0' is out of place"),
    ],
)
def test_conditions_that_do_not_read(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse_aggregate(text)


def test_conditions_that_do_not_compare_and_columns_that_there_are_not() -> None:
    kinds = {
        "v": pa.float64(), "at": pa.timestamp("s"), "d": pa.date32(), "n": pa.timestamp("ns"),
        "z": pa.timestamp("ns", "Europe/Berlin"), "u": pa.uuid(), "b": pa.bool_(),
        "l": pa.list_(pa.int8()),
    }  # fmt: skip
    schema = pa.schema([*kinds.items()])
    for text, said in (
        ("count where left.v = 'x'", r"column left.v has type double, which does not compare with"),
        ("count where left.zz = 1", r"stream left has no column 'zz'"),
        ("count where left.at > 5", r"column left.at has type timestamp\[s\], which does not"),
        (
            "count where left.at > '2024-05-01 09:30:00.5'",
            "'2024-05-01 09:30:00.5': it is finer than the column, which has whole seconds: give",
        ),
        (
            "count where left.at > '2024-05-01 09:30Z'",
            "'2024-05-01 09:30Z': it has an offset, and the column no time zone: leave it out",
        ),
        (
            "count where left.n > '2500-01-01'",
            "'2500-01-01': the column holds times from 1677-09-22 to 2262-04-11: give one of these",
        ),
        ("count where left.z > '2500-01-01'", "the column holds times from 1677-09-22"),
        (
            "count where left.d = '2024-05-01 09:30'",
            "it has a time of day: give the date alone, as in '2024-05-01'",
        ),
        ("count where left.at = 'soon'", "with 'soon': give a date or time in single quotes, as"),
        ("count where left.u = 'x'", "with 'x': give a UUID in single quotes, as in '123e4567-"),
        ("count where left.u = 1", "with 1: give a UUID in single quotes"),
        ("count where left.b = 1.5", "with 1.5: give true or false"),
        ("count where left.v = true", "with true: give a number"),
        ("count where left.l = 'x'", "with 'x': give is null or is not null"),
    ):
        with pytest.raises(InputError, match=said):
            parse_aggregate(text).resolve("tick", schema, schema)
    [own] = parse_aggregate("count where left.at >= '2024-03-01'").where
    days = [dt.date(2024, 2, 29), dt.date(2024, 3, 1), None]
    times = pa.array(days, pa.date32()).cast(pa.timestamp("s"))
    assert own.holds(times).tolist() == [False, True, False]
    [own] = parse_aggregate("count where left.d < '2024-03-01'").where
    assert own.holds(times.cast(pa.date32())).tolist() == [True, False, False]
    [own] = parse_aggregate("count where right.\"a b\" = 'it''s'").where
    assert (own.column.column, own.value) == ("a b", "it's")
    for cells in (pa.array(["it's", "x"]), pa.array(["it's", "x"]).dictionary_encode()):
        assert own.holds(cells).tolist() == [True, False]
