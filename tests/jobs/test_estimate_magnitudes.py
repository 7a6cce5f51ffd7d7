"""Estimates of values so large or small that float64 does not hold their squares."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from estimate_cases import JOIN, large, written

import winnow
from engine.sampling.stretches.density import by_values

SHOWN = ("estimate", "low", "high", "standard_error")


def times(folder: Path, unit: float) -> dict[str, Any]:
    """Return two archives whose values are so many times those of others, alike in all else."""
    folder.mkdir()
    tables = [pq.read_table(path) for path in large(folder).values()]
    scaled = [
        own.set_column(2, "v", pa.array((own.column("v").to_numpy() - 10) * unit)) for own in tables
    ]
    return {**written(folder, scaled, 150), **JOIN}


@pytest.mark.parametrize("power", [600, -600])
def test_intervals_scale_with_values_of_any_size(tmp_path: Path, power: int) -> None:
    texts = ["sum(left.v)", "avg(right.v)", "sum(left.v) by left.g", "avg(left.v) every 10000"]
    unit = 2.0**power
    found = []
    for name, own in (("ordinary", 1.0), ("scaled", unit)):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            one = winnow.estimate(**times(tmp_path / name, own), aggregates=texts, read="30%")
        assert one.report["how"] == "sample"
        found.append(one)
    plain, scaled = found
    for text in texts:
        both = (own.aggregates[text].to_pylist() for own in (plain, scaled))
        for line, other in zip(*both, strict=True):
            assert line["low"] < line["estimate"] < line["high"], text
            for name in SHOWN:
                assert other[name] / unit == pytest.approx(line[name]), text


def test_what_of_a_group_is_large_leaves_others_their_intervals(tmp_path: Path) -> None:
    tables = [pq.read_table(path) for path in large(tmp_path).values()]
    v, g = (tables[0].column(name).to_numpy() for name in ("v", "g"))
    tables[0] = tables[0].set_column(2, "v", pa.array(np.where(g == 1, v * 1e200, v)))
    given = {**written(tmp_path, tables, 150), **JOIN}
    found = winnow.estimate(**given, aggregates="avg(left.v) by left.g", read="30%")
    lines = found.aggregates["avg(left.v) by left.g"].to_pylist()
    for line, unit in zip(lines, (1.0, 1e200, 1.0), strict=True):
        assert 9.5 < line["low"] / unit < line["estimate"] / unit < line["high"] / unit < 10.5


def test_exact_sums_keep_what_is_small_beside_others(tmp_path: Path) -> None:
    streams = pa.table({"t": [1, 2, 100, 101], "k": [1, 1, 1, 1], "v": [1e300, 0.0, 1e-300, 1e-20]})
    given = {**written(tmp_path, [streams, streams], 2), **JOIN}
    text = "sum(left.v) where left.v < 1 every 50"
    found = winnow.estimate(**given, aggregates=[text, "sum(left.v) every 50"])
    assert found.report["how"] == "exact join"
    small, every = (own.column("estimate").to_pylist() for own in found.aggregates.values())
    assert small[-1] == every[-1] == pytest.approx(2e-20, rel=1e-15, abs=0)
    assert every[0] == 2e300


def test_importance_recall_does_not_depend_on_units_of_importance(tmp_path: Path) -> None:
    recalls = []
    for unit in (1.0, 2.0**300, 2.0**-600):
        tables = [pq.read_table(path) for path in large(tmp_path).values()]
        weighted = [
            own.append_column("w", pa.array(np.abs(own.column("v").to_numpy()) * unit))
            for own in tables
        ]
        given = {**written(tmp_path, weighted, 150), **JOIN, "importance": "w"}
        found = winnow.estimate(**given, memory="10%", policy="prob", read="40%")
        assert found.report["how"] == "sample"
        [line] = found.aggregates["importance_recall"].to_pylist()
        assert 0 < line["low"] < line["estimate"] < line["high"] < 1
        recalls.append([line[name] for name in SHOWN])
    assert recalls[1] == pytest.approx(recalls[0])
    assert recalls[2] == pytest.approx(recalls[0])


def test_the_largest_values_weigh_row_groups() -> None:
    rows, largest = np.array([10, 10, 20]), np.array([4e307, 1.6e308, np.nan])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = by_values(rows, largest)
    assert found is not None
    assert found == pytest.approx([0.4, 1.6, 1.0])


@pytest.mark.parametrize("memory", [None, "50%"])
def test_a_window_may_be_as_long_as_windows_are(memory: str | None) -> None:
    archive = pa.table({"t": range(30), "k": [at % 3 for at in range(30)]})
    budget = {} if memory is None else {"memory": memory, "policy": "prob"}
    found = [
        winnow.estimate(archive, archive, on="k", time="t", window=window, **budget)
        for window in (30, 2**62 - 1)
    ]
    assert found[0].outputs.equals(found[1].outputs)
    if memory is None:
        assert found[1].outputs["estimate"].to_pylist() == [300]
