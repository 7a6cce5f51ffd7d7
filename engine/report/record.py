"""The record of a report beside the outputs, by which ``winnow report`` shows it again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple

from engine.report.shown import Request
from engine.runtime.errors import InputError
from engine.runtime.storage.listing import members
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.uris import Place, Uri

NAME = "_report.json"
"""Readers of Parquet pass over files whose names begin like this."""
_MAKE = (
    "give the folder that --out of replay, sweep, bound, sample, multijoin or lookup has written"
)


class Record(NamedTuple):
    """What was recorded."""

    task: str
    content: dict[str, Any]
    request: Request | None


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


def recorded(folder: Place) -> Record:
    """Return what was recorded in a folder of outputs.

    Raises
    ------
    InputError
        If nothing was, or it cannot be read.
    """
    path = folder / NAME
    if isinstance(folder, Path) and not folder.is_dir():
        raise InputError(f"{folder} is no folder of outputs: {_MAKE}")
    try:
        if isinstance(folder, Uri):
            path = (members(folder) or {}).get(NAME, path)
        content = bytes_at(path)
    except OSError as error:
        raise InputError(f"report {path} cannot be read ({error}): {_MAKE}") from None
    if content is None:
        raise InputError(f"folder {folder} has no {NAME}, which holds its report: {_MAKE}")
    try:
        found = json.loads(content)
        request = found["request"]
        return Record(
            found["task"], found["report"], None if request is None else Request.of(request)
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"report {path} cannot be read ({error}): {_MAKE}") from None
