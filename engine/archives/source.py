"""Archives: the files of one stream, found and looked at but not yet read."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives import texts
from engine.archives.finding import ENDINGS, paths_of
from engine.archives.folders import NONE, folder_columns
from engine.archives.footer_walk import LONG, note
from engine.archives.readers import format_of
from engine.archives.text_schemas import reconciled
from engine.runtime.columns import first_repeated
from engine.runtime.errors import InputError
from engine.runtime.jit import Ints
from engine.runtime.storage import reading
from engine.runtime.storage.uris import Uri, source_of
from engine.runtime.streams import SIDES

TABLE, FRAME = "(a table)", "(a DataFrame)"
"""Where streams are that are no files."""
IN_MEMORY = {TABLE: "table", FRAME: "DataFrame"}
"""What messages call them."""
_MAGIC = b"PAR1"
_END = 4 + len(_MAGIC)
"""Bytes of a Parquet file behind its footer: how long that is, and the magic number."""


@dataclass(frozen=True)
class ArchiveFile:
    """One file of an archive.

    Attributes
    ----------
    path : str
        Absolute, or a `Uri`.
    rows : int, optional
        Known from the footer of Parquet, None for text.
    size : int
    changed : int or str
        `size`, `changed`: By which a changed file is noticed, as those of
        `engine.runtime.storage.reading.State`.
    groups : (n, 2) int64
        Rows and bytes of each row group of Parquet, none for text.
    """

    path: str
    rows: int | None
    size: int
    changed: int | str
    groups: Ints = field(default_factory=lambda: np.zeros((0, 2), np.int64), compare=False)

    @property
    def name(self) -> str:
        """The path as messages show it: relative where it lies below the current folder."""
        if isinstance(self.path, Uri):
            return self.path
        try:
            below = os.path.relpath(self.path)
        except FileNotFoundError:  # the current folder is gone
            return self.path
        return self.path if below.startswith("..") else below


@dataclass(frozen=True)
class Archive:
    """The files of one stream in order, which is the order of its rows.

    Attributes
    ----------
    where, side : str
        As the user gave them, for messages.
    format : {"parquet", "csv", "json", "arrow"}
        One for all files.
    files : tuple of ArchiveFile
        By path.
    schema : pyarrow.Schema
        Of every row: what files hold, and then what their folders do. Of text: as inferred from
        the first block of each file and reconciled.
    folders : pyarrow.Schema
        The columns that names of folders hold (`engine.archives.folders`).
    """

    where: str
    side: str
    format: str
    files: tuple[ArchiveFile, ...]
    schema: pa.Schema
    folders: pa.Schema = NONE

    @property
    def called(self) -> str:
        """What messages call it: "the left archive", or "stream a" where streams have names."""
        if self.side not in (*SIDES, "fact", "stream"):
            return f"stream {self.side}"
        return f"the {self.side} {IN_MEMORY.get(self.where, 'archive')}"

    @property
    def placed(self) -> str:
        """The same with the place of its files."""
        return self.called if self.where in IN_MEMORY else f"{self.called} {self.where}"

    @property
    def copied(self) -> bool:
        """Whether its files are copied as Parquet before they are read."""
        return self.format != "parquet"

    @property
    def stored(self) -> pa.Schema:
        """What every file holds itself."""
        return pa.schema([field for field in self.schema if field.name not in self.folders.names])

    @property
    def fingerprint(self) -> str:
        """Digest of path, size, and modification time or ETag of every file; and types."""
        read = self.schema if self.copied else self.folders
        digest = hashlib.sha256("".join(f"{own}\0" for own in read).encode())
        for file in self.files:
            digest.update(f"{file.path}\0{file.size}\0{file.changed}\n".encode())
        return digest.hexdigest()


def open_archive(where: str, side: str) -> Archive:
    """Find the files of a stream and read their schemas.

    Parameters
    ----------
    where : str
        A file, a folder (searched to any depth) or a glob, or the URI of one. Names that start
        with ``.`` or ``_`` are skipped, as Spark and Arrow do.
    side : {"left", "right", "stream", "fact"}
        For messages.

    Raises
    ------
    InputError
        If nothing is there, formats or schemas differ, or a file cannot be read.
    """
    where = source_of(where)
    paths = paths_of(where, side)
    formats = {path: format_of(path) for path in paths}
    for path, kind in formats.items():
        if kind is None:
            raise InputError(
                f"the {side} archive: file {path} is no archive by its name, which must end in "
                f"{ENDINGS}; move it away or give a glob of the files that are meant"
            )
    kinds = sorted({str(kind) for kind in formats.values()})
    if len(kinds) > 1:
        first, second = (next(p for p in paths if formats[p] == kind) for kind in kinds)
        raise InputError(
            f"the {side} archive {where} mixes formats: {first} and {second}: give a glob that "
            "takes one of them"
        )
    if kinds != ["parquet"]:
        schemas = reading.each(lambda path: texts.first_schema(path, side), paths)
        pairs = zip(paths, schemas, strict=True)
        given = [own for own in pairs if own[1].names or kinds != ["json"]]
        if not given:
            raise InputError(
                f"the {side} archive: file {paths[0]} is empty: it needs an object on a line"
            )
        states = reading.each(reading.state_of, paths)
        files = [ArchiveFile(path, None, *own) for path, own in zip(paths, states, strict=True)]
        return _archive(where, side, kinds[0], files, reconciled(given, side, kinds[0]))
    looked_at = reading.each(lambda path: _looked_at(path, side), paths)
    _check_same(paths, [schema for _, schema in looked_at], side)
    return _archive(where, side, "parquet", [file for file, _ in looked_at], looked_at[0][1])


def _archive(
    where: str, side: str, kind: str, files: Sequence[ArchiveFile], stored: pa.Schema
) -> Archive:
    """Return an archive; a column that files hold themselves is none of their folders."""
    named = folder_columns(where, [file.path for file in files], side)
    folders = pa.schema([field for field in named if field.name not in stored.names])
    return Archive(where, side, kind, tuple(files), pa.schema([*stored, *folders]), folders)


def group_sizes(footer: pq.FileMetaData) -> Ints:
    """Return the rows and bytes of each row group: (n, 2) int64."""
    found = np.zeros((footer.num_row_groups, 2), np.int64)
    for i in range(len(found)):  # thousands of tuples would have Python collect garbage
        group = footer.row_group(i)
        found[i] = group.num_rows, group.total_byte_size
    return found


def _looked_at(path: str, side: str) -> tuple[ArchiveFile, pa.Schema]:
    """Return a Parquet file and its schema."""
    try:
        state, opened = reading.parquet_now(path)
        with opened as file:
            schema, footer = file.schema_arrow.remove_metadata(), file.metadata
        if footer.serialized_size >= LONG and not isinstance(path, Uri):
            _note_footer(path, state, footer)
    except (pa.ArrowException, OSError) as error:
        raise InputError(unreadable(path, side, error)) from error
    repeated = first_repeated(schema.names)
    if repeated is not None:
        raise InputError(
            f"the {side} archive: file {path} has more than one column {repeated}: rename one"
        )
    return ArchiveFile(path, footer.num_rows, *state, group_sizes(footer)), schema


def _note_footer(path: str, state: reading.State, footer: pq.FileMetaData) -> None:
    """Note the bytes of a file's footer, if it is still that file: these are read in no time."""
    with Path(path).open("rb") as file:
        file.seek(-footer.serialized_size - _END, os.SEEK_END)
        data = file.read()
    size = int.from_bytes(data[-_END : -len(_MAGIC)], "little")
    if data.endswith(_MAGIC) and size == footer.serialized_size and reading.state_of(path) == state:
        note(footer, data)


