"""The record of a report beside the outputs, by which ``winnow report`` shows it again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from engine.report.shown import Request, Shown
from engine.runtime.errors import InputError
from engine.runtime.storage.places import save_text
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.uris import Place, place_of

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


def keep_record(shown: Shown) -> None:
    """Write the record into the folder of outputs that a report names, if it names one.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    out = shown.content.get("out")
    if out is None:
        return
    record = {
        "task": shown.task,
        "request": None if shown.request is None else shown.request.plain(),
        "report": shown.content,
    }
    save_text(place_of(out) / NAME, json.dumps(record, allow_nan=False) + "\n")


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
