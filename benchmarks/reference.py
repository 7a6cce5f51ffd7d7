"""Cost of counting the exact join during a replay, as windows grow: with and without, in turn.

The sparse streams of `benchmarks/scale.py` within 10 % and 1 % of the memory, in one prepared
lane, with the local engine. A tuple joins one tuple of the other stream within the first window
before it, and proportionally more in longer windows. Every run is a process of its own that has
already run a small replay, so the peak resident memory is that of the run. Results must be equal.

    python benchmarks/reference.py [--rows 2000000] [--repeats 3] [--json FILE]
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from reproduce.record import about, write
from scale import RESULTS, WORKLOADS, Workload, job, write_archive

from engine.jobs.replay.run import run_replay
from engine.options.streams import REFERENCES
from engine.runtime.executors import SerialExecutor

WORK = WORKLOADS["sparse"]
WINDOWS = (99_999, 999_999)
MEMORIES = ("10%", "1%")
_SMALL = 100_000


class Run(NamedTuple):
    """Seconds of replay and count, the process's peak of resident memory in MiB, and the result."""

    seconds: float
    resident: float
    result: dict[str, Any]


def replay(folder: Path, work: Workload, memory: str, reference: str) -> Run:
    """Replay an archive whose lane is prepared; nothing is known of its exact join."""
    cache = folder / "cache"
    for kept in cache.glob("*/lane-*/exact-*"):
        kept.unlink()
    job_options = job(folder, work, cache, memory=memory, lanes=1, reference=reference)
    content = run_replay(job_options, SerialExecutor()).content
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    seconds = content["seconds"]["replay"] + content["seconds"].get("count", 0.0)
    return Run(seconds, resident, content["result"])


def alone(folder: Path, work: Workload, memory: str, reference: str) -> Run:
    """Do the same after a small replay, which loads and compiles."""
    replay(folder / "small", WORK, memory, reference)
    return replay(folder, work, memory, reference)


def apart(*asked: Any) -> Run:  # noqa: ANN401 - the arguments of `alone`
    """Do it in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(alone, *asked).result()


def compared(folder: Path, window: int, memory: str, repeats: int) -> dict[str, Any]:
    """Return the medians with and without the exact join of one window."""
    work = WORK._replace(window=window)
    apart(folder, work, memory, "none")  # what the lane holds is looked at once
    runs: dict[str, list[Run]] = {name: [] for name in REFERENCES}
    for _ in range(repeats):
        for name, own in runs.items():
            own.append(apart(folder, work, memory, name))
    if any(run.result != runs["none"][0].result for own in runs.values() for run in own):
        sys.exit(f"window {window}, memory {memory}: results differ")
    found: dict[str, Any] = {
        name: {
            "seconds": median(run.seconds for run in own),
            "resident_mib": median(run.resident for run in own),
            "runs": [run._asdict() for run in own],
        }
        for name, own in runs.items()
    }
    ratio = found["exact"]["seconds"] / found["none"]["seconds"]
    return {"window": window, "memory": memory, **found, "exact_over_none": ratio}


def main() -> None:
    """Compare, print and write."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--place", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--json", type=Path, default=RESULTS / "reference.json")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="reference-", dir=args.place) as name:
        folder = Path(name)
        write_archive(folder, args.rows, WORK)
        write_archive(folder / "small", _SMALL, WORK)
        for window, memory in product(WINDOWS, MEMORIES):
            row = compared(folder, window, memory, args.repeats)
            rows.append(row)
            figures = (
                f"{name} {row[name]['seconds']:6.2f} s {row[name]['resident_mib']:5.0f} MiB"
                for name in REFERENCES
            )
            print(
                f"W {window:9,} {memory:>4}: {', '.join(figures)}; {row['exact_over_none']:.2f} x",
                flush=True,
            )
    write(args.json, {"about": about(rows=args.rows, workload=WORK._asdict()), "rows": rows})


if __name__ == "__main__":
    main()
