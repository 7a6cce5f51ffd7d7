"""The record of a report, which jobs commit with their outputs. Every command loads this."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from engine.report.shown import Request

NAME = "_report.json"
"""Readers of Parquet pass over files whose names begin like this."""


class _Told(NamedTuple):
    """What jobs do not know of their records."""

    asked: Callable[[], Request] | None = None
    settle: Callable[[dict[str, Any]], None] | None = None


_NOTHING = _Told()
_TOLD: ContextVar[_Told] = ContextVar("what records tell", default=_NOTHING)


@contextmanager
def recording(**told: Callable[..., Any]) -> Iterator[None]:
    """Say what the records of jobs in the block are to have.

    Parameters
    ----------
    asked : callable, optional
        Returns the request.
    settle : callable, optional
        Gives a report, as JSON holds it, what the job does not know of it.
    """
    mark = _TOLD.set(_TOLD.get()._replace(**told))
    try:
        yield
    finally:
        _TOLD.reset(mark)


def record_of(task: str, content: dict[str, Any]) -> str:
    """Return the record of a report, to be committed with the outputs as `NAME`."""
    asked, settle = _TOLD.get()
    if settle is not None:
        settle(content)
    request = None if asked is None else asked().plain()
    record = {"task": task, "request": request, "report": content}
    return json.dumps(record, allow_nan=False) + "\n"
