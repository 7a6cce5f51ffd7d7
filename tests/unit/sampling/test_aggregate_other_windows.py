"""What other windows tell of one whose sample says nothing, or little, of what was missed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy.stats import t as student

from engine.sampling.aggregates import LaneAggregates, layout, parse_aggregate
from engine.sampling.aggregates.estimate import combine
from engine.sampling.aggregates.intervals import estimates, others_of
from engine.sampling.layout import SampledOutputs

SCHEMAS = pa.schema([("v", pa.float64()), ("g", pa.string())]), pa.schema([])
Row = tuple[int, int, float, float, str]
"""Stored tuple, ts, inclusion probability, value and group of an output."""


def table(text: str, rows: list[Row]) -> pa.Table:
    """Return the sums of some outputs."""
    spec = parse_aggregate(text).resolve("tick", *SCHEMAS)
    lane = LaneAggregates((spec,), SCHEMAS, independent=False)
    rows = sorted(rows, key=lambda row: row[1])
    cluster, ts = (np.array([row[i] for row in rows]) for i in (0, 1))
    none = np.zeros(cluster.size, np.int64)
    out = SampledOutputs(
        cluster, none, cluster, none, ts, np.ones(cluster.size),
        1 / np.array([row[2] for row in rows]), none.astype(np.int8),
    )  # fmt: skip
    payload = pa.table({"v": [row[3] for row in rows], "g": [row[4] for row in rows]})
    lane.add(out, payload, pa.table({}))
    return lane.close()[0]


def found(text: str, rows: list[Row], last: int = 9) -> list[dict[str, Any]]:
    """Return the estimates of a sample of outputs from 0 to `last`."""
    spec = parse_aggregate(text).resolve("tick", *SCHEMAS)
    lines: list[dict[str, Any]] = combine(spec, [table(text, rows)], span=(0, last)).to_pylist()
    return lines


def chance(window: int, n: int, value: float = 1.0, group: str = "a", p: float = 0.5) -> list[Row]:
    """Return outputs of n tuples that were retained by chance."""
    return [(1000 * window + i, 10 * window + i % 10, p, value, group) for i in range(n)]


def sure(window: int, value: float = 1.0, group: str = "a") -> list[Row]:
    """Return two outputs that were certain to be sampled."""
    return [(10**6 + 2 * window + i, 10 * window + i, 1.0, value, group) for i in range(2)]


@pytest.mark.parametrize(
    ("text", "estimate", "beside"),
    [("count(*) every 10", 2.0, sure(1)), ("sum(left.v) every 10", 0.0, []),
     ("sum(left.v) every 10", 0.0, chance(1, 9, 0.0)), ("sum(left.v) every 10", 6.0, sure(1, 3.0))],
)  # fmt: skip
def test_what_says_nothing_reaches_as_far_as_no_clusters_may(
    text: str, estimate: float, beside: list[Row]
) -> None:
    clusters, p, value = 40, 0.25, 5.0
    rows = found(text, chance(0, clusters, value, p=p) + beside, last=19)
    weighted = (1.0 if "count" in text else value) / p
    t = student.ppf(0.975, 2 * clusters)
    assert rows[1]["estimate"] == rows[1]["low"] == estimate
    # a typical cluster's own part in the variance, (1 - p) of its weighted value
    assert rows[1]["high"] == pytest.approx(estimate + t * t * weighted * (1 - p), rel=1e-12)
    assert rows[1]["standard_error"] is None
    assert rows[0]["standard_error"] > 0


def test_both_signs_may_be_missing_either_way() -> None:
    rows = chance(0, 20, 3.0) + chance(1, 20, -3.0)
    for beside in ([], sure(2, 7.0), chance(2, 5, 0.0)):
        row = found("sum(left.v) every 10", rows + beside, last=29)[2]
        down, up = row["estimate"] - row["low"], row["high"] - row["estimate"]
        assert down == pytest.approx(up, rel=1e-9)
        assert up > 0
    below = found("sum(left.v) every 10", chance(0, 20, -3.0), last=19)[1]
    assert below["low"] < below["high"] == 0


def test_few_small_clusters_do_not_promise_that_no_large_one_was_missed() -> None:
    rows = chance(0, 40, 100.0) + chance(1, 3, 0.01, p=0.99)
    spec = parse_aggregate("sum(left.v) every 10").resolve("tick", *SCHEMAS)
    alone = combine(spec, [table(spec.text, chance(1, 3, 0.01, p=0.99))]).to_pylist()[0]
    row = found(spec.text, rows, last=19)[1]
    assert row["low"] == pytest.approx(alone["low"], rel=1e-12)
    t = student.ppf(0.975, 80)
    assert row["high"] == pytest.approx(row["estimate"] + t * t * 100 / (1 + 3), rel=1e-9)


def test_windows_of_many_clusters_are_as_they_were_alone() -> None:
    rng = np.random.default_rng(5)
    rows: list[Row] = []
    for window in range(4):
        values = rng.exponential(1, 60)
        rows += [(*chance(window, 60)[i][:3], values[i], "a") for i in range(60)]
    for text in ("count(*) every 10", "sum(left.v) every 10", "avg(left.v) every 10"):
        together = found(text, rows, last=39)
        spec = parse_aggregate(text).resolve("tick", *SCHEMAS)
        for window, row in enumerate(together):
            mine = [one for one in rows if one[1] // 10 == window]
            [alone] = combine(spec, [table(text, mine)]).to_pylist()
            assert row.keys() == alone.keys()
            for name, value in row.items():
                assert value == pytest.approx(alone[name], rel=1e-9)


def test_without_others_there_is_no_interval() -> None:
    single = chance(0, 9, 0.0)
    for rows in (single, single + sure(0, 2.0)):
        row = found("sum(left.v)", rows)[0]
        assert (row["low"], row["high"], row["standard_error"]) == (None, None, None)


def test_windows_that_overlap_do_not_tell_the_same_clusters_twice() -> None:
    clusters, p = 10, 0.5
    lines = found("count(*) every 10 over 30", chance(0, clusters, p=p) + sure(1), last=19)
    [row] = [row for row in lines if row["window_begin"] == 10]
    t = student.ppf(0.975, 2 * clusters)
    assert row["high"] == pytest.approx(2 + t * t * (1 - p) / p, rel=1e-9)


def test_averages_have_none_where_all_is_alike() -> None:
    rows = chance(0, 9, 1.0) + chance(0, 5, 4.0, p=0.4) + chance(1, 9, 2.0) + sure(2)
    lines = found("avg(left.v) every 10", rows, last=39)
    assert [row["low"] is None for row in lines] == [False, True, True, True]
    assert [row["estimate"] for row in lines[1:]] == [2.0, 1.0, None]


def test_certain_runs_have_no_width() -> None:
    for row in found("count(*) every 10", sure(0) + sure(2), last=29):
        if row["rows"]:
            assert row["low"] == row["estimate"] == row["high"] == 2
            assert row["standard_error"] == 0
        else:
            assert row["low"] is None


def test_groups_are_told_by_their_own_windows_first() -> None:
    rows = chance(0, 30, 1.0, "a") + chance(2, 30, 80.0, "b") + sure(1, 1.0, "a")
    rows += sure(1, 1.0, "b") + sure(1, 1.0, "c")
    lines = found("sum(left.v) by left.g every 10", rows, last=29)
    reach = {
        row["left.g"]: row["high"] - row["estimate"] for row in lines if row["window_begin"] == 10
    }
    assert reach["b"] == pytest.approx(80 * reach["a"], rel=1e-9)
    assert reach["a"] < reach["c"] < reach["b"]


def naive_others(
    sums: NDArray[np.float64], pools: list[NDArray[np.int64]], row: int
) -> tuple[float, float, float]:
    """Return what the rest of the first pool that knows something says, by loops."""
    for pool in pools:
        rest = [i for i in range(len(sums)) if pool[i] == pool[row] and i != row]
        total = {
            name: sum(sums[i, layout.SUMS.index(name)] for i in rest)
            for name in ("v_yy", "yy_yy", "random_v", "random_size", "random_y")
        }
        if total["v_yy"] > 0:
            return (
                total["v_yy"] ** 2 / total["yy_yy"],
                total["random_v"] / total["random_size"],
                total["random_y"] / total["random_size"],
            )
    return 0.0, 0.0, 0.0


@pytest.mark.parametrize("seed", range(20))
def test_the_rest_is_all_but_oneself(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    sums = rng.exponential(1, (n, len(layout.SUMS))) * 10.0 ** rng.integers(-3, 4, (n, 1))
    sums[rng.random(n) < 0.4] = 0
    pools = [rng.integers(0, 4, n), rng.integers(0, 2, n)]
    told = others_of(sums, pools)
    for row in range(n):
        clusters, value, sign = naive_others(sums, pools, row)
        assert told.clusters[row] == pytest.approx(clusters, rel=1e-4)
        assert told.value[row] == pytest.approx(value, rel=1e-4)
        assert told.sign[row] == pytest.approx(min(sign, 1.0), rel=1e-4)


def test_what_is_not_finite_tells_nothing_and_has_no_interval() -> None:
    rows = chance(0, 30, 2.0) + chance(1, 4, float("nan")) + chance(2, 4, float("inf")) + sure(3)
    lines = found("sum(left.v) every 10", rows, last=39)
    assert [row["low"] is None for row in lines] == [False, True, True, False]
    assert lines[3]["high"] > 2
    sums = np.full((3, len(layout.SUMS)), np.nan)
    assert np.isnan(estimates("sum", sums, 0.95, others_of(sums, [np.arange(3)])).low).all()
