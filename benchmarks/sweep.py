"""Overhead of `winnow sweep` over its replays: 7 policies x 20 budgets on 1M + 1M tuples.

P1's online set-up (P1 5.2) made larger, as in the demo: a tuple an instant on each side, keys
Zipf(1.0) on the left and uniform on the right. First some cells are checked to equal separate
replays. Then the sweep is timed from its call to its result, including preparing, profiling,
reading, AGE's curves and the exact count. This is compared with what its replays alone need: the
CPU seconds that each cell spends in its replay, divided by the cores. They are measured within the
sweep, and once more with one cell after the other on one core. Code is compiled beforehand. On a
machine that others use too, the ratio of the sweep's CPU seconds to the replays' is more reliable
than wall time.

    python benchmarks/sweep.py [--rows 1000000] [--cores 2] [--json FILE]
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reproduce.record import about, write

import winnow
from engine import commands as cli
from engine.api.pairs import SweepFound, sweep
from engine.jobs.sweep import by_lanes
from engine.jobs.sweep.cells import Cell, CellResult
from engine.jobs.sweep.task import SweepOutcome, SweepTask, replay_cells, sweep_lane
from engine.runtime.executors import ThreadExecutor

RESULTS = Path(__file__).resolve().parent / "results" / "sweep.json"
POLICIES = ("rand", "prob", "simp", "simpprob", "dimpprob", "dgl", "age")
WINDOW, DOMAIN, BUDGETS = 9_999, 1_000, "5%:100%:5%"
ROLES: dict[str, Any] = {"on": "key", "time": "ts", "importance": "importance"}
CHECKED = ("5%", "50%")
FIGURES = ("outputs", "importance")


def some_cores(count: int) -> int:
    """Stay on `count` cores where the system lets us, and return how many there are."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:count]))
    return min(count, len(os.sched_getaffinity(0)))


def generated(rows: int, folder: Path) -> list[Path]:
    """Write two streams and return their files."""
    command = f"generate zipf --rows {rows} --domain {DOMAIN} --importance rare-high --seed 1"
    if cli.main([*command.split(), "--out", str(folder)]) != 0:
        sys.exit(1)
    return [folder / f"{side}.parquet" for side in ("left", "right")]


def swept(files: list[Path], cache: Path, cores: int) -> tuple[float, float, SweepFound]:
    """Sweep once; return the seconds it took, those of all processors, and what it found."""
    begun, processor = time.perf_counter(), time.process_time()
    found = sweep(
        *files,
        windows=WINDOW,
        policies=POLICIES,
        memory=BUDGETS,
        targets={"importance_recall": 0.95},
        cache=cache,
        executor=ThreadExecutor(cores),
        **ROLES,
    )
    return time.perf_counter() - begun, time.process_time() - processor, found


def check(files: list[Path], cache: Path, found: SweepFound) -> int:
    """Hold cells equal to their own replays, and return how many."""
    count = 0
    for line in found.outputs.to_pylist():
        if line["memory"] in CHECKED:
            report = winnow.replay(
                *files,
                window=WINDOW,
                policy=line["policy"],
                memory=line["memory"],
                cache=cache,
                count_only=True,
                **ROLES,
            ).report
            own = tuple(report["result"][name] for name in FIGURES)
            if own != tuple(line[name] for name in FIGURES):
                sys.exit(f"{line['policy']} at {line['memory']} differs from its replay: {own}")
            count += 1
    return count


@contextmanager
def remembered() -> Iterator[list[SweepTask]]:
    """Yield the tasks of the sweeps in the block, to run their cells again."""
    tasks: list[SweepTask] = []

    def lane(task: SweepTask) -> SweepOutcome:
        tasks.append(task)
        return sweep_lane(task)

    by_lanes.sweep_lane = lane
    try:
        yield tasks
    finally:
        by_lanes.sweep_lane = sweep_lane


def alone(tasks: list[SweepTask]) -> list[tuple[Cell, CellResult]]:
    """Replay every cell by itself, one after the other."""
    return [(cell, replay_cells(task.files, [cell], 1)[0]) for task in tasks for cell in task.cells]


def measured(rows: int, cores: int, folder: Path) -> dict[str, Any]:
    """Check and measure."""
    small = generated(min(rows, 20_000), folder / "small")
    swept(small, folder / "small-lanes", cores)  # compiles
    files = generated(rows, folder / "large")
    with remembered() as tasks:
        seconds, processor, found = swept(files, folder / "lanes", cores)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    checked = check(files, folder / "lanes", found)
    lines = found.outputs.to_pylist()
    themselves = alone(tasks)
    for cell, result in themselves:
        if result.importance != lines[cell.number]["importance"]:
            sys.exit(f"cell {cell.number} alone differs from itself in the sweep")
    within = sum(line["seconds"] for line in lines)
    by_itself = sum(result.seconds for _, result in themselves)
    return {
        "rows": rows,
        "cells": len(lines),
        "cores": cores,
        "checked": checked,
        "seconds": seconds,
        "processor_seconds": processor,
        "load": os.getloadavg(),
        "stages": found.report["seconds"],
        "replays_within": within,
        "replays_alone": by_itself,
        "ratio_within": seconds * cores / within,
        "ratio_alone": seconds * cores / by_itself,
        "processor_ratio_within": processor / within,
        "processor_ratio_alone": processor / by_itself,
        "peak_mib": peak,
        "policies": {
            policy: {
                "within": sum(x["seconds"] for x in lines if x["policy"] == policy),
                "alone": sum(r.seconds for c, r in themselves if c.settings.policy == policy),
            }
            for policy in POLICIES
        },
    }


def print_found(found: dict[str, Any]) -> None:
    """Print what was measured."""
    stages = ", ".join(f"{name} {value:.2f}" for name, value in found["stages"].items())
    print(
        f"\n{found['cells']} cells on {found['rows']:,} + {found['rows']:,} tuples, "
        f"{found['cores']} cores; {found['checked']} cells equal to their own replays\n"
        f"sweep {found['seconds']:.2f} s, {found['processor_seconds']:.2f} s of processors "
        f"({stages}); peak {found['peak_mib']:,.0f} MiB"
    )
    print(f"\n{'replays, seconds of one core':30}{'in the sweep':>14}{'alone':>10}")
    for policy, own in found["policies"].items():
        print(f"{policy:30}{own['within']:14.2f}{own['alone']:10.2f}")
    print(f"{'all':30}{found['replays_within']:14.2f}{found['replays_alone']:10.2f}")
    print(
        f"{'sweep / (replays / cores)':30}{found['ratio_within']:14.3f}{found['ratio_alone']:10.3f}"
    )
    print(
        f"{'its processor seconds / replays':30}{found['processor_ratio_within']:13.3f}"
        f"{found['processor_ratio_alone']:10.3f}"
    )


def main() -> None:
    """Measure, print and write everything."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="tuples of each stream")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--json", type=Path, default=RESULTS)
    args = parser.parse_args()
    cores = some_cores(args.cores)
    with tempfile.TemporaryDirectory(prefix="winnow-sweep-") as name:
        found = measured(args.rows, cores, Path(name))
    print_found(found)
    write(args.json, {"about": about(), **found})


if __name__ == "__main__":
    main()
