"""Executors: they map pure functions over small task descriptions, here or in Spark."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from threading import Event
from typing import Any, Protocol, TypeVar

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


P = TypeVar("P")
_AHEAD = 2  # chunks a thread may hold back


def _produce(source: Callable[[P], Iterator[T]], part: P, out: Queue[Any], stop: Event) -> None:
    """Put the chunks of a part into `out`, then None or the exception, until `stop`."""
    try:
        for chunk in source(part):
            out.put(chunk)
            if stop.is_set():
                return
    except BaseException as error:  # noqa: BLE001 - raised again where the chunks are consumed
        out.put(error)
    else:
        out.put(None)


def _consume(out: Queue[Any]) -> Iterator[Any]:
    while (item := out.get()) is not None:
        if isinstance(item, BaseException):
            raise item
        yield item


def _drain(queues: deque[Queue[Any]]) -> None:
    """Make room in every queue, so that no thread waits to put."""
    for out in queues:
        while not out.empty():
            out.get()


def ordered_map(
    source: Callable[[P], Iterator[T]], parts: Sequence[P], workers: int
) -> Iterator[T]:
    """Yield the chunks of all parts in order, computed by `workers` threads."""
    stop = Event()
    queues: deque[Queue[Any]] = deque()
    waiting = iter(parts)
    with ThreadPoolExecutor(workers) as pool:
        try:
            while True:
                while len(queues) < workers and (part := next(waiting, None)) is not None:
                    queues.append(Queue(_AHEAD))
                    pool.submit(_produce, source, part, queues[-1], stop)
                if not queues:
                    return
                yield from _consume(queues[0])
                queues.popleft()
        finally:
            stop.set()
            _drain(queues)
