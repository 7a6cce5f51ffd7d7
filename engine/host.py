"""What this machine has."""

from __future__ import annotations

import os


def half_of_memory() -> int:
    """Return half the memory of this machine, in bytes: what one job's lanes may take of it."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
