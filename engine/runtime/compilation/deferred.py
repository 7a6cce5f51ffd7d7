"""Kernels before numba is loaded: a process that does little ends without it.

To load numba and machine code takes half a second, whether or not a kernel is in the cache. So the
first steps of a process are interpreted, `STEPS` of all kernels together; whichever needs more, or
cannot be interpreted, has numba loaded, and from then on
`engine.runtime.compilation.entries` decides for all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import TYPE_CHECKING, Any

from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.compilation.interpreted import CALL, interpret
from engine.runtime.compilation.interpreted_values import arrays_in
from engine.runtime.compilation.translated import NotInterpretedError
from engine.runtime.errors import WinnowError

if TYPE_CHECKING:
    from engine.runtime.compilation.entries import Entry

STEPS = 150_000
"""Steps of loops that a process interprets before it loads numba: a fifth of a second."""
_MOST_BYTES = 1 << 20
"""Of the arrays of a call that is interpreted: more is more work than that."""


class _Left:
    """What is left of `STEPS`."""

    steps = STEPS

    def is_some(self) -> bool:
        """Return whether kernels are interpreted without numba."""
        return self.steps > 0 and not COMPILED.is_all


LEFT = _Left()
"""Of this process."""


class Deferred:
    """A function that Python calls, or that compiled code contains, once numba is loaded.

    Parameters
    ----------
    function : callable
    kept : bool
        Whether what is compiled is kept on disk.
    options : dict
        Numba's.

    Attributes
    ----------
    py_func : callable
    patience : int or None
        See `engine.runtime.compilation.entries.Entry`; None is its default.
    """

    def __init__(self, function: Callable[..., Any], kept: bool, options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.patience: int | None = None
        self._kept, self._options = kept, options

    @cached_property
    def entry(self) -> Entry:
        """What numba compiles.

        Raises
        ------
        WinnowError
            If numba cannot be loaded, or is told to compile nothing: whoever reads or writes files
            is not to blame these.
        """
        try:
            from engine.runtime.compilation.entries import entry  # noqa: PLC0415 - it loads numba
        except (ImportError, OSError) as error:
            reason = str(error).partition("\n")[0]
            raise WinnowError(
                f"numba, which compiles kernels, cannot be loaded ({reason}): give the process "
                "more memory if that is limited (ulimit -v), or install numba anew"
            ) from error
        made = entry(self.py_func, kept=self._kept, **self._options)
        if self.patience is not None:
            made.patience = self.patience
        return made

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401 - numba's
        return self.entry._numba_type_

    @property
    def targetoptions(self) -> dict[str, Any]:
        """Options by which numba inlines a function."""
        return self.entry.targetoptions  # type: ignore[no-any-return]

    def is_there(self, *arguments: Any) -> bool:  # noqa: ANN401 - whatever it is called with
        """Return whether it is compiled for such arguments, here or on disk."""
        return self.entry.is_there(*arguments)

    def __call__(self, *given: Any, **named: Any) -> Any:  # noqa: ANN401 - whatever it takes
        """Call the function: interpreted, or compiled."""
        if LEFT.is_some() and not named:
            try:
                return self._interpreted(given)
            except NotInterpretedError:
                LEFT.steps = 0
        return self.entry(*given, **named)

    def _interpreted(self, given: tuple[Any, ...]) -> Any:  # noqa: ANN401 - whatever it returns
        if sum(array.nbytes for array in arrays_in(given)) > _MOST_BYTES:
            raise NotInterpretedError("it has much to do")
        found, steps = interpret(self, given, fast=True, most=max(0, LEFT.steps))
        LEFT.steps -= steps + CALL
        COMPILED.take(steps + CALL)
        return found

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


class Intrinsic:
    """A function that `engine.runtime.compilation.intrinsics` writes in machine code.

    Parameters
    ----------
    name : str
        Of it there.
    stand_in : callable or None
        What interpreted kernels call in its place; None: nothing, it is a hint.
    """

    def __init__(self, name: str, stand_in: Callable[..., Any] | None) -> None:
        self._name, self.stand_in = name, stand_in

    def __call__(self, *given: Any) -> Any:  # noqa: ANN401 - whatever it takes
        """Return what the stand-in returns."""
        return None if self.stand_in is None else self.stand_in(*given)

    @cached_property
    def _numba_type_(self) -> Any:  # noqa: ANN401 - numba's
        from engine.runtime.compilation import intrinsics  # noqa: PLC0415 - it loads numba

        return intrinsics.type_of(self._name)
