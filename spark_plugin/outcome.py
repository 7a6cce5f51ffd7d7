"""Tasks in Spark's workers: their outcomes, and what they load kept from garbage collection."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, NamedTuple

from engine.runtime.errors import WinnowError


class OtherwiseError(Exception):
    """Spark read an archive otherwise than tasks do, or than it did before: tasks must."""


class Outcome(NamedTuple):
    """What became of an item: its result, or why there is none.

    What the user can put right travels as a result: raised in a task, Spark would try in vain
    again, and log its stack each time. Any other error is raised, so that Spark does try again.
    """

    result: Any = None
    error: WinnowError | OtherwiseError | None = None


def attempt(function: Callable[[Any], Any], item: object) -> Outcome:
    """Return what becomes of an item."""
    try:
        return Outcome(result=function(item))
    except WinnowError as error:
        return Outcome(error=error)


_SETTLED: set[str] = set()


def settle(function: Callable[..., Any]) -> None:
    """Set aside what there is, garbage apart, once in a process for each function that tasks run.

    Spark's daemon collects garbage after every task. With the 130,000 objects of numba, scipy and
    pyarrow that takes 68 ms of CPU, most of what a small task takes: 80 ms, against 20 without.
    Called at the end of a task, when what the function imports has been imported.
    """
    name = f"{function.__module__}.{getattr(function, '__qualname__', '')}"
    if name not in _SETTLED:
        _SETTLED.add(name)
        gc.collect()
        gc.freeze()
