"""A harvested join of many lanes, and of many slices, on Spark: cores, and the workers' memory.

    python benchmarks/multijoin_lanes.py [--tuples 1000000] [--rooms 16] [--json FILE]

Three streams of sensors in rooms, 1,000 readings a second each, bands of one degree in windows of
20 s, at throttle fraction 0.3. Each measurement is a process of its own with a Spark of its own: a
small join first, which starts the workers, then the join by lanes on one core and on two, and
slices of the same length from archives that grow, of 100 readings a second. The rows are checked
equal before times are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from reproduce.record import about
from reproduce.record import write as save
from scale import RESULTS, local_session, watched

from engine.jobs.multijoin.run import run_multijoin
from engine.options.multijoin_given import multijoin_of
from engine.options.multijoin_options import MULTIJOIN
from spark_plugin.executor import SparkExecutor

LAGS = (0, 5_000, 15_000)
"""Ticks of a millisecond that each stream is behind the first."""
ASKED = 1.8
"""Times one core's speed that two cores are to have."""
GROWTH = (1, 4, 16)
SLICE = 50_000
"""Tuples of a stream in a slice."""
JOIN = {
    "predicate": "band:v:1", "time": "t", "window": 20_000, "throttle": 0.3, "columns": "ids",
    "basic_window": 2_000, "adapt_every": 5_000, "per_second": 1000.0, "reference": "none",
}  # fmt: skip


def write(folder: Path, tuples: int, rooms: int, each: int = 1) -> None:
    """Write three streams whose values drift in the same way, each some time behind.

    A stream has a tuple every so many ticks, on average.
    """
    folder.mkdir(parents=True)
    rng = np.random.default_rng(7)
    for at, lag in enumerate(LAGS):
        ts = np.sort(rng.integers(0, each * tuples, tuples))
        drift = 20.0 * (ts - lag) / 1000.0
        value = (drift + 2.0 * rng.standard_normal(tuples)) % 1000.0
        table = pa.table({"t": ts, "v": value, "room": rng.integers(0, rooms, tuples)})
        pq.write_table(table, folder / f"s{at}.parquet", row_group_size=100_000)


def joined(folder: Path, out: Path | None, executor: SparkExecutor, **parts: Any) -> Any:  # noqa: ANN401
    """Join the archives of a folder; return the report."""
    sources = {f"s{at}": str(folder / f"s{at}.parquet") for at, _ in enumerate(LAGS)}
    options = multijoin_of(sources, MULTIJOIN.from_keywords({**JOIN, **parts, "out": out}))
    return run_multijoin(options, executor).content


def measured(folder: Path, cores: int, out: Path | None, parts: dict[str, Any]) -> dict[str, Any]:
    """Return what one join takes on so many cores, and what the workers held."""
    os.sched_setaffinity(0, range(cores))
    executor = SparkExecutor(local_session(cores, light=True))
    with tempfile.TemporaryDirectory() as place:
        write(Path(place) / "small", 2_000 * cores, 4)
        joined(Path(place) / "small", None, executor, **parts)
    with watched() as seen:
        begun = time.perf_counter()
        report = joined(folder, out, executor, **parts)
        wall = time.perf_counter() - begun
    return {
        "wall_seconds": wall,
        "cpu_seconds": seen.cpu,
        "tasks": report["slices"],
        "outputs": report["result"]["outputs"],
        "comparisons": report["harvest"]["comparisons"],
        "stages": report["seconds"],
        "processes": seen.peaks,
    }


def alone(folder: Path, cores: int, out: Path | None, **parts: Any) -> dict[str, Any]:  # noqa: ANN401
    """Measure one join in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        answer = Path(place) / "answer.json"
        words = [sys.executable, __file__, "--answer", answer, "--folder", folder]
        words += ["--cores", cores, "--parts", json.dumps(parts)]
        words += [] if out is None else ["--out", out]
        subprocess.run([str(word) for word in words], check=True)  # noqa: S603 - this script
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def rows_of(out: Path) -> pa.Table:
    """Return a join's outputs, in order."""
    table = pq.read_table(out)
    return table.sort_by([(name, "ascending") for name in table.column_names])


def main() -> None:
    """Measure lanes on one core and on two, and slices of growing archives."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--tuples", type=int, default=1_000_000, help="of a stream")
    parser.add_argument("--rooms", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS / "multijoin_lanes.json")
    for hidden in ("--answer", "--folder", "--out"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--cores", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--parts", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.answer is not None:
        found = measured(args.folder, args.cores, args.out, json.loads(args.parts))
        args.answer.write_text(json.dumps(found))
        return
    with tempfile.TemporaryDirectory(prefix="lanes-") as name:
        place = Path(name)
        write(place / "streams", args.tuples, args.rooms)
        lanes: dict[int, list[dict[str, Any]]] = {1: [], 2: []}
        for run in range(args.repeats):
            outs = {cores: place / f"out{run}-{cores}" for cores in lanes}
            for cores, out in outs.items():
                lanes[cores].append(alone(place / "streams", cores, out, partition_by="room"))
            if not rows_of(outs[1]).equals(rows_of(outs[2])):
                raise AssertionError("one core and two give other rows")
            for out in outs.values():
                shutil.rmtree(out)
        print(f"{lanes[1][0]['outputs']:,} outputs, equal on both")
        wall = {}
        for cores, runs in lanes.items():
            wall[cores] = statistics.median(own["wall_seconds"] for own in runs)
            spent = statistics.median(own["cpu_seconds"] for own in runs)
            print(f"{cores} core(s): {wall[cores]:.1f} s, CPU {spent:.1f} s (medians)")
        faster = wall[1] / wall[2]
        print(f"{faster:.2f} times as fast; at least {ASKED}: {faster >= ASKED}")
        slices = []
        for grown in GROWTH:
            tuples = grown * args.tuples // 4
            write(place / f"grown{grown}", tuples, args.rooms, 10)
            found = alone(place / f"grown{grown}", 2, None, slices=max(2, tuples // SLICE))
            slices.append({"tuples": tuples, **found})
            worker = found["processes"]["worker"]
            print(
                f"{tuples:,} tuples a stream in {found['tasks']} slices: "
                f"{found['wall_seconds']:.1f} s, a worker {worker['resident_mib']:.0f} MiB at most"
            )
    facts = about(tuples=args.tuples, rooms=args.rooms)
    save(args.json, {"about": facts, "lanes": lanes, "times": faster, "slices": slices})


if __name__ == "__main__":
    main()
