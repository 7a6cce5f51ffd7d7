"""Kernels as Python runs them: for work that is over long before a kernel would be compiled.

A kernel's source is translated into source for Python: functions that it calls are translated, too,
and hints to the compiler are left out. There are two ways. In the fast one arrays are memory views,
of which a number costs a fourth of what it costs from an array, named tuples and records are
objects (`engine.runtime.compilation.interpreted_values`), and what is constant is written in place.
Numbers are Python's: integers do not wrap. The other way, for kernels with operations on whole
arrays, has numpy's arrays and numbers.

What Python does otherwise than compiled code, as to divide by zero, is an exception in the fast
way, and so is all that is not translated. A kernel works on copies of its arguments, so that after
an exception it starts again, in the other way, or compiled.
"""

from __future__ import annotations

import ast
import builtins
import threading
from functools import cache, partial
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from engine.runtime.compilation.interpreted_values import Arguments
from engine.runtime.compilation.pointed import Pointed
from engine.runtime.compilation.translated import (
    FastTranslation,
    NotInterpretedError,
    Translation,
    source_tree,
)

MOST_STEPS, CALL = 400_000, 100
"""Of loops: what an interpreted kernel may take in a call, half a second; what a call counts for
itself."""


class _Steps:
    """The steps of loops that a kernel may take before it is given up."""

    def __init__(self) -> None:
        self._left: list[None] = []
        self._most = 0
        self.take = self._left.pop
        """Called at every step; `IndexError` when none is left."""

    def fill(self, most: int) -> None:
        """Allow so many, and no more."""
        self._most = most
        del self._left[most:]
        self._left.extend([None] * (most - len(self._left)))

    @property
    def taken(self) -> int:
        """Steps since then."""
        return self._most - len(self._left)


_STEPS = _Steps()
_TURN = threading.RLock()
"""One kernel is interpreted at a time: `_STEPS` are its own, and Python runs one thread anyway."""
_FIRST: CodeType = (
    lambda *given: _become(*given)  # type: ignore[name-defined]  # noqa: F821, PLW0108
).__code__


@cache
def _function(function: Any, *, fast: bool) -> FunctionType:  # noqa: ANN401 - compiled or not
    """Return a function as Python runs it; it is translated when it is first called."""
    source: FunctionType = getattr(function, "py_func", function)
    if source is not function:
        return _function(source, fast=fast)
    space: dict[str, Any] = {"__builtins__": builtins, "__name__": source.__module__}
    made = FunctionType(_FIRST, space, source.__name__, source.__defaults__)

    def become(*given: Any) -> Any:  # noqa: ANN401 - whatever it takes
        tree = source_tree(source)
        way = FastTranslation if fast else Translation
        translation = way(source, tree, _STEPS.take, partial(_function, fast=fast))
        module = ast.Module([translation.visit(tree)], [])
        code = compile(ast.fix_missing_locations(module), f"<{source.__module__}>", "exec")
        space.update(translation.space)
        made.__code__ = next(own for own in code.co_consts if isinstance(own, CodeType))
        return made(*given)

    space["_become"] = become
    return made


def interpret(
    function: Any, given: tuple[Any, ...], *, fast: bool, most: int = MOST_STEPS  # noqa: ANN401
) -> tuple[Any, int]:  # fmt: skip
    """Run a kernel in Python.

    Parameters
    ----------
    function : dispatcher
    given : tuple
        Its arguments, which are as they were if it cannot be run.
    fast : bool
        The way.
    most : int
        Steps of loops that it may take.

    Returns
    -------
    tuple
        What it returns, and how many steps of loops it took, or takes as long as.

    Raises
    ------
    NotInterpretedError
        If it cannot be run, or takes more than `most` steps.
    """

    def pointed_to(pointer: Pointed) -> FunctionType:
        if not pointer.is_ours:
            raise NotInterpretedError("a function is the user's")
        return _function(pointer.function, fast=fast)

    with _TURN, np.errstate(all="ignore"):
        try:
            arguments = Arguments(given, pointed_to, most, fast=fast)
            own = [arguments.given(each) for each in given]
            _STEPS.fill(most)
            found = arguments.returned(_function(function, fast=fast)(*own))
        except Exception as error:  # anything that compiled code does otherwise, or raises itself
            raise NotInterpretedError(str(error)) from error
        arguments.write_back()
        return found, _STEPS.taken + arguments.steps
