"""Memory of this machine, and the settings of glibc and Python for it."""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's options, in malloc.h."""
_REUSED, _MAPPED = 256 << 20, 64 << 20


def half_of_memory() -> int:
    """Return half of the physical memory, in bytes: the limit for one job's lanes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@cache
def keep_freed_memory() -> None:
    """Reuse up to 256 MiB of freed array memory instead of returning it to the system.

    Batches allocate arrays of some MiB over and over; fresh pages for each cost a fifth of the time
    of preparing. Only for processes that belong to winnow; does nothing without glibc.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _MAPPED)
        library.mallopt(_TRIM_THRESHOLD, _REUSED)


@contextmanager
def kept_for_good() -> Iterator[None]:
    """Have Python's garbage collector pass over what is made in the block, as modules are."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
