"""Executors, which map pure functions over small task descriptions, and the stages of a job."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from queue import Queue
from threading import Event
from typing import Any, Protocol, TypeVar, runtime_checkable

from engine.runtime.work import Bar, as_here, doing, listening, wanted_until

T = TypeVar("T")
R = TypeVar("R")
Progress = Callable[[str, int, int], None]


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


@runtime_checkable
class ShowsLines(Protocol):
    """An executor whose tasks are shown somewhere, as on Spark's pages."""

    def show(self, line: str, figures: Mapping[str, float]) -> None:
        """Show a line there, and figures by name."""
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

    Where one fails or the user interrupts, the others end as soon as they tell of themselves.

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
        stop = Event()
        with ThreadPoolExecutor(self.threads, "winnow", wanted_until, (stop,)) as pool:
            try:
                for item in items:
                    waiting.append(pool.submit(function, item))
                    if len(waiting) >= 2 * self.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                stop.set()
                for future in waiting:
                    future.cancel()


P = TypeVar("P")
_BUFFERED = 2  # chunks a thread may hold back


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
    with ThreadPoolExecutor(workers, **as_here()) as pool:
        yield from ordered_on(pool, source, parts, workers)


def ahead(source: Callable[[], Iterator[T]]) -> Generator[T]:
    """Yield items that a thread makes while those before are used; one waits at most.

    To be closed, so that the thread ends where not all are taken.
    """
    with ThreadPoolExecutor(1, **as_here()) as pool:
        yield from ordered_on(pool, lambda make: make(), (source,), 1, buffered=1)


def ordered_on(
    pool: ThreadPoolExecutor, source: Callable[[P], Iterator[T]], parts: Iterable[P], ahead: int,
    buffered: int = _BUFFERED,
) -> Iterator[T]:  # fmt: skip
    """Yield the chunks of all parts in order, computed by a pool, so many parts at once.

    A part is taken from `parts` as another has ended, and at most ``ahead - 1`` threads of the pool
    wait for its chunks to be taken then.
    """
    stop = Event()
    queues: deque[Queue[Any]] = deque()
    waiting = iter(parts)
    try:
        while True:
            while len(queues) < ahead and (part := next(waiting, None)) is not None:
                queues.append(Queue(buffered))
                pool.submit(_produce, source, part, queues[-1], stop)
            if not queues:
                return
            yield from _consume(queues[0])
            queues.popleft()
    finally:
        stop.set()
        _drain(queues)


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
            with doing(name):
                yield
        finally:
            spent = time.perf_counter() - begun
            self.seconds[name] = self.seconds.get(name, 0.0) + spent

    def show(self, line: str, figures: Mapping[str, float]) -> None:
        """Show a line where the executor's tasks are shown, if they are, and figures by name."""
        if isinstance(self.executor, ShowsLines):
            self.executor.show(line, figures)

    def mapped(
        self,
        name: str,
        function: Callable[[T], R],
        tasks: Sequence[T],
        rows: Sequence[int] | None = None,
        *,
        tells: bool = True,
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
        tells : bool
            Whether tasks tell of these rows as they go through them (`engine.runtime.work`).
        """
        sizes = [0] * len(tasks) if rows is None else rows
        order = sorted(range(len(tasks)), key=lambda i: -sizes[i])
        results = {}
        bar = Bar(self.progress, name, len(tasks), sum(sizes) if tells else 0)
        with self.timed(name), listening(bar.told):
            ordered = [tasks[i] for i in order]
            for i, result in zip(order, self.executor.map(function, ordered), strict=True):
                results[i] = result
                bar.ended(sizes[i])
        return [results[i] for i in range(len(tasks))]
