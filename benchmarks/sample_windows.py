"""How often confidence intervals of windows cover, on a computing cluster's tasks (gcluster).

Three joins on the task: its schedules with its ends, in windows of 30 minutes, with 10 % of the
peak as memory; its submissions with its schedules, in windows of a minute, with 10 % and with 1 %
(10 % of its peak is more than the mean, so all methods but bottom-k keep everything). Counts and
sums of priority every 10 minutes and every minute, by each method and several seeds, compared with
the exact ones.

    python benchmarks/sample_windows.py [--seeds 4] [--out FILE]

WINNOW_DATA is the folder of the data, shared/data by default.

Shares are of all windows with an output in the exact join, over all seeds: the share that has an
interval, and the share whose interval covers (a window without one does not). Missed low and high
give the side on which the exact value lies. Width is the median's, divided by the exact value.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine import sample_archives
from engine.report.envelope import versions

DATA = Path(os.environ.get("WINNOW_DATA", "shared/data")) / "gcluster"
METHODS = "eq-cluster", "pps-cluster", "bottom-k", "uniform"
MINUTE = 60_000_000
AGGREGATES = [
    f"{what} every {every}"
    for every in (10 * MINUTE, MINUTE)
    for what in ("count(*)", "sum(importance)")
]


class Join(NamedTuple):
    """Two archives, the window and the memory."""

    left: str
    right: str
    window: int
    memory: str


JOINS = {
    "schedule, end, 10 %": Join("schedule", "end", 30 * MINUTE, "10%"),
    "submit, schedule, 10 %": Join("submit", "schedule", MINUTE, "10%"),
    "submit, schedule, 1 %": Join("submit", "schedule", MINUTE, "1%"),
}


def sampled(join: Join, method: str, seed: int, *, exact: bool) -> dict[str, pa.Table]:
    """Return the estimates of every aggregate."""
    left, right = (DATA / f"{name}.parquet" for name in (join.left, join.right))
    return sample_archives(
        left, right, on="key", time="ts", importance="priority", window=join.window,
        memory=join.memory, method=method, seed=seed, aggregates=AGGREGATES, exact_aggregates=exact,
    ).aggregates  # fmt: skip


def column(table: pa.Table, name: str) -> NDArray[np.float64]:
    """Return a column as numbers, NaN for null."""
    found: NDArray[np.float64] = table[name].to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def line(found: list[pa.Table], truth: pa.Table, some: NDArray[np.bool_]) -> dict[str, Any]:
    """Return the shares of windows over the runs of a method."""
    exact = np.tile(column(truth, "exact")[some], len(found))
    low, high = (
        np.concatenate([column(table, name)[some] for table in found]) for name in ("low", "high")
    )
    slack = 1e-9 * np.abs(exact)
    with np.errstate(all="ignore"):  # sums of priority may be 0
        width = np.nanmedian((high - low) / exact)
    shares = {
        "with": ~np.isnan(low),
        "covered": (low <= exact + slack) & (exact - slack <= high),
        "missed low": exact + slack < low,
        "missed high": high < exact - slack,
    }
    found_shares = {name: round(float(share.mean()), 4) for name, share in shares.items()}
    return {"windows": int(some.sum())} | found_shares | {"width": round(float(width), 4)}


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="coverage of windows' intervals on gcluster")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/sample_windows.json"))
    given = parser.parse_args()
    lines = []
    print("| join | method | aggregate | windows | with | covered | missed low | high | width |")
    print("|---|---|---|---:|---:|---:|---:|---:|---:|")
    for name, join in JOINS.items():
        truth: dict[str, pa.Table] = {}
        for method in METHODS:
            runs = []
            for seed in range(given.seeds):
                runs.append(sampled(join, method, seed, exact=not truth))
                truth = truth or runs[0]
            for text in AGGREGATES:
                counted = truth[text.replace("sum(importance)", "count(*)")]
                own = line([run[text] for run in runs], truth[text], column(counted, "exact") > 0)
                lines.append({"join": name, "method": method, "aggregate": text} | own)
                shares = " | ".join(f"{100 * own[key]:.1f}" for key in list(own)[1:])
                print(f"| {name} | {method} | {text} | {own['windows']} | {shares} |", flush=True)
    print(f"least covered: {100 * min(entry['covered'] for entry in lines):.1f} %")
    head_of = {"seeds": given.seeds, "memory": {n: j.memory for n, j in JOINS.items()}}
    text = ",\n  ".join(json.dumps(entry) for entry in lines)
    head = json.dumps(head_of | {"versions": versions()}, indent=1)[:-2]
    given.out.write_text(f'{head},\n "lines": [\n  {text}\n ]\n}}\n')


if __name__ == "__main__":
    main()
