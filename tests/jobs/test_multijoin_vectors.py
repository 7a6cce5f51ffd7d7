"""Joins of dense vectors from archives and frames: the best matches, their scores, every frame."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import multijoin_cases as cases
import naive_vectors as oracle
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from multijoin_cases import joined

import winnow
from engine.runtime.jit import Floats

BOUNDS = {"cosine": 0.2, "inner": 0.5, "distance": 2.0}
TWO = ("a", "b")


def tuples(tables: dict[str, pa.Table], kind: str) -> list[list[Any]]:
    case = cases.Case("", cases.dense(kind), oracle.meets(kind, BOUNDS[kind]))
    return cases.tuples(tables, case)


@pytest.mark.parametrize("kind", BOUNDS)
def test_the_best_matches_and_their_scores(tmp_path: Path, kind: str) -> None:
    tables = {name: cases.drawn(at, 40) for at, name in enumerate(TWO)}
    cases.write(tmp_path, tables, row_group_size=7)
    given, of_pair = tuples(tables, kind), oracle.SCORES[kind]
    values = [{own.row: own.value for own in stream} for stream in given]
    sign = -1 if kind == "distance" else 1
    some = 0
    for k in (1, 3):
        wanted = oracle.top(
            given, [("ticks", 9), ("ticks", 6)], oracle.meets(kind, BOUNDS[kind]),
            lambda a, b: sign * of_pair(a, b), k,
        )  # fmt: skip
        some += len(wanted)
        for slices in (1, 3):
            done = joined(
                tmp_path, predicate=f"{kind}:f32:{BOUNDS[kind]}", top=k, slices=slices, column=[],
                stream=[f"{name}={tmp_path}/{name}.parquet" for name in TWO], window="a=9,b=6",
            )  # fmt: skip
            assert done.report["top"] == k
            assert cases.found(done.outputs, TWO) == wanted
            for out in done.outputs.to_pylist():
                score = of_pair(values[0][out["a_row"]], values[1][out["b_row"]])
                assert out["score"] == (math.sqrt(score) if kind == "distance" else score)
    assert some > 30


def frames(values: Floats) -> dict[str, Any]:
    """Return a stream as frames of all kinds, a row of the values each."""
    ts, width = np.arange(len(values)), values.shape[1]
    flat = pa.array(np.ascontiguousarray(values, np.float32).ravel())
    table = pa.table({"t": ts, "v": pa.FixedSizeListArray.from_arrays(flat, width)})
    return {
        "pyarrow": table,
        "lists": table.set_column(1, "v", table.column("v").cast(pa.list_(pa.float32()))),
        "pandas": pd.DataFrame({"t": ts, "v": list(values)}),
        "polars": pl.DataFrame(
            {"t": ts, "v": values}, schema={"t": pl.Int64, "v": pl.Array(pl.Float64, width)}
        ),
        "pyarrow of pandas": table.to_pandas(),
    }


def test_every_frame_gives_the_same_rows() -> None:
    rng = np.random.default_rng(1)
    one, two = (frames(rng.integers(-2, 3, (40, 8)) + 0.25) for _ in range(2))
    found = {}
    for kind in one:
        result = winnow.multijoin(
            {"one": one[kind], "two": two[kind]}, predicate="cosine:v:0.3", time="t", window=10,
            columns="ids",
        )  # fmt: skip
        found[kind] = pa.table(result.outputs)
    assert found["pyarrow"].num_rows > 20
    assert all(own.equals(found["pyarrow"]) for own in found.values())


def test_harvested_and_by_loops(tmp_path: Path) -> None:
    """With nothing shed, a harvested join gives the exact rows and scores; loops always do."""
    tables = {name: cases.drawn(at, 40) for at, name in enumerate(TWO)}
    cases.write(tmp_path, tables)
    given: dict[str, Any] = {
        "stream": [f"{name}={tmp_path}/{name}.parquet" for name in TWO], "window": "a=9,b=6",
        "predicate": "equi:k,cosine:f32:-0.5", "column": [],
    }  # fmt: skip
    order = [("ts", "ascending"), ("a_row", "ascending"), ("b_row", "ascending")]
    exact, shed, loops = (
        joined(tmp_path, **given, **more).outputs.sort_by(order)
        for more in (
            {},
            {"throttle": 1, "basic_window": 3, "adapt_every": 9},
            {"method": "eager-nlj"},
        )
    )
    assert exact.num_rows > 10
    assert str(shed.to_pylist()) == str(exact.to_pylist()) == str(loops.to_pylist())  # with NaN


@pytest.mark.parametrize("kind", BOUNDS)
def test_no_vectors_at_all(kind: str) -> None:
    lists, fixed = pa.list_(pa.float32()), pa.list_(pa.float32(), 3)
    for types in ((lists, lists), (fixed, fixed), (fixed, pa.null())):
        tables = {
            name: pa.table({"t": range(4), "v": pa.nulls(4, own)})
            for name, own in zip(TWO, types, strict=True)
        }
        for more in ({}, {"throttle": 0.5, "basic_window": 2, "adapt_every": 2}, {"top": 1}):
            done = winnow.multijoin(
                tables, predicate=f"{kind}:v:0.5", time="t", window=5, **more
            )  # fmt: skip
            assert done.report["result"]["outputs"] == 0
            assert done.report["null_keys"] == dict.fromkeys(TWO, 4)


@pytest.mark.parametrize("predicate", ["equi:k,cosine:f32:-0.5", "inner:f32:0.5", "distance:f32:2"])
def test_indexes_give_the_rows_of_scans(tmp_path: Path, predicate: str) -> None:
    cases.write(tmp_path, cases.streams(2, 40))
    given: dict[str, Any] = {"predicate": predicate, "column": []}
    shed = {"throttle": 1, "basic_window": 3, "adapt_every": 9}
    exact = joined(tmp_path, **given).rows
    assert exact
    for probe in ("scan", "index"):
        assert joined(tmp_path, **given, **shed, probe=probe).rows == exact


def test_under_a_clock_late_times_make_no_difference() -> None:
    """As of times in nanoseconds, which float64 rounds to 256: a join that rounds never ends."""
    rng = np.random.default_rng(0)
    values = [rng.integers(-1, 2, 40).astype(float) for _ in TWO]
    ticks = [np.sort(rng.integers(0, 30, 20)) for _ in TWO]
    found = []
    for first in (0, 1_700_000_000_000_000_001):
        streams = {}
        for name, ts, own in zip(TWO, ticks, values, strict=True):
            vectors = pa.FixedSizeListArray.from_arrays(pa.array(own), 2)
            streams[name] = pa.table({"ts": ts + first, "v": vectors})
        done = winnow.multijoin(
            streams, predicate="inner:v:1", time="ts", window=20, basic_window=5, adapt_every=1,
            throttle=0.5, capacity=50, per_second=1,
        )  # fmt: skip
        found.append(done.outputs.select(["a_row", "b_row", "score"]).to_pylist())
    assert found[0] == found[1]
    assert found[0]
