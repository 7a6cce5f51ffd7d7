"""A policy's scalar functions as pointers, so that one compiled kernel serves every policy."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
from numba.extending import register_jitable

from engine.policies import Policy, Value

_ARRIVAL = numba.float64(*(numba.float64,) * 7)
_NOW = numba.float64(*(numba.float64,) * 6)
_SAMPLED = numba.float64(*(numba.float64,) * 3)


@cache
def _callback(function: Callable[..., float], signature: Any) -> Any:  # noqa: ANN401 - numba's
    return numba.cfunc(signature)(register_jitable(function))


def _zero(imp: float, m: float, rel: float, draw: float, a: float, b: float, d: float) -> float:  # noqa: ARG001
    return 0.0


def _stay(
    imp: float,  # noqa: ARG001
    m: float,  # noqa: ARG001
    age: float,  # noqa: ARG001
    lifetime: float,  # noqa: ARG001
    previous: float,
    produced: float,  # noqa: ARG001
) -> float:
    return previous


def arrival_callback(policy: Policy) -> Any:  # noqa: ANN401 - numba's
    """Return the pointer to the priority at arrival."""
    return _callback(policy.arrival or _zero, _ARRIVAL)


def sampled_callback(policy: Policy) -> Any:  # noqa: ANN401 - numba's
    """Return the pointer to the priority of a tuple by its size, for a policy that samples."""
    assert policy.sampled is not None  # noqa: S101 - the registry's audit
    return _callback(policy.sampled, _SAMPLED)


def now_callback(policy: Policy, parameters: dict[str, Value]) -> Any:  # noqa: ANN401
    """Return the pointer to the priority at any instant: the user's function, or the policy's."""
    given = parameters.get("function")
    return _callback(given if callable(given) else policy.now or _stay, _NOW)
