"""The outcome of work on Spark: a result, or an error that the user can correct."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from engine.runtime.errors import WinnowError


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
