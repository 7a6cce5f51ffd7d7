"""Throughput of a replay for each policy, on one core and counting only.

P1 table 1's set-up (N = 56,000 a stream, w = 2000, M = 800, domain 2000) with keys Zipf 1 x 0 and
Zipf 1 x 1, and the same 100 times larger in N, w, M and domain; M is also varied. Streams are
generated and profiled beforehand; only the replay of all batches by one thread is timed, without
the exact count. Policies take turns within each repeat; best and median are printed.

    python benchmarks/replay_throughput.py [--repeats 5] [--scales 1,100] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from reproduce.record import about, write

from engine.generate import ImportanceModel, ZipfSpec, in_memory, zipf_sources
from engine.lanes.profile import LaneProfile, profile_side
from engine.lanes.reader import BATCH_ROWS
from engine.policies import POLICIES
from engine.replay.lane import LaneReplay
from engine.replay.settings import ReplaySettings
from engine.runtime.streams import StreamBatch

RESULTS = Path(__file__).resolve().parent / "results" / "replay_throughput.json"
COMPARED = tuple(name for name in POLICIES if name != "custom")
ROWS, LIFETIME, MEMORY, DOMAIN = 56_000, 2000, 800, 2000
MEMORIES = {1: (800, 200, 3200), 100: (800,)}
"""Memories by scale, as multiples of the scale."""
PARAMETERS: dict[str, dict[str, Any]] = {"age": {"curve": tuple(range(1, 21))}}


class Workload(NamedTuple):
    """Streams in batches, with their key ids."""

    name: str
    scale: int
    skew: float
    batches: list[tuple[StreamBatch, Any, StreamBatch, Any]]
    profile: LaneProfile

    @property
    def tuples(self) -> int:
        """Tuples of both streams."""
        return sum(side.rows for side in self.profile)


def workload(scale: int, skew: float) -> Workload:
    """Generate P1 table 1's streams, `scale` times as large."""
    spec = ZipfSpec(
        rows=ROWS * scale,
        domain=DOMAIN * scale,
        skew_left=1.0,
        skew_right=skew,
        correlation="none",
        importance=ImportanceModel("rare-high"),
        seed=1,
    )
    sides = []
    for table in in_memory(zipf_sources(spec)):
        ts, key, importance = (
            table.column(name).to_numpy() for name in ("ts", "key", "importance")
        )
        sides.append(StreamBatch(ts, np.arange(ts.size), key, importance))
    window = LIFETIME * scale - 1
    profile = LaneProfile(*(profile_side([side], window) for side in sides))
    batches = []
    for begin in range(0, ROWS * scale, BATCH_ROWS // 2):
        left, right = (
            StreamBatch(*(array[begin : begin + BATCH_ROWS // 2] for array in side))
            for side in sides
        )
        batches.append((left, left.key.astype(np.int32), right, right.key.astype(np.int32)))
    return Workload(f"Zipf 1 x {skew:g}, {scale} x", scale, skew, batches, profile)


def replayed(work: Workload, policy: str, memory: int) -> tuple[float, int, float]:
    """Replay once; return seconds, outputs and their importance."""
    window = LIFETIME * work.scale - 1
    settings = ReplaySettings(window, window, policy=policy, parameters=PARAMETERS.get(policy, {}))
    curve = np.array(PARAMETERS["age"]["curve"], float) if policy == "age" else None
    budget = memory * work.scale // 2
    begun = time.perf_counter()
    lane = LaneReplay(settings, work.profile, (budget, budget), curves=(curve, curve), emit=False)
    for left, left_ids, right, right_ids in work.batches:
        for _ in lane.push(left, left_ids, right, right_ids, DOMAIN * work.scale):
            raise AssertionError
    return time.perf_counter() - begun, lane.outputs, lane.importance


def measured(
    work: Workload, memory: int, policies: list[str], repeats: int
) -> list[dict[str, Any]]:
    """Time every policy, in turn."""
    seconds: dict[str, list[float]] = {policy: [] for policy in policies}
    found = {}
    for _ in range(repeats):
        for policy in policies:
            spent, *found[policy] = replayed(work, policy, memory)
            seconds[policy].append(spent)
    return [
        {
            "workload": work.name,
            "scale": work.scale,
            "skew_right": work.skew,
            "memory": memory * work.scale,
            "policy": policy,
            "tuples": work.tuples,
            "best": min(seconds[policy]),
            "median": statistics.median(seconds[policy]),
            "outputs": found[policy][0],
            "importance": found[policy][1],
        }
        for policy in policies
    ]


def one_core() -> None:
    """Stay on one core where the system lets us."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def print_table(rows: list[dict[str, Any]]) -> None:
    """Print one workload's table."""
    first = rows[0]
    print(f"\n{first['workload']}, M = {first['memory']:,}, {first['tuples']:,} tuples")
    print(f"{'policy':16}{'best s':>10}{'median s':>10}{'tuples/s':>14}{'ns/tuple':>10}")
    for row in rows:
        rate = row["tuples"] / row["median"]
        print(
            f"{row['policy']:16}{row['best']:10.4f}{row['median']:10.4f}{rate:14,.0f}"
            f"{1e9 / rate:10.0f}"
        )


def print_growth(rows: list[dict[str, Any]]) -> None:
    """Print how much longer a tuple takes at the greatest scale than at the smallest."""
    scales = sorted({row["scale"] for row in rows})
    if len(scales) < 2:
        return
    a_tuple = {
        (row["skew_right"], row["policy"], row["scale"]): row["median"] / row["tuples"]
        for row in rows
        if row["memory"] == MEMORY * row["scale"]
    }
    print(f"\ntime a tuple at {scales[-1]} times the size over that at {scales[0]} (M scaled too)")
    for skew in (0.0, 1.0):
        growth = [
            f"{policy} {a_tuple[skew, policy, scales[-1]] / before:.1f}"
            for (other, policy, scale), before in a_tuple.items()
            if other == skew and scale == scales[0] and (skew, policy, scales[-1]) in a_tuple
        ]
        print(f"Zipf 1 x {skew:g}: {', '.join(growth)}")


def main(argv: list[str] | None = None) -> int:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scales", default="1,100")
    parser.add_argument("--policies", default=",".join(COMPARED))
    parser.add_argument("--json", type=Path, default=RESULTS)
    args = parser.parse_args(argv)
    policies = args.policies.split(",")
    one_core()
    rows = []
    for scale in map(int, args.scales.split(",")):
        for skew in (0.0, 1.0):
            work, small = workload(scale, skew), workload(1, skew)
            for policy in policies:
                replayed(small, policy, MEMORY)  # compiles
            for memory in MEMORIES.get(scale, (MEMORY,)):
                repeats = args.repeats if scale < 10 else min(args.repeats, 3)
                new = measured(work, memory, policies, repeats)
                print_table(new)
                rows += new
    print_growth(rows)
    content = {"about": about(), "repeats": args.repeats, "rows": rows}
    write(args.json, content)
    return 0


if __name__ == "__main__":
    sys.exit(main())
