"""How far the lanes of this process are, for whoever shows progress."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_LISTENERS: list[Callable[[int], None]] = []


def rows_done(rows: int) -> None:
    """Tell the listeners of this process, if any, that rows were replayed."""
    with _LOCK:
        for listener in _LISTENERS:
            listener(rows)


@contextmanager
def listening(tell: Callable[[int], None]) -> Iterator[None]:
    """Call ``tell(rows so far)`` as lanes are replayed here; a Spark worker's are not heard."""
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
