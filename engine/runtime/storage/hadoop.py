"""Objects of HDFS: put whole, listed and removed, as those of object stores are.

What is put is written beside its place and renamed, which HDFS does at once, and refuses where a
file has the name.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs

from engine.runtime.errors import OutputError
from engine.runtime.storage.reading import located, refusal
from engine.runtime.storage.uris import Uri


class HadoopFile(NamedTuple):
    """A file below a folder."""

    name: str
    """Without the folder."""
    changed: datetime
    size: int


@contextmanager
def _told(uri: Uri) -> Iterator[tuple[pafs.FileSystem, str]]:
    """Yield a file system and a path there; what goes wrong is an `OutputError`."""
    system, path = located(uri, "written")
    try:
        yield system, path
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileExistsError):
            raise
        raise OutputError(refusal(uri, error, "written")) from error


def put(
    uri: Uri, content: bytes | Path | IO[bytes], *, new: bool, draft: Uri | None = None
) -> None:
    """Put a file, whole; see `engine.runtime.storage.uploads.put`."""
    with _told(uri) as (system, path):
        folder, _, name = path.rpartition("/")
        home = folder if draft is None else located(draft, "written")[1].rstrip("/")
        own = f"{home}/.{name}.{uuid.uuid4().hex}.tmp"
        if folder:
            system.create_dir(folder)
        try:
            _write(system, own, content)
            if not new and _there(system, path):
                system.delete_file(path)
            if new and _there(system, path):
                raise FileExistsError(uri)
            try:
                system.move(own, path)
            except OSError as error:
                if new and _there(system, path):
                    raise FileExistsError(uri) from error
                raise
        finally:
            if _there(system, own):
                system.delete_file(own)


def _write(system: pafs.FileSystem, path: str, content: bytes | Path | IO[bytes]) -> None:
    with system.open_output_stream(path) as out:
        if isinstance(content, Path):
            with content.open("rb") as file:
                shutil.copyfileobj(file, out)
        else:
            shutil.copyfileobj(BytesIO(content) if isinstance(content, bytes) else content, out)


def _there(system: pafs.FileSystem, path: str) -> bool:
    return bool(system.get_file_info(path).type != pafs.FileType.NotFound)


def files(folder: Uri) -> list[HadoopFile]:
    """Return the files below a folder, also those on their way."""
    with _told(folder) as (system, path):
        if not _there(system, path):
            return []
        found = system.get_file_info(pafs.FileSelector(path, recursive=True))
        named = ((own.path.partition(f"{path.rstrip('/')}/")[2], own) for own in found)
        return [
            HadoopFile(name, own.mtime, own.size)
            for name, own in named
            if own.type == pafs.FileType.File
        ]


def remove(folder: Uri, names: Iterable[str]) -> None:
    """Remove files below a folder, and it if nothing is left in it."""
    with _told(folder) as (system, path):
        home = path.rstrip("/")
        folders = {home}
        for own in (f"{home}/{name}" for name in names):
            if _there(system, own):
                system.delete_file(own)
                folders.add(own.rpartition("/")[0])
        for own in sorted(folders - {""}, reverse=True):
            if _there(system, own) and not system.get_file_info(pafs.FileSelector(own)):
                system.delete_dir(own)
