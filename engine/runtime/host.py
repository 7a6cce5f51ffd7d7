"""What this machine has, and how its memory is asked for."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress
from functools import cache

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Numbers of glibc's options, in malloc.h."""
_KEPT, _MAPPED = 256 << 20, 64 << 20


def half_of_memory() -> int:
    """Return half the memory of this machine, in bytes: what one job's lanes may take of it."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


@cache
def keep_freed_memory() -> None:
    """Let this process keep up to 256 MiB of what arrays below 64 MiB leave, for those to come.

    A batch has arrays of some MiB, again and again: glibc would give every one back to the system
    and have the pages of the next made anew, which is a fifth of the time that preparing takes.
    For processes that are winnow's alone; where there is another C library, nothing is done.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(_MMAP_THRESHOLD, _MAPPED)
        library.mallopt(_TRIM_THRESHOLD, _KEPT)
