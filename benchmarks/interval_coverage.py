"""How often 95 % intervals of `winnow sample` cover, on archives and generated streams.

Every join of `coverage_populations.py` is sampled by every method with many seeds. The exact
aggregates are computed once. What is known exactly, with an interval of no width, is counted apart.

    python benchmarks/interval_coverage.py [--seeds 200] [--only NAME ...] [--json FILE]

Shares are over the windows with an output in the exact join, and all seeds. `covered` is of those
with an interval, `low` and `high` the shares whose exact value lies below and above it; `none` is
the share without an interval among those with 10 sampled outputs or more. `width` is the median
interval's, relative to the exact value.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from coverage_populations import Population, archives, generated
from numpy.typing import NDArray
from reproduce.record import with_others, write

import winnow
from engine.jobs.sample.task import LaneSample, SampleTask, sample_lane
from engine.report.envelope import versions
from engine.runtime.executors import SerialExecutor
from engine.sampling.aggregates.estimate import combine
from engine.sampling.lane import METHODS

T = TypeVar("T")
R = TypeVar("R")
MANY = 10
"""Sampled outputs from which on a window should have an interval."""
PLACE = Path(__file__).parent / "results" / "interval_coverage.json"


class Tasks(SerialExecutor):
    """Runs tasks here, and keeps those that sample."""

    def __init__(self) -> None:
        self.kept: list[SampleTask] = []

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for every item, in order."""
        for item in items:
            if isinstance(item, SampleTask):
                self.kept.append(item)
            yield function(item)


class Tally(NamedTuple):
    """Windows of one aggregate over all seeds."""

    text: str
    windows: NDArray[np.bool_]
    """(n,) bool. Those with an output in the exact join."""
    rows: list[pa.Table]
    """Of each seed."""

    def line(self) -> dict[str, Any]:
        """Return the shares."""
        truth = np.tile(_column(self.rows[0], "exact")[self.windows], len(self.rows))
        low, high, rows = (
            np.concatenate([_column(table, name)[self.windows] for table in self.rows])
            for name in ("low", "high", "rows")
        )
        slack = 1e-9 * np.abs(truth)
        has = ~np.isnan(low)
        exact = has & (low == high)
        open_ = has & ~exact
        missed = truth + slack < low, high < truth - slack
        many = (rows >= MANY) & ~exact
        width = (high - low)[open_] / np.maximum(np.abs(truth[open_]), 1e-300)
        return {
            "windows": int(truth.size),
            "exact": _share(exact, np.ones_like(exact)),
            "exact covered": _share(~(missed[0] | missed[1]), exact),
            "covered": _share(~(missed[0] | missed[1]), open_),
            "low": _share(missed[0], open_),
            "high": _share(missed[1], open_),
            "none": _share(~has, many),
            "width": round(float(np.median(width)), 4) if width.size else None,
        }


def _column(table: pa.Table, name: str) -> NDArray[np.float64]:
    found: NDArray[np.float64] = table[name].to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def _share(some: NDArray[np.bool_], of: NDArray[np.bool_]) -> float | None:
    return round(float(some[of].mean()), 4) if of.any() else None


def aggregates(population: Population) -> list[str]:
    """Return what is asked of a join."""
    value, every = population.value, population.every
    return [
        "count(*)", f"sum({value})", f"avg({value})", f"count(*) every {every}",
        f"sum(importance) every {every}", f"sum({value}) every {every}",
        f"avg({value}) every {every}",
    ]  # fmt: skip


def samples(
    population: Population, method: str, seeds: int, folder: Path
) -> tuple[list[str], Iterator[list[pa.Table]]]:
    """Return the aggregates' texts, and their estimates by seed."""
    sides = [folder / f"{side}.parquet" for side in ("left", "right")]
    for side, table in zip(sides, (population.left, population.right), strict=True):
        pq.write_table(table, side)
    executor, texts = Tasks(), aggregates(population)
    winnow.sample(
        *sides, on="key", time="ts", importance="importance", window=population.window,
        memory=population.memory, method=method, aggregates=texts, exact_aggregates=True, lanes=1,
        cache=folder / "cache", executor=executor, count_only=True,
    )  # fmt: skip
    [task] = executor.kept
    exact = sample_lane(task).exact_tables or []
    ts = [table["ts"].to_numpy() for table in (population.left, population.right)]
    span = int(max(one[0] for one in ts)), int(max(one[-1] for one in ts))

    def found() -> Iterator[list[pa.Table]]:
        for seed in range(seeds):
            lane: LaneSample = sample_lane(replace(task, seed=seed, exact_aggregates=False))
            yield [
                combine(spec, [mine], exact=[truth], span=span, lost=lane.lost)
                for spec, mine, truth in zip(task.specs, lane.tables, exact, strict=True)
            ][len(task.specs) - len(texts) :]

    return texts, found()


def lines(population: Population, method: str, seeds: int) -> Iterator[dict[str, Any]]:
    """Measure a join by one method."""
    with tempfile.TemporaryDirectory() as folder:
        texts, found = samples(population, method, seeds, Path(folder))
        runs = list(found)
    for i, text in enumerate(texts):
        tables = [run[i] for run in runs]
        whole = _column(tables[0], "exact")
        counted = _column(runs[0][3 if " every " in text else 0], "exact")
        tally = Tally(text, (counted > 0) & ~np.isnan(whole), tables)
        kind = ("window " if " every " in text else "total ") + text.partition("(")[0]
        yield {
            "population": population.name, "method": method, "aggregate": text, "kind": kind,
        } | tally.line()  # fmt: skip


def summary(found: list[dict[str, Any]]) -> Iterator[str]:
    """Yield a table of coverage by kind of aggregate and method: mean, least and most."""
    yield "| aggregate | method | covered | least | most | no interval |"
    yield "|---|---|---:|---:|---:|---:|"
    for kind in dict.fromkeys(line["kind"] for line in found):
        for method in METHODS:
            mine = [one for one in found if one["kind"] == kind and one["method"] == method]
            some = [one for one in mine if one["covered"] is not None]
            if not some:
                continue
            names = {one["covered"]: one["population"] for one in some}
            share = [100 * one["covered"] for one in some]
            none = max(100 * (one["none"] or 0.0) for one in mine)
            least, most = min(names), max(names)
            yield (
                f"| {kind} | `{method}` | {np.mean(share):.1f} | {100 * least:.1f} "
                f"({names[least]}) | {100 * most:.1f} ({names[most]}) | {none:.1f} |"
            )


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="coverage of intervals")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--only", nargs="*", help="names of joins; the file keeps others")
    parser.add_argument("--json", type=Path, default=PLACE)
    given = parser.parse_args()
    found: list[dict[str, Any]] = []
    for population in [*archives(), *generated()]:
        if given.only and population.name not in given.only:
            continue
        for method in METHODS:
            for line in lines(population, method, given.seeds):
                found.append(line)
                print(" | ".join(str(value) for value in line.values()), flush=True)
    print("\n".join(summary(found)))
    every = with_others(found, given.json, "population") if given.only else found
    rows = [list(line.values()) for line in every]
    head = {"seeds": given.seeds, "versions": versions()}
    write(given.json, head | {"columns": list(found[0]), "rows": rows})


if __name__ == "__main__":
    main()
