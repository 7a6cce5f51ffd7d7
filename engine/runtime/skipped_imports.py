"""What libraries import at their first use and nothing of ours needs: a fourth of a short command.

Whoever needs it after all still gets it.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import Any


def skip_blas() -> None:
    """Load numba's functions of arrays without SciPy's linear algebra.

    Numba looks for it when the first kernel is compiled, and again when a function that calls
    `numpy.dot` is.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    from numba.np import linalg  # noqa: PLC0415 - only where there are kernels

    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        from numba.np import arraymath  # noqa: PLC0415 - not before
    finally:
        linalg.ensure_blas = look
    arraymath.ensure_blas = look


def skip_pandas() -> None:
    """Let Arrow find no pandas when it looks whether a value may be of pandas.

    Only for processes that belong to winnow. `to_pandas` and `from_pandas` load it still; a NaT of
    pandas in a list is then not known for null. Nothing is done before Arrow is loaded.
    """
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is None or "pandas" in sys.modules:
        return
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        arrow.array([None, 1])
    finally:
        sys.meta_path.remove(finder)


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not looked for", name=name)
