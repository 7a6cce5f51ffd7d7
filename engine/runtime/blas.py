"""One thread of BLAS for each of ours: left alone, each would use as many as there are CPUs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache

import threadpoolctl

_lock = threading.Lock()
_held = ExitStack()
_users = 0


@cache
def _controller() -> threadpoolctl.ThreadpoolController:
    """Return what controls the libraries that are loaded: a search of a millisecond."""
    return threadpoolctl.ThreadpoolController()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let matrix products use the calling thread alone, as long as anyone is within.

    The number is the whole process's: the first that enters sets it, and the last that leaves puts
    back what was there.
    """
    global _users  # noqa: PLW0603 - of the process, as the number is
    with _lock:
        if _users == 0:
            _held.enter_context(_controller().limit(limits=1, user_api="blas"))
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                _held.close()
