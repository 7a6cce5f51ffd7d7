"""Pointers to functions, which a kernel takes as arguments."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from engine.runtime.compilation.pointed import Pointed
from engine.runtime.errors import SpecError

if TYPE_CHECKING:
    from engine.runtime.compilation.entries import Entry


class Pointer(Pointed):
    """A pointer to a function, which is compiled when its address is first asked for."""

    @cached_property
    def _entry(self) -> Entry:
        from engine.runtime.compilation.entries import entry  # noqa: PLC0415 - it loads numba

        # divisions by zero are as in kernels
        made = entry(self.function, kept=True, no_cfunc_wrapper=False, error_model="numpy")
        made.compile(self.signature)
        return made

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401 - numba's
        return _type_of(self.signature)

    def __wrapper_address__(self) -> int:
        """Return the address, for numba, which asks at every call."""
        return self._address

    @cached_property
    def _compiled(self) -> Any:  # noqa: ANN401 - numba's
        (compiled,) = self._entry.overloads.values()
        return compiled

    @cached_property
    def _address(self) -> int:
        name = self._compiled.fndesc.llvm_cfunc_wrapper_name
        return int(self._compiled.library.get_pointer_to_function(name))

    @property
    def raises(self) -> bool:
        """Whether there is an exception that it may raise, which no kernel passes on.

        Only what was compiled in this process tells, as functions of users are.
        """
        return _EXCEPTION in self._compiled.library.get_llvm_str()


_EXCEPTION = ".const.picklebuf"
"""What numba calls an exception in LLVM's code; those that cannot happen are optimised away."""


@cache
def _type_of(signature: str) -> Any:  # noqa: ANN401 - numba's
    """Return the type of a pointer; `compilation.entries` tells numba how to take it."""
    from numba.core import sigutils, types  # noqa: PLC0415 - numba is slow to load

    arguments, returned = sigutils.normalize_signature(signature)
    return types.FunctionType(returned(*arguments))


_INTERNAL = re.compile(r" for '\$[^']*', defined at \S+")
"""Where numba names what it has made of a function."""


@cache
def pointer(
    function: Callable[..., Any], signature: str, named: str = "", wanted: str = ""
) -> Pointer:
    """Return a pointer to a function; a user's is compiled now, so that its faults show.

    Parameters
    ----------
    function : callable
    signature : str
        See `Pointed`.
    named, wanted : str
        What a user's function is called, and what it should take and return, for an error.

    Raises
    ------
    SpecError
        If a user's function cannot be compiled.
    """
    found = Pointer(function, signature)
    if not found.is_ours:
        try:
            found.__wrapper_address__()
        except Exception as error:  # numba raises several, and passes on what the user's code does
            lines = [line.strip() for line in str(error).splitlines()]
            told = (line for line in lines if line and not line.startswith("Failed in nopython"))
            why = _INTERNAL.sub("", next(told, type(error).__name__))
            raise SpecError(
                f"function {named} cannot be compiled ({why}): give a function of {wanted}"
            ) from error
    return found
