"""What people ask for, and what they are told when it means nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

from engine.runtime.errors import InputError, SpecError
from engine.sampling.aggregates import parse_aggregate
from engine.sampling.aggregates.spec import AggregateSpec, Panes
from engine.sampling.aggregates.where import Column

LEFT = pa.schema(
    [
        ("price", pa.float64()), ("cheap", pa.bool_()), ("name", pa.string()),
        ("at", pa.timestamp("us")), ("cost", pa.decimal128(12, 2)), ("tags", pa.list_(pa.int8())),
        ("a name, odd", pa.int8()), ("kind", pa.dictionary(pa.int8(), pa.string())),
        ('q"uote', pa.int8()), ("took", pa.duration("s")),
    ]
)  # fmt: skip
RIGHT = pa.schema([("region", pa.string()), ("importance", pa.int64())])


def resolved(text: str, unit: str = "s") -> AggregateSpec:
    return parse_aggregate(text).resolve(unit, LEFT, RIGHT)


PARSED = {
    "count(*)": ("count", "*", (), None, None),
    "  SUM ( Left.price )": ("sum", Column(0, "price", "left"), (), None, None),
    "avg(importance) every 5": ("avg", "importance", (), "5", None),
    "count(right.region) by left.name,right.region": (
        "count", Column(1, "region", "right"),
        (Column(0, "name", "left"), Column(1, "region", "right")), None, None,
    ),
    'sum(left."a name, odd") BY left."q""uote" EVERY 10 min OVER 1h 30min': (
        "sum", Column(0, "a name, odd", "left"), (Column(0, 'q"uote', "left"),),
        "10 min", "1h 30min",
    ),
    "avg(right.importance) every 1h over 1 day": (
        "avg", Column(1, "importance", "right"), (), "1h", "1 day",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", PARSED)
def test_texts_are_read(text: str) -> None:
    spec = parse_aggregate(text.replace("Left", "left"))
    assert (spec.function, spec.value, spec.by, spec.every, spec.over) == PARSED[text]
    assert resolved(text.replace("Left", "left")).panes is not None


WRONG = {
    "price": ("does not begin with a function", "avg(left.price)"),
    "mean(left.price)": ("no function 'mean'", "sum, count, avg"),
    "summ(left.price)": ("no function 'summ'", "Did you mean 'sum'?"),
    "sum(*)": ("sum of * means nothing", "name a column or importance"),
    "sum()": ("'' is no value", "left.COLUMN"),
    "sum(price)": ("'price' is no value", "left.COLUMN"),
    "sum(left.price": ("')' is missing after 'left.price'",),
    "sum(left.price, left.cost)": ("'left.price, left.cost' is no value", "importance"),
    "sum(left.price by right.region": ("')' is missing after 'left.price'",),
    "sum(left.price) by": ("'' is no column to group by", "right.COLUMN"),
    "sum(left.price) by importance": ("'importance' is no column", "right.COLUMN"),
    "sum(left.price) by left.name,": ("'' is no column", "right.COLUMN"),
    "sum(left.price) by left.name, left.name": ("left.name twice", "once"),
    "sum(left.price) over 1h": ("over 1h without every", "every 1h"),
    "sum(left.price) every": ("no length stands after every", "every 10min"),
    "sum(left.price) every over 1h": ("no length stands after every", "every 10min"),
    "sum(left.price) every 1h by left.name": ("'by left.name' is out of place", "in this order"),
    "sum(left.price) over 1h every 1h": ("without every", "say how often"),
    "sum(left.price) each 1h": ("'each 1h' is out of place", "by, every and over"),
    "count by importance": ("'importance' is no column", "right.COLUMN"),
    "count where left.cheap": ("'left.cheap' is no condition", "left.price > 10"),
    "sum(left.price) every 1h every 1h": ("'every 1h' is out of place", "once"),
}


@pytest.mark.parametrize("text", WRONG)
def test_texts_that_mean_nothing_say_so(text: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_aggregate(text)
    assert repr(text) in str(caught.value)
    for part in WRONG[text]:
        assert part in str(caught.value)


UNRESOLVED = {
    "sum(left.pric)": (InputError, "no column 'pric'", "Did you mean 'price'?"),
    "sum(right.price)": (InputError, "stream right has no column 'price'", "region"),
    "sum(left.name)": (InputError, "left.name has type string", "count takes any"),
    "avg(left.at)": (InputError, "left.at has type timestamp", "no avg"),
    "count(*) by left.tags": (InputError, "left.tags has type list", "strings, times"),
    "count(*) by left.took": (InputError, "left.took has type duration", "strings, times"),
    "count(*) by left.nam": (InputError, "no column 'nam'", "Did you mean 'name'?"),
    "count(*) every 0": (SpecError, "every 0 must be 1 tick or more", "1 tick"),
    "count every -1h": (SpecError, "every -1h must be 1 tick or more", "1 tick"),
    "count(*) every 10 over 0": (SpecError, "over 0 must be 1 tick or more", "1 tick"),
    "count where left.cheap = 1": (InputError, "has type bool", "1: give true or false"),
    "count where left.price = true": (
        InputError,
        "type double",
        "compare with true: give a number",
    ),
    "count where left.name > 1": (InputError, "has type string", "give a text in single quotes"),
    "count where left.at > 'x'": (InputError, "compare with 'x'", "as in '2024-05-01 09:30'"),
    "count where left.took > 5": (InputError, "duration", "5: give is null or is not null"),
    "count(*) every soon": (SpecError, "every 'soon'", "10min"),
    "count(*) every 10 over 25": (SpecError, "over 25 (25 ticks) is no multiple", "make it one"),
    "count(*) every 1h over 10min": (SpecError, "over 10min (600 ticks)", "every 1h (3600 ticks)"),
    "count(*) every 1ms": (SpecError, "not a whole number of ticks", "round it"),
}


@pytest.mark.parametrize("text", UNRESOLVED)
def test_columns_and_lengths_that_are_none_say_so(text: str) -> None:
    error, *parts = UNRESOLVED[text]
    with pytest.raises(error) as caught:
        resolved(text)
    assert repr(text) in str(caught.value)
    for part in parts:
        assert part in str(caught.value)


def test_durations_need_times() -> None:
    with pytest.raises(SpecError, match="is a duration"):
        resolved("count(*) every 1h", "tick")
    assert resolved("count(*) every 12 over 36", "tick").panes == Panes(12, 36)


@pytest.mark.parametrize("name", ["price", "cheap", "cost", "a name, odd"])
def test_numbers_are_values(name: str) -> None:
    assert resolved(f'sum(left."{name}") every 1min').windows == Panes(60, 60)


@pytest.mark.parametrize("name", ["price", "cheap", "name", "at", "cost", "kind"])
def test_plain_types_are_groups(name: str) -> None:
    assert resolved(f"count(left.tags) by left.{name}").windows == Panes(0, 0)


def test_windows_of_what_is_not_resolved_are_none() -> None:
    with pytest.raises(SpecError, match="not resolved"):
        _ = parse_aggregate("count(*)").windows
