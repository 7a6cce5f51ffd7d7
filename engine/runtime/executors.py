"""Where tasks run: the same pure functions over small descriptions, here or in Spark."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Executor(Protocol):
    """Anything that applies a module-level function to picklable items.

    Results come in the order of the items, whatever the order in which they were computed. The
    first exception, in that order, is raised as it is. Items that know how many tuples they go
    through tell it as ``rows``.

    Attributes
    ----------
    slots : int
        Tasks that run at once elsewhere, each in memory and on a core of its own; 0 where tasks run
        in this process and had better share what they read.
    threads : int
        Cores that tasks in this process have together.
    """

    @property
    def slots(self) -> int:
        """Tasks that run at once elsewhere; 0: here."""
        ...

    @property
    def threads(self) -> int:
        """Cores that tasks here have together."""
        ...

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for every item, in order."""
        ...


class SerialExecutor:
    """Runs one task after the other, in this thread.

    Examples
    --------
    >>> list(SerialExecutor().map(abs, [-1, 2]))
    [1, 2]
    """

    slots, threads = 0, 1

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for every item, in order."""
        for item in items:
            yield function(item)


class ThreadExecutor:
    """Runs tasks on threads of this process: pyarrow and the kernels release the GIL.

    Parameters
    ----------
    threads : int, optional
        How many run at once; by default as many as there are cores for this process. Tasks are
        taken from `items` as threads fall free, so that results waiting to be taken stay few.

    Examples
    --------
    >>> list(ThreadExecutor(2).map(abs, [-1, 2]))
    [1, 2]
    """

    slots = 0

    def __init__(self, threads: int | None = None) -> None:
        self.threads = max(1, threads or len(os.sched_getaffinity(0)))

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for every item, in order."""
        waiting: deque[Future[R]] = deque()
        with ThreadPoolExecutor(self.threads) as pool:
            try:
                for item in items:
                    waiting.append(pool.submit(function, item))
                    if len(waiting) >= 2 * self.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
