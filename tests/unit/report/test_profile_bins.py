"""Plots of profiles whose times advance in steps of many ticks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import winnow
from engine.report.charts import Lines
from engine.report.profile_bins import ages_of, lags_of, rates_of
from engine.report.profile_charts import figure_of, profile_shown

SECOND = 1_000_000


def streams(seconds: int = 600, unit: int = SECOND) -> list[pa.Table]:
    """Return two streams with a tuple every second, in ticks of which a second has `unit`."""
    kind = pa.timestamp("us") if unit > 1 else pa.int64()
    at = pa.array(7 * unit + unit * np.arange(seconds)).cast(kind)
    return [pa.table({"t": at, "k": np.zeros(seconds, np.int64)})] * 2


@pytest.mark.parametrize("window", [59, 61, 150, 2])
def test_no_bin_is_finer_than_the_steps_of_the_times(window: int) -> None:
    found = winnow.profile(*streams(), on="k", time="t", window=f"{window}s").profile
    assert found.step == SECOND
    edges, matches = lags_of(found)
    assert np.diff(edges).min() >= SECOND
    assert matches.sum() == found.exact["outputs"]
    density = matches / np.diff(edges)
    assert density.max() < 1.5 * density.min()  # lags of all lengths are about as frequent
    for side in (0, 1):
        bins = ages_of(found, side)
        heights = np.array(bins.heights(found.streams[side].age.buckets))
        assert heights.max() < 1.5 * heights.min()
        assert np.diff(bins.edges).min() >= SECOND
        assert rates_of(found, side) == pytest.approx([1 / SECOND] * 50, abs=0)


def test_the_plots_of_seconds_in_microseconds_are_those_of_seconds() -> None:
    fine = winnow.profile(*streams(), on="k", time="t", window="60s").profile
    coarse = winnow.profile(*streams(unit=1), on="k", time="t", window=60, time_unit="s").profile
    assert coarse.step == 1
    pairs = zip(profile_shown(fine).drawn(), profile_shown(coarse).drawn(), strict=True)
    for one, other in pairs:
        assert isinstance(one, Lines)
        assert isinstance(other, Lines)
        if one.title == "Matches by lag":
            assert one.series[0].values == pytest.approx(other.series[0].values)
            assert list(one.xs) == pytest.approx(list(other.xs))
    assert figure_of(fine, "correlation").axes


def test_the_matches_of_one_tick_do_not_hide_the_others() -> None:
    rng = np.random.default_rng(0)
    at = [np.sort(rng.integers(0, 600 * SECOND, 600)) for _ in range(2)]
    at[0][:300] = at[1][:300]
    tables = [pa.table({"t": pa.array(own, pa.timestamp("us")), "k": [1] * 600}) for own in at]
    found = winnow.profile(*tables, on="k", time="t", window="60s").profile
    assert found.step == 1
    [lags] = [one for one in profile_shown(found).drawn() if one.title.startswith("Matches by lag")]
    assert isinstance(lags, Lines)
    simultaneous = found.exact["simultaneous"]
    assert lags.title == f"Matches by lag, without {simultaneous} simultaneous ones"
    assert max(own for own in lags.series[0].values if own is not None) < 10 * 600


def test_no_line_goes_through_time_without_matches() -> None:
    at = np.concatenate([np.arange(100), np.arange(900, 1000)])
    table = pa.table({"t": at, "k": np.zeros(200, np.int64)})
    found = winnow.profile(table, table, on="k", time="t", window=10).profile
    [ages] = [one for one in profile_shown(found).drawn() if one.title.startswith("Age of the")]
    assert isinstance(ages, Lines)
    assert ages.steps
    assert (ages.xs[0], ages.xs[-1]) == (0, 1000)
    assert np.isnan(np.array(ages.series[0].values, float)).sum() == 40


def test_recall_is_drawn_where_replays_confirm_it_as_it_is_printed() -> None:
    found = winnow.profile(*streams(), on="k", time="t", window="60s", memory="5%,50%").profile
    points = found.advice["memory"]
    for one in points:
        for model in ("age", "frequency"):
            one[model] |= {"even": 0.5, "best": 0.75, "even_interval": None, "best_interval": None}
    assert not any("recall" in own.title for own in profile_shown(found).drawn())
    points[0]["age"]["even_interval"] = [0.4, 0.6]
    points[1]["age"]["best_interval"] = [0.7, 0.8]
    (drawn,) = [own for own in profile_shown(found).drawn() if "recall" in own.title]
    assert isinstance(drawn, Lines)
    assert [(own.name, own.values) for own in drawn.series] == [
        ("age model, best split", [None, 75.0, 100.0]),
        ("age model, even split", [50.0, None, None]),  # no line over what was left out
    ]


def test_a_window_of_no_length_has_no_age_curve() -> None:
    join = {"on": "k", "time": "t", "window_left": "60s", "window_right": 0}
    shown = profile_shown(winnow.profile(*streams(), **join).profile).drawn()
    titles = [own.title for own in shown if own.title.startswith("Age curve")]
    assert [own.split(":")[0] for own in titles] == ["Age curve of left"]
