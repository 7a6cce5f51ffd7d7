"""One way to run `winnow sample`, and what the oracle says of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import naive_sampling
import pyarrow as pa
import pyarrow.parquet as pq
from job_cases import MEMORY, WINDOW, Rows, options_in
from naive_sampling import Sample
from options_given import line_of

from engine.commands import main

METHODS = naive_sampling.METHODS
Row = tuple[int, int, int, float, float]


def arguments(folder: Path, **options: Any) -> list[str]:
    """Return the command line of a sample in `folder`; None leaves an option out."""
    return line_of("sample", options_in(folder) | options)


class Result(NamedTuple):
    """What a sample wrote: rows by (ts, left row, right row)."""

    rows: list[Row]
    table: pa.Table
    report: dict[str, Any]


def read(folder: Path) -> Result:
    """Read the dataset ``out`` and the report in `folder`."""
    dataset = pq.read_table(folder / "out", partitioning=None)
    return Result(rows_of(dataset), dataset, json.loads((folder / "report.json").read_text()))


def rows_of(dataset: pa.Table) -> list[Row]:
    """Return left row, right row, ts, importance and weight, in the oracle's order."""
    names = "left_row", "right_row", "ts", "importance", "weight"
    rows = zip(*(dataset.column(name).to_pylist() for name in names), strict=True)
    return sorted(rows, key=lambda row: (row[2], row[0], row[1]))


def sampled(folder: Path, **options: Any) -> Result:
    """Sample with `options` and read what was written."""
    assert main(arguments(folder, **options)) == 0
    return read(folder)


class Given(NamedTuple):
    """What the oracle is given."""

    method: str
    windows: tuple[int, int] = (WINDOW, WINDOW)
    memory: tuple[int, int] = (MEMORY // 2, MEMORY // 2)
    fraction: float | None = None
    size: str = "matches"
    count: str = "bound"
    combine: str = "min"
    start_ts: int | None = None
    seed: int = 0
    values: tuple[Sequence[Sequence[float | None]], Sequence[Sequence[float | None]]] = ((), ())
    """For size `values`, columns of left and right by row."""


def oracle(left: Rows, right: Rows, given: Given) -> Sample:
    """Return the sample of one partition group in one lane; null keys take no part."""
    sides = [
        [(ts, key, imp, row) for row, (ts, key, imp) in enumerate(rows) if key is not None]
        for rows in (left, right)
    ]
    measures = [_measures(side, sides, given) for side in (0, 1)]
    return naive_sampling.naive_sample(
        given.method,
        sides[0],
        sides[1],
        given.windows,
        (measures[0], measures[1]),
        p=given.fraction or 1.0,
        budget=given.memory if given.method == "bottom-k" else (None, None),
        combine_name=given.combine,
        start_ts=given.start_ts,
        seed=given.seed,
    )


def _measures(side: int, sides: list[list[Any]], given: Given) -> list[float]:
    own, other, window = sides[side], sides[1 - side], given.windows[side]
    span = naive_sampling.naive_span(sides[0], sides[1])
    if given.method == "uniform":
        if given.count == "bound":
            return [float(n) for n in naive_sampling.naive_bound_counts(side, own, other, window)]
        if given.count == "age":
            return naive_sampling.naive_age_counts(own, other, window)
        return naive_sampling.naive_frequency_counts(own, other, window, span)
    if given.method == "eq-cluster":
        p = given.fraction or naive_sampling.naive_eq_fraction(
            own, window, span, given.memory[side]
        )
        return [p] * len(own)
    columns = [[column[row] for *_, row in own] for column in given.values[side]]
    sizes = naive_sampling.naive_sizes(given.size, own, other, values=columns)
    if given.method == "bottom-k":
        return sizes
    if given.fraction is not None:
        scale = naive_sampling.naive_pps_fraction_scale(sizes, given.fraction)
    else:
        scale = naive_sampling.naive_pps_scale(own, sizes, window, span, given.memory[side])
    return naive_sampling.naive_inclusion(sizes, scale)
