"""Outputs written down: their members, time and importance."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from threading import Event
from typing import Any, NamedTuple, TypeVar

import numpy as np

from engine.exact.combine import combined
from engine.jit import jit
from engine.multiway.streams import Floats, Ints, MultiStreams
from gpu_kernels.combine import MEAN, SUM

P = TypeVar("P")
T = TypeVar("T")
_AHEAD = 2  # chunks a thread may hold back


class OutputChunk(NamedTuple):
    """Outputs of a multi-way join.

    Attributes
    ----------
    members : (n, m) int64
        Places of their tuples, by stream.
    ts : (n,) int64
        Of the latest member.
    importance : (n,) float64
    """

    members: Ints
    ts: Ints
    importance: Floats


def _weigh(
    ts: Ints, importance: Floats, combine: int, members: Ints, out_ts: Ints, out: Floats
) -> None:
    """Write time and importance of outputs, in the streams' order."""
    sides = members.shape[1]
    step = SUM if combine == MEAN else combine
    for row in range(members.shape[0]):
        place = members[row, 0]
        latest, value = ts[place], importance[place]
        for side in range(1, sides):
            place = members[row, side]
            latest = max(latest, ts[place])
            value = combined(step, value, importance[place])
        out_ts[row] = latest
        out[row] = value / np.float64(sides) if combine == MEAN else value


weigh = jit(_weigh)


def weighed_chunk(streams: MultiStreams, combine: int, members: Ints) -> OutputChunk:
    """Return outputs with their time and importance. O(their members)."""
    out_ts, out = np.empty(len(members), np.int64), np.empty(len(members))
    weigh(streams.ts, streams.importance, combine, members, out_ts, out)
    return OutputChunk(members, out_ts, out)


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
