"""A key that has half of all tuples: which parts of the job it makes serial, and which not.

Tasks are timed by the CPU time of the process that runs them, one at a time, so that the figures do
not depend on the machine's other load. With p cores, a stage takes at least as long as its longest
task and at least 1/p of the total, so the longest task's share limits the speed-up. Measured: the
exact count with one task a lane and with large lanes cut into slices of time, whose answers must be
equal; and the replay within 10 % of the memory, which cannot be cut, with the heavy lane's exact
count done during the replay, and as a precount in slices.

    python benchmarks/spark_skew.py [--rows 10000000] [--lanes 8] [--json FILE]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from reproduce.record import about, write
from scale import RESULTS, SEED, Workload, figures, job, local_session

from engine.generate import ImportanceModel, StreamSource, ZipfSpec, write_streams, zipf_sources
from engine.jobs.replay import slices
from engine.jobs.replay.run import run_replay
from engine.runtime.executors import Executor
from spark_plugin.executor import SparkExecutor

T = TypeVar("T")
R = TypeVar("R")
WORK = Workload("one key half", 100_000, 19)
_WHOLE = 1 << 62
_STAGES = ("count_slice", "replay_lane")
"""One after the other: what more cores cannot shorten is the longest task of each."""


def skewed(source: StreamSource, stream: int) -> StreamSource:
    """Return a stream in which every other tuple, at random, has key 0."""

    def batches(rows: int) -> Iterator[pa.RecordBatch]:
        rng = np.random.default_rng([SEED, stream])
        for batch in source.batches(rows):
            key = np.where(rng.random(batch.num_rows) < 0.5, 0, batch.column("key").to_numpy())
            yield batch.set_column(1, batch.schema.field(1), pa.array(key))

    return StreamSource(source.schema, batches)


def clocked(function: Callable[[T], R], item: T) -> tuple[R, float]:
    """Return a task's result and the CPU seconds of its process."""
    begun = time.process_time()
    result = function(item)
    return result, time.process_time() - begun


class Clocked:
    """An executor that notes what the tasks of each of its stages took."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self.slots, self.threads = executor.slots, executor.threads
        self.seconds: dict[str, list[float]] = {}

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for every item, in order."""
        own = self.seconds.setdefault(function.__name__, [])
        for result, took in self._executor.map(partial(clocked, function), items):
            own.append(took)
            yield result


def measured(folder: Path, executor: Executor, rows: int, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    """Replay and return how the work of counting and replaying spreads over tasks."""
    clock = Clocked(executor)
    slices.SLICE_ROWS = rows
    for kept in folder.glob("cache/*/lane-*/exact-*"):
        kept.unlink()
    report = run_replay(job(folder, WORK, folder / "cache", **options), clock)
    stages = [clock.seconds[name] for name in _STAGES if name in clock.seconds]
    tasks = [took for stage in stages for took in stage]
    longest = sum(max(stage) for stage in stages)
    wall = report.content["seconds"]
    return {
        "tasks": len(tasks),
        "cpu_seconds": sum(tasks),
        "longest": longest,
        "share_of_longest": longest / sum(tasks),
        "speed_up_at_most": sum(tasks) / longest,
        "wall_seconds": wall.get("count", 0.0) + wall["replay"],
        "figures": figures(report),
    }


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--slice-rows", type=int, default=slices.SLICE_ROWS)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path, default=RESULTS / "spark_skew.json")
    args = parser.parse_args()
    executor = SparkExecutor(local_session(args.cores, light=True))
    kinds: dict[str, tuple[int, dict[str, Any]]] = {
        "exact, a task a lane": (_WHOLE, {"memory": None}),
        "exact, slices of time": (args.slice_rows, {"memory": None}),
        "10 % memory, a task a lane": (_WHOLE, {"memory": "10%"}),
        "10 % memory, counted in slices": (args.slice_rows, {"memory": "10%"}),
    }
    with tempfile.TemporaryDirectory(prefix="skew-", dir=args.place) as name:
        folder = Path(name)
        spec = ZipfSpec(
            rows=args.rows, domain=WORK.domain, importance=ImportanceModel("rare-high"), seed=SEED
        )
        left, right = (skewed(source, i) for i, source in enumerate(zipf_sources(spec)))
        write_streams(folder, {"left": left, "right": right})
        rows = []
        for _ in range(2):  # the first loads what is compiled
            rows = [
                {"kind": kind, **measured(folder, executor, rows_a_slice, lanes=args.lanes, **own)}
                for kind, (rows_a_slice, own) in kinds.items()
            ]
    found = [row.pop("figures") for row in rows]
    if found[0] != found[1] or found[2] != found[3] or found[0]["exact"] != found[2]["exact"]:
        sys.exit("slices of time give other figures")
    for row in rows:
        print(
            f"{row['kind']:32} {row['tasks']:4} tasks, CPU {row['cpu_seconds']:7.2f} s, longest "
            f"{row['longest']:6.2f} s = {row['share_of_longest']:.0%}: at most "
            f"{row['speed_up_at_most']:.1f} x by more cores"
        )
    described = about(rows=args.rows, lanes=args.lanes, window=WORK.window, cores_used=args.cores)
    exact, kept = found[2]["exact"], found[2]["result"]
    write(args.json, {"about": described, "exact": exact, "kept": kept, "rows": rows})


if __name__ == "__main__":
    main()
