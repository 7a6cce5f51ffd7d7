"""What `winnow replay --policy auto` chooses, against the best of a full sweep, on real archives.

    python benchmarks/advice.py [--only hflights] [--seed 0]

Each join is replayed whole under every policy but custom, every split with a name and every
estimator that matters (DIMPPROB with the estimator history is left out: it ranks every resident
again at every instant). The choice is that of the trial, one memory at a time, as a replay makes
it. A ratio is the importance recall of the choice on the whole archive over that of the best cell.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from policy_order import commit

from engine.jobs.frame import open_job, prepare_job
from engine.jobs.sweep.task import ExactCounter, replay_cells
from engine.jobs.trial import candidates
from engine.jobs.trial.layout import lay_out
from engine.jobs.trial.run import run_trial
from engine.options.budget import divided, parse_amount
from engine.options.replay import REPLAY, job_of
from engine.runtime.executors import Stages, ThreadExecutor

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "advice.json"
DATA = Path(os.environ.get("WINNOW_DATA", HERE.parent.parent / "shared" / "data"))
MEMORIES = ("1%", "5%", "10%", "25%")
OTHERS = ("rand", "additive", "multiplicative")
"""Policies that no trial tries."""
SECOND, HOUR, DAY = 10**6, 3600, 86_400


class Join(NamedTuple):
    """Two archives; keys and importance are columns, or `//` and `*` of them."""

    left: str
    right: str
    window: int
    importance: tuple[str, str] = ("importance", "importance")
    key: tuple[str, str] = ("key", "key")


PRIORITY, PRICES, VALUES = ("priority", "priority"), ("price", "price"), ("value", "value")
JOINS = {
    "gcluster submit, schedule (60 s)": Join(
        "gcluster/submit", "gcluster/schedule", 60 * SECOND, PRIORITY
    ),
    "gcluster schedule, end (30 min)": Join(
        "gcluster/schedule", "gcluster/end", 1800 * SECOND, PRIORITY
    ),
    "gcluster submit, end (30 min)": Join(
        "gcluster/submit", "gcluster/end", 1800 * SECOND, PRIORITY
    ),
    "hflights departures, arrivals (12 h)": Join(
        "hflights/departures", "hflights/arrivals", 12 * HOUR
    ),
    "ebay auctions, bids (7 days)": Join(
        "ebay/auctions", "ebay/bids", 7 * DAY * SECOND, ("price", "bid")
    ),
    "ebay bids, closes (7 days)": Join(
        "ebay/bids", "ebay/closes", 7 * DAY * SECOND, ("bid", "price")
    ),
    "ebay auctions, closes (7 days)": Join(
        "ebay/auctions", "ebay/closes", 7 * DAY * SECOND, PRICES
    ),
    "bpi permit, declaration (120 days)": Join(
        "bpi2020/permit_submitted", "bpi2020/declaration_submitted", 120 * DAY
    ),
    "bpi declaration, payment (30 days)": Join(
        "bpi2020/declaration_submitted", "bpi2020/declaration_paid", 30 * DAY, key=("decl", "key")
    ),
    "bpi request, payment (30 days)": Join("bpi2020/rfp_submitted", "bpi2020/rfp_paid", 30 * DAY),
    "bpi domestic, payment (30 days)": Join(
        "bpi2020/domestic_submitted", "bpi2020/domestic_paid", 30 * DAY
    ),
    "bpi trip start, end (30 days)": Join("bpi2020/trip_start", "bpi2020/trip_end", 30 * DAY),
    "building co2, humidity (30 min)": Join("building/co2", "building/humidity", 1800, VALUES),
    "building light, temperature (5 min)": Join(
        "building/light", "building/temperature", 300, VALUES
    ),
    "taq quotes, trades (5 s)": Join(
        "taq/quotes", "taq/trades", 5 * SECOND, ("mid*bidsize", "importance")
    ),
    "taq quotes, trades (60 s)": Join(
        "taq/quotes", "taq/trades", 60 * SECOND, ("mid*bidsize", "importance")
    ),
    "beijing pm25 // 2 (72 h)": Join(
        "beijing/dongsi", "beijing/gucheng", 72 * HOUR, ("pm25", "pm25"), ("pm25//2", "pm25//2")
    ),
    "beijing whole degrees (72 h)": Join(
        "beijing/dongsi", "beijing/shunyi", 72 * HOUR, ("pm25", "pm25"), ("temp//1", "temp//1")
    ),
}


def column(table: Any, words: str) -> NDArray[np.float64]:  # noqa: ANN401 - pyarrow's
    """Return ``a``, ``a*b`` or ``a//number`` of a table, missing values as 0."""
    first, star, other = words.partition("*")
    name, floor, step = first.partition("//")
    values = np.nan_to_num(table.column(name).to_numpy().astype(np.float64))
    if star:
        values *= np.nan_to_num(table.column(other).to_numpy().astype(np.float64))
    return np.floor(values / float(step)) if floor else values


