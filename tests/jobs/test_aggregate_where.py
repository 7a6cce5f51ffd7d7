"""Aggregates of the outputs for which conditions hold: of samples and of estimates."""

from __future__ import annotations

import datetime as dt
import operator
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


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        (pa.uint64(), [2**64 - 1, 2**63, 0, None]),
        (pa.int64(), [2**62 + 1, 2**53 + 1, -3, None]),
        (pa.float64(), [1e300, 2.0, -0.5, None]),
        (pa.float16(), [2.0, 0.5, -0.5, None]),
        (pa.decimal128(38, 30), [Decimal(2), Decimal("-0.5"), Decimal(0), None]),
        (pa.null(), [None, None]),
    ],
)
@pytest.mark.parametrize("value", [2**64 - 1, 2**53 + 1, 2, -1, 1.5, 1e18])
def test_numbers_compare_whatever_their_types_hold(
    kind: pa.DataType, cells: list[Any], value: float
) -> None:
    for op, compare in ((">", operator.gt), ("<=", operator.le), ("=", operator.eq)):
        found = Condition(Column(0, "v", "left"), op, value).holds(pa.array(cells, kind))
        assert found.tolist() == [cell is not None and compare(cell, value) for cell in cells]


def test_a_column_of_nulls_compares_with_no_text() -> None:
    condition = Condition(Column(0, "v", "left"), "!=", "a")
    assert not condition.holds(pa.nulls(3)).any()


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
        ("count where left.v > x", r"'x' is no value to compare with: give a number, true"),
        ("count by left.g where left.v > 1", r"'where left.v > 1' is out of place: after the"),
        ("count where left.v > 1 or left.v < 0", r"'or left.v < 0' is out of place"),
    ],
)
def test_conditions_that_do_not_read(text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        parse_aggregate(text)


def test_conditions_that_do_not_compare_and_columns_that_there_are_not() -> None:
    schema = pa.schema([("v", pa.float64()), ("at", pa.timestamp("s")), ("d", pa.date32())])
    for text, said in (
        ("count where left.v = 'x'", r"column left.v has type double, which does not compare with"),
        ("count where left.z = 1", r"stream left has no column 'z'"),
        ("count where left.at > 5", r"column left.at has type timestamp\[s\], which does not"),
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
