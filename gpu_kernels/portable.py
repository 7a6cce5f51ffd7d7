"""Scalar functions written once, compiled for the CPU and for the GPU.

A portable function takes and returns float64 and int64 scalars and calls nothing but arithmetic,
comparisons and other portable functions: no exp, log or pow, whose last digit differs by device.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba.extending import register_jitable

F = TypeVar("F", bound=Callable[..., Any])


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
    registered: F = register_jitable(function)
    return registered
