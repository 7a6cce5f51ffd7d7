"""Pointers to functions, which a kernel takes as arguments."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from engine.runtime.source import PACKAGES
from gpu_kernels.portable import register_on_cpu


class Pointer:
    """A pointer to a function, which is compiled when its address is first asked for.

    Parameters
    ----------
    function : callable
    signature : str
        As numba writes it: ``float64(float64)``.
    """

    def __init__(self, function: Callable[..., Any], signature: str) -> None:
        self.function, self._signature = function, signature

    @property
    def is_ours(self) -> bool:
        """Whether the function is of these packages."""
        return self.function.__module__.split(".")[0] in PACKAGES

    @cached_property
    def _compiled(self) -> Any:  # noqa: ANN401 - numba's
        from numba import cfunc  # noqa: PLC0415 - numba is slow to load
        from numba.extending import register_jitable  # noqa: PLC0415 - the same

        register_on_cpu()
        return cfunc(self._signature)(register_jitable(self.function))

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401 - numba's
        return _type_of(self._signature)

    def __wrapper_address__(self) -> int:
        """Return the address, for numba."""
        address: int = self._compiled.address
        return address


@cache
def _type_of(signature: str) -> Any:  # noqa: ANN401 - numba's
    """Return the type of a pointer."""
    import numba.experimental.function_type  # noqa: F401, PLC0415 - tells numba how to take it
    from numba.core import sigutils, types  # noqa: PLC0415 - numba is slow to load

    arguments, returned = sigutils.normalize_signature(signature)
    return types.FunctionType(returned(*arguments))


@cache
def pointer(function: Callable[..., Any], signature: str) -> Pointer:
    """Return a pointer to a function; a user's is compiled now, so that its faults show."""
    found = Pointer(function, signature)
    if not found.is_ours:
        found.__wrapper_address__()
    return found
