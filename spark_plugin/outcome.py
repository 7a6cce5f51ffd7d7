"""What becomes of work that Spark did: its result, or what the user can put right."""

from __future__ import annotations

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
