"""Spark's JVM while it starts: it is ended where whoever waits for it is interrupted.

pyspark keeps Ctrl-C from the JVM, and removes the folder in which the JVM is to say how it is
reached. So nobody would know of it, and it would not know that nobody waits.
"""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.runtime.storage.disk import undone_at_end

_PROC = Path("/proc")
_TIMES, _BETWEEN = 3, 0.1
"""How often processes are looked for, and after how many seconds again: one that has just been
forked is known once it runs its own program."""


@contextmanager
def ended_unless_started() -> Iterator[str]:
    """Yield an option for Java, by whose presence in their environment processes are known.

    They are ended if the block is not left as usual.
    """
    option, started = f"-Dwinnow.start={uuid.uuid4().hex}", False

    def undo() -> None:
        if not started:
            _end(option.encode())

    with undone_at_end(undo):
        yield option
        started = True


def _end(mark: bytes) -> None:
    for _ in range(_TIMES):
        for process in _marked(mark):
            with suppress(OSError):
                os.kill(process, signal.SIGTERM)
        time.sleep(_BETWEEN)


def _marked(mark: bytes) -> list[int]:
    found = []
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError):  # another user's, or one that has ended
            if mark in (folder / "environ").read_bytes():
                found.append(int(folder.name))
    return found
