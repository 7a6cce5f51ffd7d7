"""Sorting within compiled code that allocates nothing."""

from __future__ import annotations

from typing import Any

from engine.runtime.jit import kernel


@kernel
def shell_sorted(values: Any, begin: Any, size: Any) -> None:  # noqa: ANN401 - numba's
    """Sort a part of an array in place (Shell sort, gaps by Tokuda)."""
    gap = 1
    while gap < size:
        gap = gap * 9 // 4 + 1
    while gap > 1:
        gap = gap * 4 // 9
        gap = max(gap, 1)
        for i in range(gap, size):
            value = values[begin + i]
            j = i
            while j >= gap and values[begin + j - gap] > value:
                values[begin + j] = values[begin + j - gap]
                j -= gap
            values[begin + j] = value
