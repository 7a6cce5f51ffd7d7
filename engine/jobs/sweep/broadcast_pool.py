"""Threads that take many independent states through one sequence of batches."""

from __future__ import annotations

import heapq
import threading
import time
from collections.abc import Callable, Sequence
from typing import Generic, Self, TypeVar

T = TypeVar("T")

MOST_BATCHES = 3
"""Batches held at once: the next is read while fast states are one ahead of the slowest."""


class BroadcastPool(Generic[T]):
    """Gives every batch to every state, in order, on a few threads.

    A state is a function of a batch that is never called twice at once. States go at their own
    pace, so that no thread waits for the slowest at every batch; whoever is furthest behind has its
    turn first, and among equals whoever took longest.

    Parameters
    ----------
    threads : int
        How many states are served at once.

    Notes
    -----
    At most `MOST_BATCHES` batches are held. O(log states) a turn.
    """

    def __init__(self, states: Sequence[Callable[[T], None]], threads: int) -> None:
        self._states = states
        self._threads = max(1, min(threads, len(states)))
        self._changed = threading.Condition()
        self._batches: dict[int, T] = {}
        self._missing: dict[int, int] = {}
        self._published = 0
        self._closed = False
        self._error: BaseException | None = None
        self._running: list[threading.Thread] = []
        self._ready = [(0, 0.0, state) for state in range(len(states))]

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._running = [threading.Thread(target=self._serve) for _ in range(self._threads)]
        for thread in self._running:
            thread.start()
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        """Serve what has been given out, unless something went wrong.

        Raises
        ------
        Exception
            The first that a state raised.
        """
        if error is not None:
            self._stop(error)
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in self._running:
            thread.join()
        if error is None and self._error is not None:
            raise self._error

    def publish(self, batch: T) -> None:
        """Give out a batch as soon as there is room.

        Raises
        ------
        Exception
            The first that a state raised.
        """
        with self._changed:
            while self._error is None and len(self._batches) >= MOST_BATCHES:
                self._changed.wait()
            if self._error is not None:
                raise self._error
            if not self._states:
                return
            self._batches[self._published] = batch
            self._missing[self._published] = len(self._states)
            self._published += 1
            self._changed.notify_all()

    def _stop(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def _turn(self) -> tuple[int, int, T] | None:
        """Wait for a state that has a batch to take; None when there will be none."""
        with self._changed:
            while self._error is None:
                if self._ready and self._ready[0][0] < self._published:
                    at, _, state = heapq.heappop(self._ready)
                    return at, state, self._batches[at]
                if self._closed and not self._batches:
                    return None
                self._changed.wait()
        return None

    def _done(self, at: int, state: int, seconds: float) -> None:
        with self._changed:
            heapq.heappush(self._ready, (at + 1, -seconds, state))
            self._missing[at] -= 1
            if not self._missing[at]:
                del self._batches[at], self._missing[at]
            self._changed.notify_all()

    def _serve(self) -> None:
        while (turn := self._turn()) is not None:
            at, state, batch = turn
            begun = time.perf_counter()
            try:
                self._states[state](batch)
            except BaseException as error:  # noqa: BLE001 - raised again by `publish` or `__exit__`
                self._stop(error)
                return
            del turn, batch
            self._done(at, state, time.perf_counter() - begun)
