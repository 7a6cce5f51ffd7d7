"""A process for each engine: it holds the streams in the engine's form and runs what it is told."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from scale import processes

from peers.workloads import Workload

ENGINES = {
    "winnow": ("winnow_joins", "queries"),
    "DuckDB": ("duckdb_sql", "queries"),
    "Polars": ("polars_frames", "queries"),
    "pandas": ("pandas_frames", "queries"),
    "Spark SQL": ("spark_joins", "sql"),
    "Spark streams": ("spark_joins", "streams"),
    "winnow within less": ("winnow_joins", "shares"),
}
"""Where the queries of each are; the last is no exact join."""
APPROXIMATE = "winnow within less"


class Run(NamedTuple):
    """What a query answered, and what it took."""

    outputs: int
    value: float
    """Sum of the outputs' importance, or of left + 3 * right rows of pairs."""
    seconds: float
    cpu: float
    """CPU seconds of the engine's processes."""
    mib: float
    """Most resident memory of the engine's processes together, its streams included."""


class StoppedError(RuntimeError):
    """A query took longer than it was given."""


class Engine:
    """A process that has an engine's form of a workload."""

    def __init__(self, name: str, work: Workload, threads: int, what: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.name = name
        self._here, there = context.Pipe()
        own = {"POLARS_MAX_THREADS": str(threads), "NUMBA_NUM_THREADS": str(threads)}
        kept = {key: os.environ.get(key) for key in own}
        os.environ.update(own)
        try:
            self._process = context.Process(target=_serve, args=(there, name, work, threads, what))
            self._process.start()
        finally:
            for key, value in kept.items():
                os.environ.pop(key) if value is None else os.environ.update({key: value})
        there.close()
        self.queries: list[str] = self._answer()

    def run(self, query: str, limit: float | None = None) -> Run:
        """Run a query.

        Raises
        ------
        StoppedError
            After `limit` seconds; the process has ended, too.
        RuntimeError
            What the engine said, where it failed.
        """
        self._here.send(query)
        if not self._here.poll(limit):
            self._process.kill()
            self._process.join()
            raise StoppedError(f"{self.name}, {query}: stopped after {limit:g} s")
        return Run(*self._answer())

    def end(self) -> None:
        """End the process."""
        if self._process.is_alive():
            self._here.send(None)
            self._process.join()

    def _answer(self) -> Any:  # noqa: ANN401 - a list of names, or a run
        try:
            done, found = self._here.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"{self.name} ended with {self._process.exitcode}") from None
        if not done:
            raise RuntimeError(f"{self.name}: {found}")
        return found


def _serve(pipe: Connection, name: str, work: Workload, threads: int, what: str) -> None:
    module, function = ENGINES[name]
    try:
        made = getattr(import_module(f"peers.{module}"), function)
        queries: dict[str, Callable[[], tuple[int, float]]] = made(work, threads, what)
        pipe.send((True, list(queries)))
    except Exception as error:  # noqa: BLE001 - whatever it is, the other process tells it
        pipe.send((False, f"{type(error).__name__}: {error}"))
        return
    while (query := pipe.recv()) is not None:
        try:
            pipe.send((True, tuple(measured(queries[query]))))
        except Exception as error:  # noqa: BLE001 - as above
            pipe.send((False, f"{type(error).__name__}: {error}"))


def measured(run: Callable[[], tuple[int, float]]) -> Run:
    """Run a query here and measure it."""
    before = processes()
    for pid in before:
        with suppress(OSError):  # it has ended
            Path(f"/proc/{pid}/clear_refs").write_text("5")  # peaks begin anew
    begun, worked = time.perf_counter(), time.process_time()
    outputs, value = run()
    seconds, cpu = time.perf_counter() - begun, time.process_time() - worked
    after = processes()
    for pid, one in after.items():  # its own time is known by less than a hundredth of a second
        if pid != os.getpid():
            cpu += one.cpu - (before[pid].cpu if pid in before else 0.0)
    return Run(outputs, value, seconds, cpu, sum(map(_peak, after)))


def _peak(pid: int) -> float:
    """Return the most resident MiB of a process since its peak began anew."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return 0.0
