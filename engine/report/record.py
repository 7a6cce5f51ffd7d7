"""The record of a report beside the outputs, by which ``winnow report`` shows it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from engine.report.recording import NAME
from engine.report.shown import Request
from engine.runtime.errors import InputError
from engine.runtime.storage.listing import members
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.uris import Place, Uri

_MAKE = (
    "give the folder that --out of replay, sweep, bound, sample, multijoin or lookup has written"
)


class Record(NamedTuple):
    """What was recorded."""

    task: str
    content: dict[str, Any]
    request: Request | None


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
    except ValueError as error:
        raise InputError(f"report {path} cannot be read ({error}): {_MAKE}") from None
    try:
        request = found["request"]
        return Record(
            found["task"], found["report"], None if request is None else Request.of(request)
        )
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path} cannot be read: it is no report of winnow, or damaged ({error!r}): {_MAKE}"
        ) from None