def written(join: Join, folder: Path) -> list[Path]:
    """Write both streams of a join as ts, key and importance."""
    files = []
    for side, (name, key, importance) in enumerate(
        zip((join.left, join.right), join.key, join.importance, strict=True)
    ):
        table = pq.read_table(DATA / f"{name}.parquet")
        own = {
            "ts": table["ts"],
            "key": column(table, key).astype(np.int64),
            "importance": column(table, importance),
        }
        files.append(folder / f"{side}.parquet")
        pq.write_table(pa.table(own), files[-1])
    return files


def measured(join: Join, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what is chosen and what is best with each memory."""
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        left, right = written(join, Path(folder))
        told = {
            "left": left, "right": right, "on": "key", "time": "ts", "importance": "importance",
            "window": join.window, "memory": "1%", "seed": seed, "cache": Path(folder) / "cache",
        }  # fmt: skip
        base = job_of(REPLAY.from_keywords(told))
        archives, stages = open_job(base), Stages(ThreadExecutor())
        lanes = prepare_job(base, archives, stages)
        for text in MEMORIES:
            memory = [divided(parse_amount(text, "--memory"))]
            layout = lay_out(base, memory, archives, lanes)
            begun = time.perf_counter()
            trial = run_trial(layout, lanes, seed=seed)
            seconds = time.perf_counter() - begun
            yield {"memory": text, "rows": sum(lanes.rows), "seconds": seconds} | _compared(
                trial, _full(base, memory, archives, lanes)
            )


def _full(base: Any, memory: Any, archives: Any, lanes: Any) -> dict[Any, float]:  # noqa: ANN401
    """Return the importance recall of all cells."""
    tried = candidates.POLICIES
    candidates.POLICIES = (*tried, *OTHERS)
    try:
        layout = lay_out(replace(base), memory, archives, lanes)
    finally:
        candidates.POLICIES = tried
    counter = ExactCounter(layout.exact)
    results = replay_cells(lanes.files[0], layout.cells[0], 2, [counter])
    exact = counter.found.importance
    return {layout.places[one.cell].candidate: one.importance / exact for one in results}


def _compared(trial: Any, full: dict[Any, float]) -> dict[str, Any]:  # noqa: ANN401
    chosen = trial.found[0][0]
    best = max(full, key=lambda one: full[one])
    estimate, reached = chosen.importance_recall, full[chosen.candidate]
    return {
        "chosen": str(chosen.candidate),
        "estimate": list(map(float, estimate)),
        "reached": reached,
        "best": str(best),
        "best_reached": full[best],
        "ratio": reached / full[best] if full[best] else 1.0,
        "covered": bool(estimate.low - 1e-12 <= reached <= estimate.high + 1e-12),
        "whole": trial.exact,
        "stretches": trial.stretches,
        "replayed": trial.replayed,
        "cells": len(full),
    }


def main() -> None:
    """Measure, print a table and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    lines = []
    for name, join in JOINS.items():
        if given.only not in name:
            continue
        for line in measured(join, given.seed):
            lines.append({"join": name} | line)
            print(
                f"{name:38s}{line['memory']:>4s} {line['chosen']:52s}{line['reached']:7.4f} of "
                f"{line['best_reached']:.4f} {line['best']:52s}{line['ratio']:6.3f} "
                f"{'whole' if line['whole'] else line['stretches']:>5} {line['seconds']:5.1f} s",
                flush=True,
            )
    ratios = [line["ratio"] for line in lines]
    summary = {"median": median(ratios), "least": min(ratios), "lines": len(lines)}
    print(summary)
    if not given.only:
        found = {
            "commit": commit(),
            "machine": platform.processor() or platform.machine(),
            "seed": given.seed,
            "summary": summary,
            "lines": lines,
        }
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
