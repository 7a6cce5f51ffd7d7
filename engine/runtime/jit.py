"""Numba compilation with a disk cache that follows the source of what is compiled.

Numba's own cache watches only the file that a function stands in, so a kernel stays stale when a
helper in another file changes, and goes by the place of that file, which is another for every Spark
application that ships it. Here a function's folder in the cache is named after its module and a
digest of all source that can end up in its code (`engine.runtime.compilation.source`): an edit
starts fresh folders for what depends on it and no others, and whoever has the same source,
installed or in an archive, shares what was compiled. `engine.runtime.compilation.entries` says how.
Numba is loaded when it is needed (`engine.runtime.compilation.deferred`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from engine.runtime.compilation.compilations import LONG
from engine.runtime.compilation.deferred import Deferred, Intrinsic

F = TypeVar("F", bound=Callable[..., Any])

nth = np.uint64
"""An index as compiled code takes it: unsigned, which spares the test for one from the end."""
NONE = -1
"""No index: a free slot, the end of a chain, no tuple."""
FOREVER = int(np.iinfo(np.int64).max)
"""A tick behind all others."""
Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Integer: TypeAlias = Any
"""An int64 within compiled code; int or a numpy integer outside."""
Records: TypeAlias = Any
"""Record arrays, records and what is read from them, and function pointers: of numba's types."""


def jit(function: F, *, cached: bool = True, **options: bool | str) -> F:
    """Compile `function` for the CPU, without the GIL, from the disk cache where one is there.

    Plain IEEE float64: no fast-math and no fused multiply-add (contract, section 3). Functions
    built from closures need ``cached=False``: numba cannot tell their cached code apart.
    """
    told = {"nogil": True, "error_model": "numpy", **options}
    return cast("F", Deferred(function, cached, told))


def kernel(function: F) -> F:
    """Compile a function of arrays and scalars that allocates nothing and owns nothing.

    Without numba's run-time reference counts, which cost an atomic operation for every array at
    every call: 14 times the time of a replay.
    """
    return jit(function, _nrt=False, forceinline=True)


def patient(function: F) -> F:
    """Have a kernel that trials need, and that takes long to compile, interpreted for more steps.

    See `engine.runtime.compilation.entries.PATIENCE`; here it is `LONG`.
    """
    function.patience = LONG  # type: ignore[attr-defined]
    return function


def outlined(function: F) -> F:
    """Compile a function as `kernel` does, but to be called: for what is long and seldom needed."""
    return jit(function, _nrt=False, forceinline=False)


def inlined(function: F) -> F:
    """Compile into the callers, before types are inferred, and never by itself.

    For what returns an array, which `kernel` cannot; else it takes longer to compile.
    """
    return jit(function, _nrt=False, inline="always")


prefetch = Intrinsic("prefetch", None)
"""Ask for the cache line in which ``array[index]`` begins; `index` must be in range.

A hint only: no result depends on it. What a batch will touch is known ahead, so that at 100 times
the size of P1's table 1 a tuple's key is in the cache when its turn comes.
"""


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
