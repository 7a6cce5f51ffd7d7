"""Stages of a job: their times and progress, and a count of the rows replayed here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from engine.runtime.executors import Executor

Progress = Callable[[str, int, int], None]


def silent(stage: str, done: int, total: int) -> None:
    """Report no progress."""
    del stage, done, total


@dataclass
class Stages:
    """Seconds spent in each stage, and the callback for progress."""

    progress: Progress = silent
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        """Count the time of the block under `name`."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - begun
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def mapped(
        self, executor: Executor, name: str, function: Callable[[Any], Any], tasks: list[Any]
    ) -> list[Any]:
        """Run the tasks of a stage and report progress."""
        results = []
        with self.timed(name):
            self.progress(name, 0, len(tasks))
            for result in executor.map(function, tasks):
                results.append(result)
                self.progress(name, len(results), len(tasks))
        return results


_LOCK = threading.Lock()
_LISTENERS: list[Callable[[int], None]] = []


def rows_done(rows: int) -> None:
    """Report replayed rows to the listeners of this process."""
    with _LOCK:
        for listener in _LISTENERS:
            listener(rows)


@contextmanager
def listening(tell: Callable[[int], None]) -> Iterator[None]:
    """Call ``tell(rows so far)`` as lanes are replayed in this process."""
    total = 0

    def add(rows: int) -> None:
        nonlocal total
        total += rows
        tell(total)

    _LISTENERS.append(add)
    try:
        yield
    finally:
        _LISTENERS.remove(add)
