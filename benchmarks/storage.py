"""What archives in an object store cost beside files: CPU, bytes and requests of a replay.

    python benchmarks/storage.py [--rows 4000000] [--repeats 3] [--json FILE]

Needs moto (``make extras``), whose server runs aside, so that its CPU does not count. Two archives
of five columns, three of which a replay reads, are prepared anew and replayed, each time with lanes
of their own; without moto nothing is measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from reproduce.record import about
from reproduce.record import write as save
from scale import RESULTS

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
from storage_cases import Store, put, served, write

import winnow

GROUP = 200_000
"""Rows of a row group."""
MOST_CPU, MOST_BYTES = 1.3, 1.1


def spent(run: Callable[[], object]) -> float:
    """Return the CPU seconds of this process that a call takes."""
    begun = time.process_time()
    run()
    return time.process_time() - begun


def needed(folder: Path) -> int:
    """Return the bytes of the columns that are read."""
    footers = [pq.read_metadata(path) for path in folder.rglob("*.parquet")]
    groups = [footer.row_group(i) for footer in footers for i in range(footer.num_row_groups)]
    columns = [group.column(i) for group in groups for i in range(group.num_columns)]
    return sum(c.total_compressed_size for c in columns if c.path_in_schema in ("t", "k", "i"))


def measured(store: Store, folder: Path, repeats: int) -> dict[str, object]:
    """Print and return what both places cost, and whether that is as little as it is to be."""
    places = {"file": str(folder), "S3": put(store, folder, "large")}
    options = {"on": "k", "time": "t", "importance": "i", "window": 50, "columns": "ids"}

    def replay(place: str) -> None:
        with tempfile.TemporaryDirectory() as cache:
            winnow.replay(
                f"{place}/left", f"{place}/right", **options, memory=20, policy="prob",
                cache=cache, storage_option=store.options, count_only=True,
            )  # fmt: skip

    replay(places["file"])  # compiles
    store.fetched()
    cpu: dict[str, list[float]] = {name: [] for name in places}
    for _ in range(repeats):
        for name, place in places.items():
            cpu[name].append(spent(lambda place=place: replay(place)))
    taken = {name: statistics.median(own) for name, own in cpu.items()}
    share = store.fetched() / repeats / needed(folder)
    ratio = taken["S3"] / taken["file"]
    for name, own in cpu.items():
        print(f"{name:5} CPU {taken[name]:.2f} s ({min(own):.2f} to {max(own):.2f})")
    print(f"CPU {ratio:.2f} times that of files; at most {MOST_CPU}: {ratio <= MOST_CPU}")
    print(f"bytes {share:.3f} times those needed; at most {MOST_BYTES}: {share <= MOST_BYTES}")
    return {"cpu_seconds": cpu, "cpu_times_files": ratio, "bytes_times_needed": share}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path, default=RESULTS / "storage.json")
    asked = parser.parse_args()
    if importlib.util.find_spec("moto") is None:
        print("moto is not installed: make extras")
        return
    with tempfile.TemporaryDirectory() as folder, served() as store:
        written = write(Path(folder), number=asked.rows, parts=2, group=GROUP)
        found = measured(store, written, asked.repeats)
    save(asked.json, {"about": about(rows=asked.rows, repeats=asked.repeats), **found})


if __name__ == "__main__":
    main()
