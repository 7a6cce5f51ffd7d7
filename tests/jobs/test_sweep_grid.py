"""What a sweep is told: lists, ranges, targets and parameters, and what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from engine.options.budget import SPLITS, parse_amounts
from engine.options.cells import points_of
from engine.options.grid import (
    Target,
    parse_estimators,
    parse_lanes,
    parse_memory,
    parse_policies,
    parse_seeds,
    parse_splits,
    parse_targets,
    parse_windows,
    split_parameters,
)
from engine.policies import POLICIES
from engine.runtime.errors import SpecError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("200,400,10%", ["200", "400", "10%"]),
        ("100:500:100", ["100", "200", "300", "400", "500"]),
        ("100:450:100", ["100", "200", "300", "400"]),
        ("5%:100%:47.5%", ["5%", "52.5%", "100%"]),
        ("1%:100%:x4", ["1%", "4%", "16%", "64%", "100%"]),
        (" 10 : 40 : X2 , 7 ", ["10", "20", "40", "7"]),
        ("9:31:*1.5", ["9", "13", "20", "30", "31"]),
        ("0,0,5%,5%", ["0", "5%"]),
        ("7:7:1", ["7"]),
        ("150%", ["150%"]),
    ],
)
def test_memory(text: str, expected: list[str]) -> None:
    assert [str(amount) for amount in parse_memory(text)] == expected


def test_a_percentage_in_a_range_is_exactly_that_percentage() -> None:
    shares = parse_memory("0.1%:100%:0.1%")
    assert len(shares) == 1000
    assert shares[699] == parse_memory("70%")[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "none empty"),
        ("1,,2", "none empty"),
        ("-5", "whole number of tuples"),
        ("ten", "'ten'; give a whole number"),
        ("1.5", "whole number of tuples"),
        ("10:20", "without a step; write it as a third part, such as 10:20:10"),
        ("10:20:5:1", "first:last:step"),
        ("10::5", "first:last:step"),
        ("20:10:5", "goes down: swap its ends"),
        ("20%:10%", "goes down: swap its ends"),
        ("0:20", "such as 0:20:20"),
        ("10:20:0", "step of 0"),
        ("0:20:x2", "0 stays 0 by any factor"),
        ("1:20:x1", "factor '1'; give a number of 1.001 or more"),
        ("1:20:x-2", "factor '-2'"),
        ("1:20:xtwo", "factor 'two'"),
        ("1%:20:1", "of tuples and percentages: give one of them"),
        ("0:1000000000000:1", "1,000,000,000,001 values; give a greater step"),
    ],
)
def test_memory_that_means_nothing(text: str, message: str) -> None:
    with pytest.raises(SpecError) as raised:
        parse_memory(text)
    assert message in str(raised.value)
    assert "--memory" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "unit", "expected"),
    [
        ("400", "tick", (400,)),
        ("400,100,400", "tick", (400, 100)),
        ("0:10:5", "tick", (0, 5, 10)),
        ("1min,1h", "s", (60, 3600)),
        ("1min:3min:1min", "ms", (60_000, 120_000, 180_000)),
        ("10min:1h:x2", "s", (600, 1200, 2400, 3600)),
    ],
)
def test_windows(text: str, unit: str, expected: tuple[int, ...]) -> None:
    assert parse_windows(text, unit) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10min", "is a duration, but its time column holds plain"),
        ("-5", "must be 0 ticks or more"),
        ("5,", "none empty"),
        ("5:9", "--windows has the range '5:9' without a step"),
    ],
)
def test_windows_that_mean_nothing(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        parse_windows(text, "tick")


def test_seeds() -> None:
    assert parse_seeds("0,1,2") == (0, 1, 2)
    assert parse_seeds("0:9") == tuple(range(10))
    assert parse_seeds("-3:9:4,0") == (-3, 1, 5, 9, 0)
    assert parse_seeds(f"{2**64 - 1}") == (-1,)  # which draws the same
    for text, message in (
        ("a", "give whole numbers"), ("1.5", "give whole numbers"), ("9:0", "goes down"),
        (str(2**64), "must fit 64 bits"), ("", "none empty"), ("1:10:x1.5", "leaves whole"),
    ):  # fmt: skip
        with pytest.raises(SpecError, match=message):
            parse_seeds(text)


def test_policies() -> None:
    assert parse_policies("DGL,until-expiry,dgl") == ("dgl", "until_expiry")
    assert set(parse_policies("all")) == set(POLICIES) - {"custom"}
    assert parse_policies("custom,ALL")[0] == "custom"
    with pytest.raises(SpecError, match="Did you mean 'simpprob'"):
        parse_policies("dgl,simprob")


def test_targets() -> None:
    assert parse_targets([]) == ()
    assert parse_targets(["recall=1", "Importance-Recall = 99.5 %,recall=1"]) == (
        Target("recall", 1.0),
        Target("importance_recall", 0.995),
    )
    for text, message in (
        ("recal=0.9", "Did you mean 'recall'"), ("recall", "write measure=value"),
        ("recall=", "give a share"), ("recall=95", "at most 1"), ("recall=0", "more than 0"),
        ("recall=-1", "give a share"), ("recall=101%", "at most 1"), ("recall=nan", "give a share"),
    ):  # fmt: skip
        with pytest.raises(SpecError, match=message):
            parse_targets([text])


def test_parameters_go_to_those_that_have_them() -> None:
    given: dict[str, Any] = {"prob.ties": "ts", "ties": "importance", "age_curve": "1,2"}
    assert split_parameters(given, ("prob", "additive", "age", "rand")) == {
        "prob": {"ties": "ts"},
        "additive": {"ties": "importance"},
        "age": {"curve": "1,2"},
        "rand": {},
    }
    assert split_parameters({"alpha": 2.0}, ("additive",)) == {"additive": {"A": 2.0}}
    both = split_parameters({"alpha": 2.0, "A": 3.0}, ("additive", "dgl"))
    assert both == {"additive": {"A": 3.0}, "dgl": {"alpha": 2.0}}
    for name, message in (
        ("gamma", "none of the policies has a parameter 'gamma'"),
        ("dgl.alpha", "dgl, which is not in --policies: add it"),
        (
            "prob.tie",
            r"policy prob has no parameter 'tie' \(there are: ties\). Did you mean 'ties'",
        ),
        ("nil.tie", "there is no policy 'nil'"),
    ):
        with pytest.raises(SpecError, match=message):
            split_parameters({name: 1.0}, ("prob", "additive"))


def test_points_have_seeds_where_the_policy_draws() -> None:
    points = list(points_of(("rand", "dgl"), parse_memory("4,50%"), (9, 5), (0, 1)))
    assert [point.number for point in points] == list(range(12))
    assert [point.seed for point in points[:6]] == [0, 1, 0, 1, None, None]
    assert {point.window for point in points[:6]} == {9}
    assert points[0].amounts == parse_amounts("4", None, None)
    assert points[2].amounts == parse_amounts("50%", None, None)


def test_points_have_estimators_where_the_policy_counts_matches() -> None:
    splits = parse_splits("even,0.8")
    points = list(
        points_of(
            ("yield", "dgl"), parse_memory("5"), (9,), (0,), splits, ("memory", "history"), (1, 3),
            {("dgl", splits[0])},
        )
    )  # fmt: skip
    assert [point.number for point in points] == list(range(8))
    found = [(one.policy, one.lanes, str(one.split), one.estimator) for one in points]
    assert found == [
        ("yield", 1, "even", None), ("yield", 1, "0.8", None),
        ("yield", 3, "even", None), ("yield", 3, "0.8", None),
        ("dgl", 1, "0.8", "memory"), ("dgl", 1, "0.8", "history"),
        ("dgl", 3, "0.8", "memory"), ("dgl", 3, "0.8", "history"),
    ]  # fmt: skip
    assert points[1].amounts == parse_amounts("5", None, None, splits[1])


def test_splits_estimators_and_lanes() -> None:
    assert [str(one) for one in parse_splits("0.80,even,expected,0.8")] == [
        "0.8",
        "even",
        "expected",
    ]
    assert [str(one) for one in parse_splits("ALL,0.5")] == [*SPLITS, "0.5"]
    assert parse_estimators("history,all") == ("history", "memory", "window")
    assert parse_lanes("1:16:x4,3,1") == (1, 4, 16, 3)
    for parse, text, message in (
        (parse_splits, "even,,1", "none empty"), (parse_splits, "0.5,2", "--splits is '2'"),
        (parse_estimators, "windw", "Did you mean 'window'"), (parse_lanes, "0", "--lanes is 0"),
        (parse_lanes, "1:4", "without a step"), (parse_lanes, "x", "--lanes is 'x'"),
    ):  # fmt: skip
        with pytest.raises(SpecError, match=message):
            parse(text)
