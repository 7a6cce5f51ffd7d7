"""Spark against the local engine: the same archive, the same lanes, the same cores, in turn.

Every run prepares its lanes again. Reports, except their times, are compared first. Start-up is
excluded: both engines have replayed a small archive before. Wall and CPU seconds are medians; CPU
is that of the driver, the JVM and the workers together, and depends less on the machine's other
load.

    python benchmarks/spark_overhead.py [--rows 10000000] [--repeats 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from reproduce.record import about, write
from scale import (
    RESULTS,
    WORKLOADS,
    Spent,
    figures,
    job,
    local_session,
    median,
    timed,
    write_archive,
)

from engine.jobs.replay.run import run_replay
from engine.report.envelope import Report
from engine.runtime.executors import Executor, ThreadExecutor
from spark_plugin.executor import SparkExecutor

_SMALL = 200_000
KINDS: dict[str, dict[str, Any]] = {
    "exact count": {"memory": None},
    "10 % memory": {"memory": "10%", "lanes": 8},
}


def once(folder: Path, cache: Path, executor: Executor, **options: Any) -> tuple[Report, Spent]:  # noqa: ANN401
    """Replay with lanes prepared anew."""
    try:
        job_options = job(folder, WORKLOADS["sparse"], cache, **options)
        return timed(lambda: run_replay(job_options, executor))
    finally:
        shutil.rmtree(cache, ignore_errors=True)


def compared(
    kind: str, folder: Path, executors: dict[str, Executor], repeats: int
) -> dict[str, Any]:
    """Run both in turn; return medians, and how many times as long Spark takes."""
    cache = folder / "cache"
    spent: dict[str, list[Spent]] = {name: [] for name in executors}
    stages: dict[str, list[dict[str, float]]] = {name: [] for name in executors}
    reports = {}
    for _ in range(repeats):
        for name, executor in executors.items():
            report, took = once(folder, cache, executor, **KINDS[kind])
            spent[name].append(took)
            stages[name].append(report.content["seconds"])
            reports[name] = figures(report)
        if reports["spark"] != reports["local"]:
            sys.exit(f"{kind}: the reports differ")
    local, spark = median(spent["local"]), median(spent["spark"])
    row = {
        "kind": kind,
        "local": local._asdict(),
        "spark": spark._asdict(),
        "wall_ratio": spark.wall / local.wall,
        "cpu_ratio": spark.cpu / local.cpu,
        "runs": {name: [one._asdict() for one in own] for name, own in spent.items()},
        "stages": stages,
        "result": reports["local"]["result"],
    }
    print(
        f"{kind}: local {local.wall:.1f} s (CPU {local.cpu:.1f}), Spark {spark.wall:.1f} s "
        f"(CPU {spark.cpu:.1f}): {row['wall_ratio']:.2f} x wall, {row['cpu_ratio']:.2f} x CPU",
        flush=True,
    )
    return row


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path, default=RESULTS / "spark_overhead.json")
    args = parser.parse_args()
    executors: dict[str, Executor] = {
        "local": ThreadExecutor(args.cores),
        "spark": SparkExecutor(local_session(args.cores, light=True)),
    }
    with tempfile.TemporaryDirectory(prefix="overhead-", dir=args.place) as name:
        folder = Path(name)
        write_archive(folder / "small", _SMALL, WORKLOADS["sparse"])
        for executor in executors.values():
            for options in KINDS.values():
                once(folder / "small", folder / "warm", executor, **options)
        write_archive(folder / "archive", args.rows, WORKLOADS["sparse"])
        rows = [compared(kind, folder / "archive", executors, args.repeats) for kind in KINDS]
    write(args.json, {"about": about(rows=args.rows, cores_used=args.cores), "rows": rows})


if __name__ == "__main__":
    main()
