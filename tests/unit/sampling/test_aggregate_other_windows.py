"""What other windows tell of one whose sample says nothing, or little, of what was missed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import t as student

from engine.sampling.aggregates import LaneAggregates, layout, parse_aggregate
from engine.sampling.aggregates.estimate import combine
from engine.sampling.aggregates.intervals import estimates
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


def test_groups_are_told_by_their_own_windows_first() -> None:
    rows = chance(0, 30, 1.0, "a") + chance(2, 30, 80.0, "b") + sure(1, 1.0, "a")
    rows += sure(1, 1.0, "b") + sure(1, 1.0, "c")
    lines = found("sum(left.v) by left.g every 10", rows, last=29)
    reach = {
        row["left.g"]: row["high"] - row["estimate"] for row in lines if row["window_begin"] == 10
    }
    assert reach["b"] == pytest.approx(80 * reach["a"], rel=1e-9)
    assert reach["a"] < reach["c"] < reach["b"]


def test_averages_of_what_is_alike_reach_as_far_as_residuals_elsewhere() -> None:
    rows = chance(0, 9, 1.0) + [(5000 + i, i, 0.5, 4.0, "a") for i in range(9)]
    rows += chance(1, 8, 2.0) + sure(2)
    lines = found("avg(left.v) every 10", rows, last=39)
    assert [row["no_interval"] for row in lines] == [None, None, None, "no value was sampled"]
    residual = 1.5 / 0.5  # weighted, of every cluster of the first window
    v, q = residual**2 * 0.5, 0.5
    t = student.ppf(0.975, 18)
    for row, number in ((lines[1], 8 / 0.5), (lines[2], 2)):
        far = t * t * np.sqrt(v / q) / number
        assert row["high"] - row["estimate"] == pytest.approx(far, rel=1e-9)
        assert row["estimate"] - row["low"] == pytest.approx(far, rel=1e-9)
        assert row["standard_error"] is None


def test_what_never_lost_an_output_is_known() -> None:
    rows = chance(0, 9, 2.0) + sure(2, 5.0)
    for text in ("count(*) every 10", "sum(left.v) every 10"):
        spec = parse_aggregate(text).resolve("tick", *SCHEMAS)
        lost = np.array([[3, 8], [32, 33]])
        lines = combine(spec, [table(text, rows)], span=(0, 39), lost=lost).to_pylist()
        assert [row["low"] == row["high"] for row in lines] == [False, True, True, False]
        assert lines[1]["high"] == lines[1]["estimate"] == 0
        assert lines[2]["standard_error"] == 0


def test_the_tail_of_other_windows_lengthens_an_interval() -> None:
    alike = [(1000 + i, i % 10, 0.1, 1.0, "a") for i in range(12)]
    others = [(100 * w + i, 10 * w + i, 0.1, 40.0 if i == w else 1.0, "a")
              for w in range(1, 9) for i in range(9)]  # fmt: skip
    [alone] = found("sum(left.v)", alike)
    beside = found("sum(left.v) every 10", alike + others, last=99)[0]
    light = [(*row[:3], 1.0, "a") for row in others]
    among = found("sum(left.v) every 10", alike + light, last=99)[0]
    assert beside["estimate"] == alone["estimate"] == among["estimate"]
    assert beside["high"] > alone["high"] > among["high"]
    assert beside["standard_error"] == among["standard_error"]


def test_windows_of_many_alike_clusters_learn_little_from_others() -> None:
    rng = np.random.default_rng(5)
    rows: list[Row] = []
    for window in range(4):
        values = rng.normal(10, 1, 400)
        rows += [(*one[:3], values[i], "a") for i, one in enumerate(chance(window, 400))]
    together = found("sum(left.v) every 10", rows, last=39)
    spec = parse_aggregate("sum(left.v) every 10").resolve("tick", *SCHEMAS)
    for window, row in enumerate(together):
        mine = [one for one in rows if one[1] // 10 == window]
        [alone] = combine(spec, [table(spec.text, mine)]).to_pylist()
        for bound in ("low", "high"):
            assert row[bound] == pytest.approx(alone[bound], rel=0.002)


def test_what_is_not_finite_tells_nothing_and_has_no_interval() -> None:
    rows = chance(0, 30, 2.0) + chance(1, 4, float("nan")) + chance(2, 4, float("inf")) + sure(3)
    lines = found("sum(left.v) every 10", rows, last=39)
    assert [row["low"] is None for row in lines] == [False, True, True, False]
    assert (
        lines[1]["no_interval"] == lines[2]["no_interval"] == "a value or their sum is not finite"
    )
    assert lines[3]["high"] > 2
    sums = np.full((3, len(layout.SUMS)), np.nan)
    assert np.isnan(estimates("sum", sums, 0.95, [np.arange(3)]).low).all()
