"""Where winnow keeps what it prepared and compiled, from one run to the next."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

KERNELS, LANES = "numba", "lanes"
"""Folders of a cache."""
ANY_PROCESSOR = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
"""The environment in which kernels are compiled for every processor of this architecture."""


def cache_home() -> Path:
    """Return the folder for everything winnow keeps between runs.

    ``$WINNOW_CACHE`` if set, else ``$XDG_CACHE_HOME/winnow``, else ``~/.cache/winnow``.
    """
    if given := os.environ.get("WINNOW_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "winnow"


def shipped_kernels() -> Path | None:
    """Return the folder of kernels for any processor, only to be read, or None.

    ``$WINNOW_KERNELS`` if set, else those that came with the package `winnow`, as in a wheel.
    """
    if given := os.environ.get("WINNOW_KERNELS"):
        return Path(given)
    own = Path(__file__).parents[2] / "winnow" / "kernels"
    return own if own.is_dir() else None


def kernel_cache() -> Path | None:
    """Return a folder for compiled code that can be written, or None.

    Where the cache cannot be written, as by the user of a cluster's containers, who has no home, it
    is one among temporary files that is this user's alone.
    """
    own = Path(tempfile.gettempdir()) / f"winnow-{os.getuid()}"
    for home in (cache_home, lambda: own):
        try:
            folder = home() / KERNELS
            if home is not cache_home:
                own.mkdir(mode=0o700, exist_ok=True)
                if own.is_symlink() or own.stat().st_uid != os.getuid():
                    return None
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except (OSError, RuntimeError):
            continue
    return None
