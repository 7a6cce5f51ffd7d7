"""A join of 1 TB on 100 executors, on paper: measured tasks, scheduled; the driver's part, built.

    python benchmarks/cluster_plan.py [--rows 4000000] [--json FILE]

1. A replay on this machine times the tasks of every stage, by CPU time and tuples.
2. What the driver holds at 1 TB is built at its size: a listing of files, what splits have found,
   the manifest of lanes, the tasks as they are sent, their results, and the manifest of outputs in
   an object store.
3. Each stage's tasks, of lanes with uniform, Zipf(1.0) and Zipf(1.2) keys and with one key that has
   half of all tuples, are given to slots as those fall free, the largest first as winnow orders
   them; one in a hundred takes three times as long. A stage waits for its last task.

It is a model: networks and disks are as fast as the CPU needs them to be, but for the latency of an
object store, which is assumed to be that given by ``--latency``.
"""

from __future__ import annotations

import argparse
import heapq
import json
import pickle
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark import cloudpickle
from reproduce.record import about, write
from scale import RESULTS, WORKLOADS, job, write_archive
from spark_skew import Clocked

from engine.archives.source import open_archive
from engine.jobs.replay.run import run_replay
from engine.lanes.manifest import Prepared
from engine.lanes.split import SplitResult, rows_a_split
from engine.lanes.splits import Splits
from engine.runtime.executors import SerialExecutor

TERABYTE = 10**12
PEAK_SLICES = 300
"""Of time: about as many as the largest lane has blocks."""
EXECUTORS, CORES = (10, 100, 400), 4
LANES, FILES, PARTS = 1_600, 10_000, 10_000
DOMAIN = 100_000
STRAGGLERS, SLOWER = 0.01, 3.0
AT_ONCE = 16
"""Requests of the driver to a store at once."""
STAGES = {
    "split": "split", "write_lanes": "merge", "stats_of_lane": "profile", "joint_peaks": "peaks",
    "replay_lane": "replay",
}  # fmt: skip


class Elsewhere(SerialExecutor):
    """Tasks as a cluster's, one after the other."""

    slots = 1


class Keeping(Clocked):
    """An executor that also keeps what its tasks are given and return."""

    prepared: Prepared

    def __init__(self) -> None:
        super().__init__(Elsewhere())
        self.items: dict[str, list[Any]] = {}
        self.results: dict[str, list[Any]] = {}

    def map(self, function: Any, items: Any) -> Any:  # noqa: ANN401 - as `Clocked`
        """Yield ``function(item)`` for every item, in order."""
        given = list(items)
        self.items.setdefault(function.__name__, []).extend(given)
        for result in super().map(function, given):
            self.results.setdefault(function.__name__, []).append(result)
            yield result


def task_costs(rows: int) -> tuple[dict[str, Any], Keeping]:
    """Return the CPU time a tuple of each stage, the bytes a tuple, and what the tasks were."""
    work = WORKLOADS["sparse"]
    with tempfile.TemporaryDirectory(prefix="plan-") as name:
        folder = Path(name)
        size = write_archive(folder, rows, work)
        for again in range(2):  # the first loads what is compiled
            clock = Keeping()
            options = job(folder, work, folder / f"cache-{again}", memory="10%", lanes=8)
            report = run_replay(replace(options, out=folder / f"out-{again}"), clock)
        (place,) = (folder / "cache-1").iterdir()
        clock.prepared = Prepared.load(place)
        lanes = sum(f.stat().st_size for f in (folder / "cache-1").rglob("*") if f.is_file())
        out = sum(f.stat().st_size for f in (folder / "out-1").glob("*.parquet"))
    found = {STAGES[name]: sum(own) / (2 * rows) for name, own in clock.seconds.items()
             if name in STAGES}  # fmt: skip
    costs = {
        "cpu_ns_a_tuple": {name: own * 1e9 for name, own in found.items()},
        "archive_bytes_a_tuple": size / (2 * rows),
        "lane_bytes_a_tuple": lanes / (2 * rows),
        "output_bytes_a_tuple": out / (2 * rows),
        "outputs_a_tuple": report.content["result"]["outputs"] / (2 * rows),
        "report": report.content["seconds"],
    }
    return costs, clock


