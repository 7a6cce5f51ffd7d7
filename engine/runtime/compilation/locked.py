"""Locks by which processes take turns, each of a key, in one file of a folder.

A lock ends with its process. Where a file system has none, nobody waits.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

PATIENCE = 300.0
"""Seconds that a process waits for another at most: it is in no hurry, or has stopped."""
_EVERY = 0.05


@cache
def _opened(folder: Path, process: int) -> int:
    """Return the file of locks, opened by a process once: to close it anywhere frees all locks."""
    del process
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


@contextmanager
def locked(folder: Path, key: str) -> Iterator[None]:
    """Run the block while no other process runs one of the same key.

    Parameters
    ----------
    folder : Path
        It is there.
    key : str
        Any text.
    """
    byte = int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "big")
    taken = False
    until = time.monotonic() + PATIENCE
    try:
        file = _opened(folder, os.getpid())
        while not taken and time.monotonic() < until:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
                taken = True
            except (BlockingIOError, PermissionError):  # another process has it
                time.sleep(_EVERY)
    except OSError:
        pass  # read-only, or without locks
    try:
        yield
    finally:
        if taken:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)
