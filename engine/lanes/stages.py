"""Stages of a preparation: how work is cut into tasks, run and told of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from engine.runtime.executors import Executor

SPLIT_ROWS = 1_000_000
_LANES_A_TASK = 512
T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[str, int, int], None]


class Stages:
    """Runs the tasks of a stage and tells how far it is."""

    def __init__(self, executor: Executor, progress: Progress) -> None:
        self._executor = executor
        self._progress = progress

    def run(self, stage: str, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """Yield the results of the tasks, in order."""
        if not tasks:
            return
        self._progress(stage, 0, len(tasks))
        for done, result in enumerate(self._executor.map(function, tasks), 1):
            self._progress(stage, done, len(tasks))
            yield result

    def single(self, stage: str, work: Callable[[], R]) -> R:
        """Return what a stage that is no tasks comes to."""
        self._progress(stage, 0, 1)
        found = work()
        self._progress(stage, 1, 1)
        return found


def row_group_runs(sizes: Sequence[int], rows: int) -> Iterator[tuple[int, ...]]:
    """Yield runs of neighbouring row groups of about `rows` rows."""
    chosen: list[int] = []
    total = 0
    for i, size in enumerate(sizes):
        if chosen and total + size > rows:
            yield tuple(chosen)
            chosen, total = [], 0
        chosen.append(i)
        total += size
    if chosen:
        yield tuple(chosen)


def lane_ranges(rows: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Yield the lanes that have rows, as many a task as together have about a split's rows."""
    chosen: list[int] = []
    total = 0
    for lane, size in enumerate(rows):
        if not size:
            continue
        if chosen and (total + size > SPLIT_ROWS or len(chosen) == _LANES_A_TASK):
            yield tuple(chosen)
            chosen, total = [], 0
        chosen.append(lane)
        total += int(size)
    if chosen:
        yield tuple(chosen)
