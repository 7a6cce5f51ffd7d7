"""One thread of BLAS for each of ours: left alone, each would use as many as there are CPUs.

There may be two libraries: NumPy's, and SciPy's, which compiled code calls and which is loaded when
it first does.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

import numpy as np
import threadpoolctl

from engine.runtime.compilation.deferred import Intrinsic

product = Intrinsic("product", np.dot)
"""Write the matrix product of two float32 arrays: ``product(left, right, out)``.

A BLAS adds up in an order of its own: only for what is decided by other numbers.
"""
_lock = threading.Lock()
_held = ExitStack()
_users = 0
_limited = 0


def _loaded() -> int:
    """Return how many of the two are."""
    return 1 + ("scipy.linalg.cython_blas" in sys.modules)


@cache
def _controller(loaded: int) -> threadpoolctl.ThreadpoolController:
    """Return what controls the libraries that are loaded: a search of a millisecond."""
    del loaded
    return threadpoolctl.ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products use the calling thread alone, as long as anyone is within.

    The number is the whole process's: the first that enters sets it, and the last that leaves puts
    back what was there. Whoever enters after a library was loaded sets that of it.
    """
    global _users, _limited  # noqa: PLW0603 - of the process, as the number is
    with _lock:
        if _limited < _loaded():
            _limited = _loaded()
            _held.enter_context(_controller(_limited).limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _limited = 0
                _held.close()
