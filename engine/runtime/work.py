"""A task at work: what it tells of itself, and whether it is still wanted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

P = TypeVar("P")
T = TypeVar("T")

Listener = Callable[[int, str], None]
"""Called with tuples that a task has gone through, or with how its answer stands, else ""."""

ANSWERING = threading.Event()
"""Set once a job that was interrupted goes on, to say what it has found."""
_HERE = threading.local()
_LOCK = threading.Lock()
_LISTENERS: list[Listener] = []


class UnwantedError(BaseException):
    """Raised in a task that nobody waits for any more, where it next tells of itself."""


def rows_done(rows: int) -> None:
    """Tell of tuples that a task in this process has gone through."""
    _tell(rows, "")


def told(text: str) -> None:
    """Tell how the answer of a task in this process stands."""
    _tell(0, text)


def _tell(rows: int, text: str) -> None:
    stop: threading.Event | None = getattr(_HERE, "stop", None)
    if stop is not None and stop.is_set():
        raise UnwantedError
    _report(rows, text)


def _report(rows: int, text: str) -> None:
    with _LOCK:
        for listener in _LISTENERS:
            listener(rows, text)


_GAUGES: dict[object, Callable[[], None]] = {}
_READ_EVERY = 0.2
_READING = threading.Lock()
"""Held while a thread reads gauges: of short blocks, one thread reads many."""


@contextmanager
def gauged(gauge: Callable[[], int]) -> Iterator[None]:
    """Tell of the tuples that compiled code has gone through in the block, while it runs.

    `gauge` returns how many these are so far, from an array in which compiled code counts them.
    """
    seen = gauge()

    def read() -> None:
        nonlocal seen
        now = gauge()
        _report(now - seen, "")
        seen = now

    own = object()
    _GAUGES[own] = read
    if _LISTENERS and _READING.acquire(blocking=False):
        threading.Thread(target=_read_gauges, daemon=True).start()
    try:
        yield
    finally:
        del _GAUGES[own]
    rows_done(max(0, gauge() - seen))


def _read_gauges() -> None:
    while True:
        try:
            while _GAUGES:
                for read in list(_GAUGES.values()):
                    read()
                time.sleep(_READ_EVERY)
        finally:
            _READING.release()
        # a block may have begun since the last look, and seen a thread that reads
        if not (_GAUGES and _READING.acquire(blocking=False)):
            return


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let a listener hear what tasks of this process tell, in whichever thread."""
    _LISTENERS.append(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


def heard() -> bool:
    """Return whether anybody listens."""
    return bool(_LISTENERS)


def wanted_until(stop: threading.Event) -> None:
    """Let work in this thread raise `UnwantedError` once `stop` is set."""
    _HERE.stop = stop


@contextmanager
def doing(stage: str) -> Iterator[None]:
    """Let this thread's work be that of a stage."""
    before, _HERE.stage = stage_here(), stage
    try:
        yield
    finally:
        _HERE.stage = before


def stage_here() -> str:
    """Return the stage that this thread is doing, "" outside of any."""
    stage: str = getattr(_HERE, "stage", "")
    return stage


def as_here() -> dict[str, Any]:
    """Return how `ThreadPoolExecutor` makes threads that do this thread's work."""
    stop = getattr(_HERE, "stop", None)
    return {} if stop is None else {"initializer": wanted_until, "initargs": (stop,)}


def mapped(work: Callable[[P], T], items: Sequence[P], threads: int) -> list[T]:
    """Return what `work` returns of each item: one by one, or of several at once by threads."""
    at_once = min(threads, len(items))
    if at_once < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(at_once, **as_here()) as pool:
        begun = [pool.submit(partial(copy_context().run, work, item)) for item in items]
        return [own.result() for own in begun]


class Bar:
    """How far a stage got: in tuples where its tasks tell of them, else in tasks.

    Parameters
    ----------
    progress : callable
        Called as ``progress(stage, done, total)``; how an answer stands follows the stage's name
        and a colon.
    name : str
        Of the stage.
    tasks : int
    rows : int, optional
        Tuples that all tasks together go through, and tell of.
    """

    def __init__(
        self, progress: Callable[[str, int, int], None], name: str, tasks: int, rows: int = 0
    ) -> None:
        self._progress, self._name = progress, name
        self._by_rows, self._total = bool(rows), rows or tasks
        self._through = self._ended = 0
        self._text = ""
        self._show()

    def told(self, rows: int, text: str) -> None:
        """Take what a task tells."""
        self._through += rows if self._by_rows else 0
        self._text = text or self._text
        self._show()

    def ended(self, rows: int) -> None:
        """Take the end of a task of so many tuples."""
        self._ended += rows if self._by_rows else 1
        self._show()

    def _show(self) -> None:
        stage = f"{self._name}: {self._text}" if self._text else self._name
        done = max(self._ended, min(self._through, self._total))
        self._progress(stage, done, self._total)
