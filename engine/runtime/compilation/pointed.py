"""Functions that kernels get as arguments, as what interprets kernels knows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from engine.runtime.compilation.source import is_ours


class Pointed:
    """A function to which kernels get a pointer.

    Parameters
    ----------
    function : callable
    signature : str
        As numba writes it: ``float64(float64)``.
    """

    def __init__(self, function: Callable[..., Any], signature: str) -> None:
        self.function, self.signature = function, signature

    @property
    def is_ours(self) -> bool:
        """Whether the function is of these packages."""
        return is_ours(self.function)
