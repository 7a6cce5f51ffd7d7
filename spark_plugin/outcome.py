"""Tasks in Spark's workers: their outcomes, and what they load kept from garbage collection."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from engine.runtime.errors import InputError, WinnowError


class OtherwiseError(Exception):
    """Spark read an archive differently than tasks do, or than before: tasks must read it."""


class Outcome(NamedTuple):
    """The outcome of an item: its result, or why there is none.

    An error that the user can correct travels as a result: if a task raised it, Spark would retry
    in vain and log a stack trace each time. Other errors are raised, so that Spark retries.
    """

    result: Any = None
    error: WinnowError | OtherwiseError | None = None


def attempt(function: Callable[[Any], Any], item: object) -> Outcome:
    """Return the outcome of an item."""
    try:
        return Outcome(result=function(item))
    except WinnowError as error:
        return Outcome(error=error)


_SETTLED: set[str] = set()


def settle(function: Callable[..., Any]) -> None:
    """Freeze all live objects (`gc.freeze`), once per process and function that tasks run.

    Spark's daemon collects garbage after every task. With the 130,000 objects of numba, scipy and
    pyarrow this takes 68 ms of CPU: a small task takes 80 ms instead of 20. Called at the end of a
    task, when what the function imports has been imported.
    """
    name = f"{function.__module__}.{getattr(function, '__qualname__', '')}"
    if name not in _SETTLED:
        _SETTLED.add(name)
        gc.collect()
        gc.freeze()


_FOUND = re.compile(
    r"^engine\.runtime\.errors\.\w+: (.+)$"
    r"|^(?:\[USER_RAISED_EXCEPTION\]|Caused by: java\.lang\.RuntimeException:) "
    r"((?:the )?column .+ of the (?:stream|fact) DataFrame: .+?)(?: SQLSTATE: \w+)?$",
    re.MULTILINE,
)
"""What a task, or Spark for a look-up, says of a row."""


@contextmanager
def told() -> Iterator[None]:
    """Raise what a query has found wrong with its rows as `InputError`, without a task's stack."""
    try:
        yield
    except Exception as error:  # Spark's, in Spark 3.5 py4j's too
        found = _FOUND.search(str(error))
        if found is None:
            raise
        raise InputError(found[1] or found[2]) from None
