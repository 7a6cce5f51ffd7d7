"""Shared parts of the scale benchmarks: generated archives, and resource use of processes.

Streams are those of W1 in `benchmarks/peers` at any requested length: one tuple an instant
on each side, keys Zipf(1.0) on the left and uniform on the right over 100,000, windows of 100,000
ticks; or, `dense`, P1's online set-up: 1,000 keys and windows of 10,000 ticks, ten times as many
outputs a tuple. Rates and windows do not depend on the length, so neither does the cost of a tuple
or the memory of a worker.

    python benchmarks/scale.py [--rows N] [--out FOLDER]

writes such an archive (to a temporary folder by default) and prints the speed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from engine.archives.roles import Roles
from engine.generate import ImportanceModel, ZipfSpec, write_streams, zipf_sources
from engine.options.budget import parse_amounts
from engine.options.replay import JobOptions
from engine.report.envelope import Report

RESULTS = Path(__file__).resolve().parent / "results"
SEED = 1
_TICK = os.sysconf("SC_CLK_TCK")
_EVERY = 0.2
"""Seconds between two looks at the processes."""


class Workload(NamedTuple):
    """Keys and windows of streams with one tuple an instant on each side.

    Attributes
    ----------
    name : str
    domain, window : int
        Number of join attributes; W in ticks, closed.
    """

    name: str
    domain: int
    window: int


WORKLOADS = {
    "sparse": Workload("sparse", 100_000, 99_999),
    "dense": Workload("dense", 1_000, 9_999),
}


def write_archive(folder: Path, rows: int, work: Workload) -> int:
    """Write ``left.parquet`` and ``right.parquet`` of so many rows each; return their bytes.

    A batch of 65,536 rows is in memory at a time.
    """
    spec = ZipfSpec(
        rows=rows, domain=work.domain, importance=ImportanceModel("rare-high"), seed=SEED
    )
    left, right = zipf_sources(spec)
    written = write_streams(folder, {"left": left, "right": right})
    return sum(path.stat().st_size for path in written)


def job(folder: Path, work: Workload, cache: Path, **options: Any) -> JobOptions:  # noqa: ANN401
    """Return the replay of an archive; `options` are those of `JobOptions`, memory as text."""
    roles = Roles(on=("key",), time="ts", importance="importance")
    memory = parse_amounts(options.pop("memory", None), None, None)
    return JobOptions(
        left=str(folder / "left.parquet"),
        right=str(folder / "right.parquet"),
        left_roles=roles,
        right_roles=roles,
        window_left=str(work.window),
        window_right=str(work.window),
        memory=memory,
        cache=cache,
        **{"policy": "dgl"} | options,
    )


def figures(report: Report) -> dict[str, Any]:
    """Return what a report says but for what differs from run to run."""
    own = ("seconds", "tuples_per_second", "out")
    return {name: value for name, value in report.content.items() if name not in own}


class Process(NamedTuple):
    """What /proc says of a process: memory in MiB and CPU seconds, all since it began."""

    parent: int
    name: str
    resident: float
    anonymous: float
    mapped: float
    cpu: float


def processes() -> dict[int, Process]:
    """Return this process and those that it or its children started, by number."""
    stats = {}
    for folder in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended
            if folder.name.isdigit():
                stats[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
    mine = {os.getpid()}
    while more := {pid for pid, stat in stats.items() if int(stat[1]) in mine} - mine:
        mine |= more
    found = {}
    for pid in mine & stats.keys():
        with suppress(OSError, KeyError):  # it has ended
            found[pid] = _process(pid, stats[pid])
    return found


def _process(pid: int, stat: list[str]) -> Process:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    fields = {name: rest.split() for name, _, rest in (line.partition(":") for line in lines)}
    memory = [int(fields[name][0]) / 1024 for name in ("VmRSS", "RssAnon", "RssFile")]
    cpu = (int(stat[11]) + int(stat[12])) / _TICK
    return Process(int(stat[1]), fields["Name"][0], *memory, cpu)


def role(pid: int, found: dict[int, Process]) -> str:
    """Return what a process of a Spark application does: driver, jvm, daemon or worker."""
    one = found[pid]
    if pid == os.getpid():
        return "driver"
    if one.name == "java":
        return "jvm"
    above = found.get(one.parent)
    return "daemon" if above is not None and above.name == "java" else "worker"


class Watched:
    """Greatest memory of the processes of a role, and what CPU they and all spent.

    Attributes
    ----------
    peaks : dict
        By role: resident, anonymous and mapped MiB of the greatest process; how many there were.
    """

    def __init__(self) -> None:
        self._peaks: dict[str, dict[int, tuple[float, float, float]]] = {}
        self._before = {pid: one.cpu for pid, one in processes().items()}
        self._last: dict[int, float] = {}

    def look(self) -> None:
        """Note what there is now."""
        found = processes()
        for pid, one in found.items():
            own = self._peaks.setdefault(role(pid, found), {})
            now = one.resident, one.anonymous, one.mapped
            before = own.get(pid, (0.0, 0.0, 0.0))
            own[pid] = max(before[0], now[0]), max(before[1], now[1]), max(before[2], now[2])
            self._last[pid] = one.cpu

    @property
    def cpu(self) -> float:
        """CPU seconds of all processes up to the last look, also of those that have ended."""
        return sum(spent - self._before.get(pid, 0.0) for pid, spent in self._last.items())

    @property
    def peaks(self) -> dict[str, Any]:
        """See the class."""
        return {
            name: {
                "processes": len(own),
                "resident_mib": round(max(one[0] for one in own.values()), 1),
                "anonymous_mib": round(max(one[1] for one in own.values()), 1),
                "mapped_mib": round(max(one[2] for one in own.values()), 1),
            }
            for name, own in sorted(self._peaks.items())
        }


@contextmanager
def watched() -> Iterator[Watched]:
    """Look at this process and its children again and again while the block runs."""
    found, ended = Watched(), threading.Event()

    def watch() -> None:
        while not ended.wait(_EVERY):
            found.look()

    thread = threading.Thread(target=watch, daemon=True)
    found.look()
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()
        found.look()


class Spent(NamedTuple):
    """Wall and CPU seconds, the latter of all processes of the application."""

    wall: float
    cpu: float


def timed(run: Callable[[], Any]) -> tuple[Any, Spent]:
    """Return what `run` returns, and what it took here and in the processes of Spark."""
    with watched() as seen:
        begun = time.perf_counter()
        result = run()
        wall = time.perf_counter() - begun
    return result, Spent(wall, seen.cpu)


def settle(session: Any) -> None:  # noqa: ANN401 - pyspark has no types here
    """Write out what earlier runs left to be written, and collect what they left in the JVM.

    Else a run pays for what the one before it left behind.
    """
    session.sparkContext._jvm.System.gc()  # noqa: SLF001 - there is no other way to it
    os.sync()


def median(spent: Sequence[Spent]) -> Spent:
    """Return the median of both."""
    middle = len(spent) // 2
    walls, cpus = sorted(one.wall for one in spent), sorted(one.cpu for one in spent)
    return Spent(walls[middle], cpus[middle])


def local_session(cores: int, *, light: bool = False) -> Any:  # noqa: ANN401 - pyspark has no types here
    """Return a Spark session on so many cores of this machine, unless the environment says else."""
    from spark_plugin.session import get_session  # noqa: PLC0415 - heavy, and not for generating

    arguments = f"--master local[{cores}] --driver-memory 1g pyspark-shell"
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", arguments)
    return get_session("winnow benchmark", light=light)


def main() -> None:
    """Write an archive and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--workload", choices=WORKLOADS, default="sparse")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="winnow-scale-") as place, watched() as seen:
        folder = args.out or Path(place) / "archive"
        size, spent = timed(lambda: write_archive(folder, args.rows, WORKLOADS[args.workload]))
    print(
        f"{args.rows:,} + {args.rows:,} tuples, {size / 1e6:,.1f} MB in {spent.wall:.1f} s, "
        f"peak {seen.peaks['driver']['resident_mib']:.0f} MiB"
    )


if __name__ == "__main__":
    main()
