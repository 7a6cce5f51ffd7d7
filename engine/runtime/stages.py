"""Stages of a job: their times and progress, and a count of the rows replayed here."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

from engine.runtime.executors import Executor

Progress = Callable[[str, int, int], None]
T = TypeVar("T")
R = TypeVar("R")


def silent(stage: str, done: int, total: int) -> None:
    """Report no progress."""
    del stage, done, total


class Stages:
    """Runs the stages of a job: their tasks, the seconds spent in each, and its progress.

    Parameters
    ----------
    executor : Executor
        Runs the tasks.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    seconds : dict of str to float, optional
        By stage, to be added to.
    """

    def __init__(
        self,
        executor: Executor,
        progress: Progress | None = None,
        seconds: dict[str, float] | None = None,
    ) -> None:
        self.executor = executor
        self.progress = progress or silent
        self.seconds = {} if seconds is None else seconds

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
        self,
        name: str,
        function: Callable[[T], R],
        tasks: Sequence[T],
        rows: Sequence[int] | None = None,
    ) -> list[R]:
        """Run the tasks of a stage, report its progress, and return the results in task order.

        Parameters
        ----------
        name : str
            Of the stage.
        function : callable
            Of a task; at the top level of a module.
        tasks : sequence
        rows : sequence of int, optional
            Of each task: the largest run first, so that none is left at the end alone.
        """
        order = list(range(len(tasks)))
        if rows is not None:
            order.sort(key=lambda i: -rows[i])
        results = {}
        with self.timed(name):
            self.progress(name, 0, len(tasks))
            ordered = [tasks[i] for i in order]
            for i, result in zip(order, self.executor.map(function, ordered), strict=True):
                results[i] = result
                self.progress(name, len(results), len(tasks))
        return [results[i] for i in range(len(tasks))]

    @contextmanager
    def counting(self, rows: int) -> Iterator[None]:
        """Report the rows replayed in this process, of so many, as stage "rows"."""
        with listening(lambda done: self.progress("rows", done, max(done, rows))):
            yield


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
