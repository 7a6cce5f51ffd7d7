"""Pointers to functions, which a kernel takes as arguments.

`numba.experimental.function_type` tells numba their types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numba
import numba.experimental.function_type
from numba.core import types
from numba.extending import register_jitable

from engine.runtime.source import PACKAGES


class Pointer(types.WrapperAddressProtocol):
    """A pointer to a function, which is compiled when its address is first asked for.

    Parameters
    ----------
    function : callable
    signature : numba signature
    """

    def __init__(self, function: Callable[..., Any], signature: Any) -> None:  # noqa: ANN401
        self.function, self._signature = function, signature

    @property
    def is_ours(self) -> bool:
        """Whether the function is of these packages."""
        return self.function.__module__.split(".")[0] in PACKAGES

    @cached_property
    def _compiled(self) -> Any:  # noqa: ANN401 - numba's
        return numba.cfunc(self._signature)(register_jitable(self.function))

    def __wrapper_address__(self) -> int:
        """Return the address, for numba."""
        address: int = self._compiled.address
        return address

    def signature(self) -> Any:  # noqa: ANN401 - numba's
        """Return the signature, for numba."""
        return self._signature


@cache
def pointer(function: Callable[..., Any], signature: Any) -> Pointer:  # noqa: ANN401 - numba's
    """Return a pointer to a function; a user's is compiled now, so that its faults show."""
    found = Pointer(function, signature)
    if not found.is_ours:
        found.__wrapper_address__()
    return found
