"""Cost a tuple and memory of Spark's workers as an archive grows: 1M + 1M to 100M + 100M tuples.

Each size has its own archive, generated for the run and deleted afterwards. A process of its own
replays it through Spark on the requested number of cores, within 10 % of the exact join's memory
and with the exact count. Lanes are prepared again. A first, small replay in the same session
excludes the start-up. Five times a second the memory of the driver, the JVM and the workers is read
from /proc. CPU seconds are of all of these together; they depend less than wall time on the
machine's other load.

    python benchmarks/spark_scale.py [--sizes 1,10,100] [--workload sparse] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from reproduce.record import about, write
from scale import (
    RESULTS,
    WORKLOADS,
    Spent,
    Watched,
    Workload,
    job,
    local_session,
    watched,
    write_archive,
)

from engine.jobs.replay.run import run_replay
from spark_plugin.executor import SparkExecutor

_SMALL = 200_000
"""Tuples a side of the replay that warms up."""


class Stages:
    """CPU seconds by stage of preparation and job; `run_replay` reports progress to `note`."""

    def __init__(self, seen: Watched) -> None:
        self._seen, self._stage, self._since = seen, "open", 0.0
        self.seconds: dict[str, float] = {}

    def note(self, stage: str, done: int, total: int) -> None:
        """Book what was spent since the last stage began."""
        del done, total
        if stage not in (self._stage, "rows"):
            self.close()
            self._stage = stage

    def close(self) -> None:
        """Book what was spent in the last stage."""
        self._seen.look()
        now = self._seen.cpu
        self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._since = now


def measured(
    folder: Path, rows: int, work: Workload, lanes: int, memory: str | None, cores: int
) -> dict[str, Any]:
    """Generate, replay and return what it took and held."""
    size = write_archive(folder / "archive", rows, work)
    executor = SparkExecutor(local_session(cores, light=True))
    small = folder / "small"
    write_archive(small, _SMALL, work)
    for memory_of_small in (None, memory):
        warm = job(small, work, folder / "cache", memory=memory_of_small, lanes=lanes)
        run_replay(warm, executor)
    with watched() as seen:
        cpu, begun = Stages(seen), time.perf_counter()
        options = job(folder / "archive", work, folder / "cache", memory=memory, lanes=lanes)
        report = run_replay(options, executor, cpu.note)
        cpu.close()
        spent = Spent(time.perf_counter() - begun, seen.cpu)
    stages = report.content["seconds"]
    tuples = 2 * rows
    return {
        "rows": rows,
        "tuples": tuples,
        "archive_bytes": size,
        "lanes": lanes,
        "memory": memory,
        "wall_seconds": spent.wall,
        "cpu_seconds": spent.cpu,
        "cpu_ns_a_tuple": 1e9 * spent.cpu / tuples,
        "stages": {
            name: {"wall_seconds": took, "tuples_per_second": tuples / took if took else None}
            for name, took in stages.items()
        },
        "cpu_by_task": {name: 1e9 * took / tuples for name, took in cpu.seconds.items()},
        "processes": seen.peaks,
        "exact": report.content["exact"],
        "result": report.content["result"],
    }


def alone(rows: int, args: argparse.Namespace, place: Path) -> dict[str, Any]:
    """Measure one size in a process of its own, whose folder is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="scale-", dir=place) as name:
        answer = Path(name) / "answer.json"
        words = [sys.executable, __file__, "--answer", answer, "--rows", rows]
        words += ["--workload", args.workload, "--lanes", args.lanes, "--cores", args.cores]
        words += [] if args.memory is None else ["--memory", args.memory]
        subprocess.run([str(word) for word in words], check=True)  # noqa: S603 - this script
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def show(row: dict[str, Any]) -> None:
    """Print one size."""
    worker, driver = row["processes"]["worker"], row["processes"]["driver"]
    print(
        f"{row['rows']:>12,} a side: {row['wall_seconds']:8.1f} s, CPU {row['cpu_seconds']:.1f} s, "
        f"{row['cpu_ns_a_tuple']:6.0f} ns CPU a tuple; worker {worker['resident_mib']:.0f} MiB "
        f"({worker['anonymous_mib']:.0f} anonymous), driver {driver['resident_mib']:.0f} MiB",
        flush=True,
    )
    for name, took in row["cpu_by_task"].items():
        print(f"    {name:12} {took:8.0f} ns CPU a tuple")


def main() -> None:
    """Measure every size and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--sizes", default="1,10", help="millions of tuples a side")
    parser.add_argument("--workload", choices=WORKLOADS, default="sparse")
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--memory", default="10%")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path, default=RESULTS / "spark_scale.json")
    parser.add_argument("--answer", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    work = WORKLOADS[args.workload]
    if args.answer is not None:
        place = args.answer.parent
        found = measured(place, args.rows, work, args.lanes, args.memory, args.cores)
        args.answer.write_text(json.dumps(found))
        return
    rows = []
    for size in args.sizes.split(","):
        rows.append(alone(round(1e6 * float(size)), args, args.place))
        show(rows[-1])
        write(
            args.json, {"about": about(workload=args.workload, cores_used=args.cores), "rows": rows}
        )


if __name__ == "__main__":
    main()