def unreadable(path: str, side: str, error: BaseException) -> str:
    """Return the message for a file that is damaged or cannot be opened.

    Raises
    ------
    MemoryError
        If that is the error.
    """
    if lacking := reading.lacking(path, error):
        return f"{_of(side)}: {lacking}"
    if isinstance(path, Uri) and isinstance(error, OSError):
        return f"{_of(side)}: {reading.refusal(path, error)}"
    reason = str(error).strip().split("\n")[0]
    return (
        f"{_of(side)}: file {path} is corrupt, truncated or no Parquet ({reason}): write it "
        "again or take it out of the archive"
    )


def _of(side: str) -> str:
    return f"the {side} archive" if side else "an archive"


def _check_same(paths: Sequence[str], schemas: Sequence[pa.Schema], side: str) -> None:
    """Refuse files whose columns or types differ from those of the first."""
    first = {field.name: field.type for field in schemas[0]}
    for path, schema in zip(paths[1:], schemas[1:], strict=True):
        own = {field.name: field.type for field in schema}
        for name in [*first, *own]:
            kinds = [
                f"type {side_types[name]}" if name in side_types else "no such column"
                for side_types in (first, own)
            ]
            if kinds[0] != kinds[1]:
                raise InputError(
                    f"the {side} archive mixes schemas: column {name} has {kinds[0]} in {paths[0]} "
                    f"and {kinds[1]} in {path}: write them alike or give a glob of those that are"
                )


def check_unchanged(archives: Iterable[Archive], unopened: Collection[str] = ()) -> None:
    """Raise `InputError` if a file is not what it was when its archive was opened.

    Those of some paths have not been read.
    """
    for archive in archives:
        files = [file for file in archive.files if file.path not in unopened]
        states = reading.each(reading.state_or_none, [file.path for file in files])
        for file, state in zip(files, states, strict=True):
            if state is None or state.changed != file.changed or state.size != file.size:
                raise _changed(file.path, archive.side, state)


def _changed(path: str, side: str, state: reading.State | None) -> InputError:
    remedy = "run again when it is complete"
    if state is None:
        remedy = "it is gone; run again once it is there"
    return InputError(f"{_of(side)}: file {path} changed while it was read: {remedy}")


def read_error(path: str, side: str, changed: int | str, error: BaseException) -> InputError:
    """Return the error of a file that cannot be read any further: whether it has changed.

    `side` is empty where it is not known.
    """
    state = reading.state_or_none(path)
    if state is None or state.changed != changed:
        return _changed(path, side, state)
    return InputError(unreadable(path, side, error))
