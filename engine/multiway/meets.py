"""Whether two tuples meet, for compiled code that takes any predicate.

Its callers should be compiled by `engine.runtime.jit.kernel`: with numba's reference counts a
comparison takes 60 ns, without them 1 ns.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numba
from numba.extending import register_jitable

from engine.multiway.predicate import Predicate, Theta
from engine.multiway.streams import Attributes
from engine.runtime.jit import woven
from gpu_kernels.multiway.predicates import EQUI, holds

_VECTOR = numba.types.Array(numba.float64, 1, "C")
_SIGNATURE = numba.boolean(_VECTOR, _VECTOR)


class Condition(NamedTuple):
    """A predicate as compiled code takes it.

    Attributes
    ----------
    kind : int
        Index among `gpu_kernels.multiway.predicates.KINDS`.
    bound : float
        EPS or T; of distance, the square of R.
    theta : function pointer
        Of theta; never called for others.
    """

    kind: int
    bound: float
    theta: Any


def _never(a: Any, b: Any) -> bool:  # noqa: ANN401, ARG001 - vectors
    return False


@cache
def _pointer(function: Theta) -> Any:  # noqa: ANN401 - numba's
    return numba.cfunc(_SIGNATURE)(register_jitable(function))


def condition(predicate: Predicate) -> Condition:
    """Return a predicate as compiled code takes it."""
    bound = predicate.bound * predicate.bound if predicate.kind == "distance" else predicate.bound
    return Condition(predicate.code, float(bound), _pointer(predicate.function or _never))


@woven
def meets(condition: Any, attributes: Attributes, a: Any, b: Any) -> Any:  # noqa: ANN401 - numba's
    """Tell whether the predicate holds between two tuples: a bool.

    Parameters
    ----------
    condition : Condition
    attributes : Attributes
    a, b : int64
        Places. Compiled code only.
    """
    if condition.kind == EQUI:  # in place: a call takes longer than the comparison
        return attributes.code[a] == attributes.code[b]
    return holds(
        condition.kind,
        condition.bound,
        condition.theta,
        attributes.code,
        attributes.value,
        attributes.first,
        attributes.item,
        attributes.weight,
        a,
        b,
    )