def built(make: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return what is made, with the seconds and the most bytes that it took."""
    begun = time.perf_counter()
    found = make()
    seconds = time.perf_counter() - begun
    tracemalloc.start()
    make()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found, {"seconds": seconds, "bytes": float(most)}


def of_driver(clock: Keeping, tuples: int, latency: float) -> dict[str, dict[str, float]]:
    """Return what the driver holds and does at 1 TB, by what it is."""
    found = {}
    with tempfile.TemporaryDirectory(prefix="plan-") as name:
        folder = Path(name)
        (folder / "left").mkdir()
        pq.write_table(pa.table({"ts": [1], "key": [2]}), folder / "one")
        content = (folder / "one").read_bytes()
        for i in range(FILES):
            (folder / "left" / f"part-{i:05d}.parquet").write_bytes(content)
        _, found[f"archive of {FILES:,} files, opened"] = built(
            lambda: open_archive(str(folder / "left"), "left")
        )
        splits = -(-tuples // rows_a_split(tuples))
        results, found[f"results of {splits:,} splits, {LANES:,} lanes"] = built(
            lambda: split_results(clock.results["split"][0][0], splits)
        )
        sent = pickle.dumps(results[:100])
        found[f"results of {splits:,} splits, {LANES:,} lanes"]["sent"] = len(sent) * splits / 100
        _, found["rows of lanes, of these"] = built(lambda: Splits(results, LANES, False).rows)
        prepared = lanes_prepared(clock.prepared)
        manifest, held = folder / "manifest.json", f"manifest of {len(prepared.lanes):,} lanes"
        _, found[held] = built(lambda: manifest.write_text(prepared.content()))
        found[held]["sent"] = manifest.stat().st_size
    task = clock.items["replay_lane"][0]
    tasks = [replace(task, files=replace(task.files, lane=i)) for i in range(PARTS)]
    written, found[f"{PARTS:,} replay tasks"] = built(lambda: cloudpickle.dumps((built, tasks)))
    found[f"{PARTS:,} replay tasks"]["sent"] = len(written)
    result = pickle.dumps(clock.results["replay_lane"][0])
    read, found[f"{PARTS:,} replay results"] = built(
        lambda: [pickle.loads(result) for _ in range(PARTS)]  # noqa: S301 - of this process
    )
    found[f"{len(read):,} replay results"]["sent"] = len(result) * PARTS
    entry = {"path": "part-00000.parquet", "object": f"run-{32 * '0'}/part-00000.00000000.parquet",
             "rows": 10**6, "bytes": 10**8, "etag": 34 * "0"}  # fmt: skip
    text, own = built(lambda: json.dumps({"files": [entry] * PARTS}, indent=1))
    own |= {"sent": len(text), "seconds": own["seconds"] + 2 * PARTS * latency / AT_ONCE}
    found[f"manifest of {PARTS:,} parts in a store"] = own
    listed = {"seconds": (FILES / 1_000 + 3 * FILES / AT_ONCE) * latency, "bytes": 0.0}
    found[f"requests for {FILES:,} objects and their footers"] = listed
    return found


def split_results(one: SplitResult, number: int) -> tuple[SplitResult, ...]:
    """Return what so many splits find."""
    return tuple(
        replace(one, runs=(replace(one.runs[0], lane_rows=np.full(LANES, i)),))
        for i in range(number)
    )


def lanes_prepared(one: Prepared) -> Prepared:
    """Return lanes like those of a folder, but more of them."""
    return replace(one, lanes=tuple(replace(one.lanes[0], number=i) for i in range(PARTS)))


def shares(kind: str) -> NDArray[np.float64]:
    """Return the part of all tuples that each lane has."""
    ranks = np.arange(1.0, DOMAIN + 1)
    weight = {"uniform": ranks**0, "Zipf(1.0)": ranks**-1, "Zipf(1.2)": ranks**-1.2}.get(kind)
    if weight is None:  # one key has half of both sides
        weight = np.full(DOMAIN, 0.5 / (DOMAIN - 1))
        weight[0] = 0.5
    even = weight if kind == "one key half" else np.full(DOMAIN, 1.0)
    both = (weight / weight.sum() + even / even.sum()) / 2
    lane = np.random.default_rng(0).integers(0, LANES, DOMAIN)
    return np.bincount(lane, both, LANES)


def makespan(seconds: NDArray[np.float64], slots: int) -> float:
    """Return when the last task ends, of tasks that are given out the longest first."""
    rng = np.random.default_rng(1)
    slow = np.where(rng.random(seconds.size) < STRAGGLERS, SLOWER, 1.0)
    free = [0.0] * slots
    for took in (seconds * slow)[np.argsort(-seconds)]:
        heapq.heapreplace(free, free[0] + took)
    return max(free)


def schedule(tuples: int, cost: dict[str, float], kind: str, slots: int) -> dict[str, float]:
    """Return the seconds of every stage, and the longest task of the replay."""
    lanes = shares(kind) * tuples
    splits = -(-tuples // rows_a_split(tuples))
    work = dict.fromkeys(cost, lanes)
    work["split"], work["peaks"] = (
        np.full(number, tuples / number) for number in (splits, PEAK_SLICES)
    )
    found = {name: makespan(work[name] * cost[name] / 1e9, slots) for name in cost}
    longest = float(lanes.max() * cost["replay"] / 1e9)
    ideal = sum(cost.values()) * tuples / 1e9 / slots
    return found | {"all": sum(found.values()), "longest replay": longest, "ideal": ideal}


def main() -> None:
    """Measure, build, schedule, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--latency", type=float, default=0.03)
    parser.add_argument("--json", type=Path, default=RESULTS / "cluster_plan.json")
    args = parser.parse_args()
    costs, clock = task_costs(args.rows)
    tuples = int(TERABYTE / costs["archive_bytes_a_tuple"])
    print(f"{tuples:,} tuples; CPU ns a tuple: {costs['cpu_ns_a_tuple']}")
    driver = of_driver(clock, tuples, args.latency)
    for name, own in driver.items():
        sent = f", {own['sent'] / 1e6:,.1f} MB sent or written" if "sent" in own else ""
        print(f"{name:45} {own['seconds']:8.2f} s {own['bytes'] / 1e6:9,.1f} MB{sent}")
    plans = []
    for kind in ("uniform", "Zipf(1.0)", "Zipf(1.2)", "one key half"):
        for executors in EXECUTORS:
            own = schedule(tuples, costs["cpu_ns_a_tuple"], kind, executors * CORES)
            plans.append({"keys": kind, "executors": executors, **own})
            told = ", ".join(f"{name} {value:,.0f}" for name, value in own.items())
            print(f"{kind:13} {executors:4} executors: {told} s")
    described = about(rows=args.rows, lanes=LANES, latency=args.latency, tuples=tuples)
    write(args.json, {"about": described, "tasks": costs, "driver": driver, "plans": plans})


if __name__ == "__main__":
    main()
