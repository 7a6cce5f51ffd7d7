"""Files that are there whole or not at all, and what is said of a disk that is full."""

from __future__ import annotations

import errno
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.runtime.errors import OutputError

_FULL = {errno.ENOSPC, errno.EDQUOT}


def is_full(error: BaseException) -> bool:
    """Return whether an error says that a disk, or the share of it that one may use, is full."""
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def full_disk_told(what: str, place: Path, remedy: str) -> Iterator[None]:
    """Raise `OutputError` where a disk is found full.

    Parameters
    ----------
    what : str
        What `place` is: "output folder".
    place : Path
        It or something near it is on the disk.
    remedy : str
        What helps beside freeing space: "give another --out".

    Raises
    ------
    OutputError
        In place of an `OSError` of a full disk. Other errors pass.
    """
    try:
        yield
    except OSError as error:
        if not is_full(error) or isinstance(error, OutputError):
            raise
        raise OutputError(
            f"{what} {place} cannot be written, its disk is full ({_free(place)}): free space on "
            f"it, or {remedy}"
        ) from error


def _free(place: Path) -> str:
    for near in (place, *place.parents):
        try:
            usage = shutil.disk_usage(near)
        except OSError:
            continue
        return f"{usage.free:,} of {usage.total:,} bytes are free"
    return "its free space is unknown"


@contextmanager
def whole_file(path: Path, aside: Path) -> Iterator[Path]:
    """Yield a name of this attempt's own in `aside`; the file takes its place when all went well.

    Attempts that write the same file at once do not disturb each other or who reads it: `path` is
    always one of them, whole.
    """
    own = aside / uuid.uuid4().hex
    try:
        yield own
        own.replace(path)
    finally:
        own.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a folder, under another name: who still writes into it finds it gone, at once."""
    gone = folder.parent / f".{uuid.uuid4().hex}.gone"
    try:
        folder.rename(gone)
    except OSError:
        return  # it is not there, or no more than it can be left
    shutil.rmtree(gone, ignore_errors=True)
