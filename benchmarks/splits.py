"""One memory for both sides against fixed splits of it: on real archives, and in time.

Each join of `FIRST_ROWS` is replayed with `--split even`, `expected` and `pooled` under
four policies and with four memories, percentages of what the exact join needs at its peak.

    python benchmarks/splits.py [--rows 60000] [--only gcluster]

Times are medians of five replays of P1's set-up with 1M tuples a side, in turn, in one lane. The
even split is as users get it: a percentage of each side's own peak.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from real_joins import FIRST_ROWS, columns_in
from reproduce.record import about, write
from reproduce.two_way import Point, zipf

import winnow
from engine.generate import ImportanceModel
from engine.lanes.profile import LaneProfile, profile_side
from engine.replay import common
from engine.replay.lane import LaneReplay
from engine.replay.settings import ReplaySettings

RESULTS = Path(__file__).resolve().parent / "results" / "splits.json"
POLICIES = ("prob", "simpprob", "dgl", "yield")
MEMORIES = (1, 5, 10, 25)
SPLITS = ("even", "expected", "pooled")


def tables_of(name: str, rows: int) -> tuple[pa.Table, pa.Table]:
    """Return the first rows of two archives, until one of them has so many."""
    join = FIRST_ROWS[name]
    sides = columns_in(join._replace(rows=rows if join.rows is None else min(rows, join.rows)))
    left, right = (pa.table(dict(zip("tkv", side, strict=True))) for side in sides)
    return left, right


def compared(name: str, rows: int) -> list[dict[str, Any]]:
    """Return the importance recall of every policy, memory and split on two archives."""
    left, right = tables_of(name, rows)
    lines = []
    for policy in POLICIES:
        for memory in MEMORIES:
            recall = {}
            for split in SPLITS:
                found = winnow.replay(
                    left, right, on="k", time="t", importance="v",
                    window=FIRST_ROWS[name].window, memory=f"{memory}%", policy=policy, split=split,
                )  # fmt: skip
                recall[split] = round(found.report["importance_recall"], 4)
            lines.append({"streams": name, "policy": policy, "memory": memory, **recall})
    return lines


def timed(policy: str, rows: int = 1_000_000, repeats: int = 5) -> dict[str, float]:
    """Return the seconds of a pooled replay and of an even one, at a tenth of the memory."""
    left, right = zipf(Point(0, 0, 2000, (1.0, 0.0), rows), ImportanceModel(), seed=1)
    window, half = 9_999, 1_000
    profile = LaneProfile(profile_side([left], window), profile_side([right], window))
    seconds: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(repeats + 1):
        for pooled, own in seconds.items():
            settings = ReplaySettings(window, window, policy=policy, pooled=pooled)
            lane = LaneReplay(settings, profile, (half, half), emit=False)
            begun = time.perf_counter()
            list(
                lane.push(left, left.key.astype(np.int32), right, right.key.astype(np.int32), 2001)
            )
            own.append(time.perf_counter() - begun)
    even, one = (statistics.median(own[1:]) for own in (seconds[False], seconds[True]))
    return {"even": round(even, 4), "pooled": round(one, 4), "ratio": round(one / even, 3)}


def main() -> None:
    """Print and record everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    common.LANE_TUPLES = 0  # no kernel for all policies
    times = {policy: timed(policy) for policy in POLICIES}
    for policy, own in times.items():
        print(f"{policy:10s} even {own['even']:.3f} s, pooled {own['ratio']:.2f} times that")
    lines = []
    for name in FIRST_ROWS:
        if args.only in name:
            for line in compared(name, args.rows):
                lines.append(line)
                best = max(line["even"], line["expected"])
                print(
                    f"{name:36s} {line['policy']:9s} {line['memory']:3d} %  even {line['even']:.3f}"
                    f"  expected {line['expected']:.3f}  pooled {line['pooled']:.3f}"
                    f"  {100 * (line['pooled'] - best):+.1f}",
                    flush=True,
                )
    gains = [100 * (line["pooled"] - max(line["even"], line["expected"])) for line in lines]
    behind = sum(gain < -1 for gain in gains)
    print(f"{len(gains)} cells: {behind} more than a point behind, median {np.median(gains):+.2f}")
    if not args.only:
        write(RESULTS, {"about": about(), "times": times, "recall": lines})


if __name__ == "__main__":
    main()
