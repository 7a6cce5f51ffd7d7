"""Columns that names of folders hold, as Hive, Spark and Arrow write them: ``day=2024-03-01``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.types as pt

from engine.runtime.columns import beside
from engine.runtime.errors import InputError
from engine.runtime.storage.uris import Uri

NULL = "__HIVE_DEFAULT_PARTITION__"
"""Stands for a null, and for an empty text."""
NONE = pa.schema([])
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def folder_columns(where: str, paths: Sequence[str], side: str) -> pa.Schema:
    """Return the columns that the folders of an archive's files hold.

    A folder named ``name=value`` gives every row below it a value, null for `NULL`. A column is of
    integers (int32, int64 if that is too small) or dates if all its values are, else of text, as
    Spark and Arrow infer. Names and values are decoded, as in ``at=10%3A00``.

    Parameters
    ----------
    where : str
        As the user gave it. Folders above a relative path count for nothing.
    paths : sequence of str
        Absolute.
    side : str
        For messages.

    Raises
    ------
    InputError
        If some files lie in such folders and others do not.
    """
    here = isinstance(where, Uri) or Path(where).is_absolute()
    above = 0 if here else len(Path.cwd().parts)
    found = [_texts(path, above) for path in paths]
    for path, own in zip(paths, found, strict=True):
        odd = sorted(own.keys() ^ found[0].keys())
        if odd:
            pair = (paths[0], path) if odd[0] in found[0] else (path, paths[0])
            raise InputError(
                f"the {side} archive mixes folders: {pair[0]} lies in a folder {odd[0]}=..., which "
                f"gives its rows a column, and {pair[1]} in none: give a glob of those that are "
                "alike"
            )
    names = list(found[0]) if found else []
    return pa.schema([(name, _kind({own[name] for own in found})) for name in names])


@lru_cache(maxsize=256)
def _texts(path: str, above: int = 0) -> dict[str, str | None]:
    """Return the values in a path by their names, the lower of two of one name."""
    parts = path.below.split("/") if isinstance(path, Uri) else Path(path).parts
    pairs = (part.partition("=") for part in parts[above:-1])
    values = ((unquote(name), unquote(value)) for name, equals, value in pairs if name and equals)
    return {name: value if value not in ("", NULL) else None for name, value in values}


def _kind(texts: Iterable[str | None]) -> pa.DataType:
    known = [text for text in texts if text is not None]
    if known and all(map(_INTEGER.fullmatch, known)):
        widest = max(max(own, -own - 1).bit_length() for own in map(int, known))
        return pa.int32() if widest < 32 else pa.int64() if widest < 64 else pa.string()
    return pa.date32() if known and all(map(_is_date, known)) else pa.string()


def _is_date(text: str) -> bool:
    try:
        return bool(_DATE.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def value_in(path: str, field: pa.Field) -> pa.Scalar:
    """Return the value that the folders of a file hold for a column of `folder_columns`."""
    text = _texts(path)[field.name]
    if text is None or pt.is_string(field.type):
        return pa.scalar(text, field.type)
    value = date.fromisoformat(text) if pt.is_date(field.type) else int(text)
    return pa.scalar(value, field.type)


def in_files(columns: Iterable[str], folders: pa.Schema) -> list[str]:
    """Return those of some columns that files hold themselves, not folders."""
    return [name for name in columns if name not in folders.names]


def completed(table: pa.Table, path: str, columns: Sequence[str], folders: pa.Schema) -> pa.Table:
    """Return columns of a file's rows, of which `table` has those of `in_files`."""
    found = {
        field.name: pa.repeat(value_in(path, field), table.num_rows)
        for field in folders
        if field.name in columns
    }
    return beside(table, pa.table(found)).select(columns)
