"""Chunks of parts of work that threads do side by side, handed out in the order of the parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from threading import Event
from typing import Any, TypeVar

P = TypeVar("P")
T = TypeVar("T")
_AHEAD = 2  # chunks a thread may hold back


def _produce(source: Callable[[P], Iterator[T]], part: P, out: Queue[Any], stop: Event) -> None:
    """Put the chunks of a slice into `out`, then None or what went wrong, until `stop`."""
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


def in_parallel(
    source: Callable[[P], Iterator[T]], parts: Sequence[P], workers: int
) -> Iterator[T]:
    """Yield the chunks of all slices in order; `workers` slices are in work at a time."""
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
