"""Numba compilation with a disk cache that follows the source of the whole package.

Numba's own cache watches only the file that a function stands in, so a kernel stays stale when a
helper in another file changes. Here the cache folder is named after a digest of every source file
that can end up in compiled code: an edit starts a fresh one, and Spark's worker processes share
what was compiled.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

F = TypeVar("F", bound=Callable[..., Any])

UNCOMPILED = ("engine/cli", "engine/job")
"""Folders whose files nothing compiled depends on: they compile nothing and hold no constants."""


def _source_digest() -> str:
    root = Path(__file__).resolve().parent.parent
    digest = hashlib.sha256(numba.__version__.encode())
    for package in ("engine", "gpu_kernels"):
        for source in sorted((root / package).rglob("*.py")):
            if not source.relative_to(root).as_posix().startswith(UNCOMPILED):
                digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def cache_home() -> Path:
    """Return the folder for everything winnow keeps between runs.

    ``$WINNOW_CACHE`` if set, else ``$XDG_CACHE_HOME/winnow``, else ``~/.cache/winnow``.
    """
    if given := os.environ.get("WINNOW_CACHE"):
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "winnow"


def _compiled_cache() -> str | None:
    """Return a folder for compiled code that can be written, or None."""
    try:
        folder = cache_home() / "numba" / _source_digest()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return str(folder)
    except (OSError, RuntimeError):
        return None


_CACHE_DIR = _compiled_cache()


def jit(function: F, *, cached: bool = True, **options: bool | str) -> F:
    """Compile `function` for the CPU, without the GIL, from the disk cache where one is there.

    Plain IEEE float64: no fast-math and no fused multiply-add (contract, section 3). Functions
    built from closures need ``cached=False``: numba cannot tell their cached code apart.
    """
    before = numba.config.CACHE_DIR
    if _CACHE_DIR is not None:
        numba.config.CACHE_DIR = _CACHE_DIR
    try:
        compiled: F = numba.njit(
            nogil=True, error_model="numpy", cache=cached and _CACHE_DIR is not None, **options
        )(function)
    finally:
        numba.config.CACHE_DIR = before
    return compiled


def kernel(function: F) -> F:
    """Compile a function of arrays and scalars that allocates nothing and owns nothing.

    Without numba's run-time reference counts, which cost an atomic operation for every array at
    every call: 14 times the time of a replay.
    """
    return jit(function, _nrt=False, forceinline=True)


def woven(function: F) -> F:
    """Compile into the callers, before types are inferred, and never by itself."""
    return jit(function, _nrt=False, inline="always")
