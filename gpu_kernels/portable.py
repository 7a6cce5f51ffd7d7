"""Scalar functions written once, compiled for the CPU and for the GPU.

A portable function takes and returns float64 and int64 scalars and calls nothing but arithmetic,
comparisons and other portable functions: no exp, log or pow, whose last digit differs by device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
Integer: TypeAlias = Any
"""An integer within device code."""

_waiting: list[Callable[..., Any]] = []
_waiting_on_cpu: list[Callable[..., Any]] = []
"""`_waiting`, `_waiting_on_cpu`: Portable functions that compiled code does not know yet."""
_known: set[Callable[..., Any]] = set()


def portable(function: F) -> F:
    """Register `function` for compiled callers and leave it a plain Python function.

    Parameters
    ----------
    function : callable
        Of scalars only.

    Returns
    -------
    callable
        `function` itself, callable from numba code.
    """
    if function not in _known:
        _known.add(function)
        _waiting.append(function)
        _waiting_on_cpu.append(function)
    return function


def register_on_cpu() -> None:
    """Make every portable function callable from compiled code.

    This is a separate step because numba is slow to load. What compiles calls it first.
    """
    if not _waiting_on_cpu:
        return
    from numba.extending import register_jitable  # noqa: PLC0415 - only where code is compiled

    while _waiting_on_cpu:
        register_jitable(forceinline=True)(_waiting_on_cpu.pop())


def register_on_gpu() -> None:
    """Make every portable function callable from GPU kernels too.

    This is a separate step because numba-cuda is slow to load and not needed on the CPU. In the
    CUDA simulator a plain function is called as it is.
    """
    from numba import config  # noqa: PLC0415 - only where a GPU is used

    if not config.ENABLE_CUDASIM:
        from numba.cuda.extending import (  # noqa: PLC0415 - the same
            register_jitable as register_for_cuda,
        )

        for function in _waiting:
            register_for_cuda(function)
    _waiting.clear()
