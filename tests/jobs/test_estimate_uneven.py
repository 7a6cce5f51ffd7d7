"""Estimates of archives whose time or row groups are uneven: what is to be sampled is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray

import winnow

JOIN: dict[str, Any] = {"on": "k", "time": "t", "window": 40, "aggregates": "count"}
ROWS = 60_000


def archive(path: Path, ts: NDArray[np.int64], keys: int, rows: int, seed: int) -> str:
    key = np.random.default_rng(seed).integers(0, keys, ts.size)
    pq.write_table(pa.table({"t": np.sort(ts), "k": key}), path, row_group_size=rows)
    return str(path)


def times(seed: int, rows: int = ROWS) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, ROWS, rows) + 10**9


@pytest.mark.parametrize("far", [[0], [5 * 10**8, 5 * 10**8 + 1]])
def test_a_tuple_years_before_the_others(tmp_path: Path, far: list[int]) -> None:
    left = times(1)
    left[: len(far)] = far
    paths = [
        archive(tmp_path / "left.parquet", left, 100, 200, 3),
        archive(tmp_path / "right.parquet", times(2), 100, 200, 4),
    ]
    exact = winnow.estimate(*paths, within=1e-6, **JOIN).aggregates["count"]["estimate"][0].as_py()
    found = winnow.estimate(*paths, read="30%", seed=1, **JOIN)
    assert (found.report["how"], found.report["read"]["share"] < 0.31) == ("sample", True)
    [line] = found.aggregates["count"].to_pylist()
    assert line["low"] < exact < line["high"]
    assert line["high"] - line["low"] < 0.25 * exact
    assert found.report["slices"]["ticks"] < 1_000


def test_a_small_stream_is_read_again_for_every_slice(tmp_path: Path) -> None:
    paths = [
        archive(tmp_path / "left.parquet", times(1, 1_000), 100, 100, 3),
        archive(tmp_path / "right.parquet", times(2), 100, 200, 4),
    ]
    found = winnow.estimate(*paths, read="30%", **JOIN)
    assert found.report["slices"]["all"] >= 100  # as long as the left row groups: 10
    [line] = found.aggregates["count"].to_pylist()
    assert line["no_interval"] is None
    assert found.report["read"]["share"] < 0.35


def test_what_an_interval_needs_is_told_with_the_pass_over_the_keys(tmp_path: Path) -> None:
    paths = [
        archive(tmp_path / f"{name}.parquet", times(i), 100, 200, i + 2)
        for i, name in enumerate(("left", "right"))
    ]
    found = winnow.estimate(*paths, read="44%", sizes="keys", **JOIN)
    read, keys = found.report["read"], found.report["pass"]
    assert keys < read["share"]
    assert read["needed"] > max(keys, read["asked"])
    said = " ".join(str(found).split())
    assert f"the pass over the keys took {100 * keys:.2f} % of the 44.00 % of read" in said
    more = f"{np.ceil(100 * read['needed']):.0f}%"
    enough = winnow.estimate(*paths, read=more, sizes="keys", **JOIN)
    assert enough.aggregates["count"]["no_interval"][0].as_py() is None


def test_where_one_stream_is_silent_next_to_nothing_is_read(tmp_path: Path) -> None:
    """There are no outputs, however many tuples the other stream has."""
    rows, places = 60_000, [str(tmp_path / f"{name}.parquet") for name in ("left", "right")]
    for seed, place in enumerate(places):
        rng = np.random.default_rng(seed)
        times = np.sort(rng.integers(0, rows, rows))
        if not seed:
            times = times[(times < 0.3 * rows) | (times > 0.7 * rows)]
        columns = {"t": times, "k": rng.integers(0, 50, times.size)}
        pq.write_table(pa.table(columns), place, row_group_size=150)
    given: dict[str, Any] = {"on": "k", "time": "t", "window": 50, "aggregates": "count"}
    exact = (
        winnow.estimate(*places, **given, within=1e-9).aggregates["count"]["estimate"][0].as_py()
    )
    apart = []
    for seed in range(10):
        found = winnow.estimate(*places, **given, read="20%", seed=seed)
        [line] = found.aggregates["count"].to_pylist()
        assert line["no_interval"] is None
        apart.append(line["estimate"] / exact - 1)
    assert np.sqrt(np.square(apart).mean()) < 0.03


def test_averages_of_values_on_both_sides_of_0_go_with_their_levels(tmp_path: Path) -> None:
    rows, places = 40_000, [str(tmp_path / f"{name}.parquet") for name in ("left", "right")]
    for seed, place in enumerate(places):
        times = np.arange(rows)
        columns = {"t": times, "k": np.random.default_rng(seed).integers(0, 4, rows)}
        columns["v"] = 10.0 * times / rows - 4  # whose magnitudes first fall and then rise
        pq.write_table(pa.table(columns), place, row_group_size=20)
    held = 0
    for seed in range(10):
        found = winnow.estimate(
            *places, on="k", time="t", window=10, read="20%", aggregates="avg(left.v)", seed=seed
        )
        [line] = found.aggregates["avg(left.v)"].to_pylist()
        held += line["low"] < 1 < line["high"]
        assert line["high"] - line["low"] < 0.2
    assert held >= 8


def test_the_share_that_an_interval_needs_is_more_than_was_read(tmp_path: Path) -> None:
    given: dict[str, Any] = {"on": "k", "time": "t", "window": 100, "aggregates": "count"}
    for seed, side in enumerate(("left", "right")):
        rng, times = np.random.default_rng(seed), np.arange(400_000)
        hot = (times >= 380_000) & (rng.random(times.size) < 0.2)  # these stretches are certain
        columns = {"t": times, "k": np.where(hot, 17, rng.integers(0, 5000, times.size))}
        given[side] = str(tmp_path / f"{side}.parquet")
        pq.write_table(pa.table(columns), given[side], row_group_size=500)
    few = 0
    for share in range(57, 62):
        found = winnow.estimate(**given, sizes="keys", read=f"{share}%")
        needed = found.report["read"]["needed"]
        if needed is not None:
            few += 1
            assert needed > share / 100
            again = winnow.estimate(**given, sizes="keys", read=f"{math.ceil(100 * needed)}%")
            assert not again.report["aggregates"][0]["without_interval"]
    assert few
