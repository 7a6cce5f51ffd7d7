"""Ctrl-C while a command is loaded, which takes up to half a second: nothing has been begun."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress

STOPPED = 130
"""Exit status: 128 and the signal's number."""


def stopped(said: str) -> str:
    """Return the line that tells that a command has ended early."""
    return f"{said}: stopped; nothing is left half-written"


@contextmanager
def ends_at_once() -> Iterator[None]:
    """End the process at Ctrl-C in the block, which only imports, unless it is ignored.

    An exception would be raised in whatever is being imported, which may not let it pass.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end(*_: object) -> None:
    with suppress(OSError):
        os.write(2, f"{stopped('winnow')}\n".encode())
    os._exit(STOPPED)
