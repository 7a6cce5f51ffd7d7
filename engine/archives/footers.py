"""What the footers of Parquet files tell of their columns."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.archives.folders import value_in
from engine.archives.footer_walk import HIGHEST, LONG, LOW, LOWEST, TOLD, Walked, walked
from engine.archives.source import Archive, read_error
from engine.runtime.jit import Floats, Ints
from engine.runtime.storage import reading
from engine.runtime.storage.footers import keep, kept

_NUMBERS = {bool, int, float, Decimal}
_BITS = {
    "INT32": (np.int32, np.int32), "INT64": (np.int64, np.int64),
    "FLOAT": (np.float32, np.int32), "DOUBLE": (np.float64, np.int64),
}  # fmt: skip
"""Types of values, and of their bits."""


def footer_of(path: str, changed: int | str, side: str = "") -> pq.FileMetaData:
    """Return the footer of a file; `changed` tells versions of it apart.

    Raises
    ------
    InputError
        If it is gone or damaged since its archive was opened.
    """
    found = kept(path, changed)
    if found is None:
        try:
            with reading.parquet_file(path) as file:
                found = file.metadata
        except (pa.ArrowException, OSError) as error:
            raise read_error(path, side, changed, error) from error
        keep(path, changed, found)
    return found


def stored(footer: pq.FileMetaData, columns: Sequence[str]) -> list[int]:
    """Return the numbers of stored columns, of which a nested one has several."""
    paths = [footer.schema.column(i).path for i in range(footer.num_columns)]
    return [
        i for i, path in enumerate(paths) if path in columns or path.partition(".")[0] in columns
    ]


class Chunks(NamedTuple):
    """What a footer tells of stored columns in its row groups: (groups, columns) each."""

    rows: Ints
    """(groups,) int64."""
    bytes: Ints
    """As they are stored."""
    nulls: Ints
    """How many; -1 where that is not told."""
    low: Ints
    high: Ints
    """`low`, `high`: Of values of 4 or 8 bytes their bits, int64."""
    told: NDArray[np.bool_]
    """Whether these are."""


def chunks_of(footer: pq.FileMetaData, columns: Sequence[int]) -> Chunks:
    """Return what a footer tells of stored columns, which are given by their numbers."""
    places = list(dict.fromkeys(columns))
    long = footer.serialized_size >= LONG
    rows, found = (walked(footer, places) if long else None) or one_by_one(footer, places)
    found = found[:, [places.index(i) for i in columns]]
    bytes_, nulls, low, high, told = np.moveaxis(found, 2, 0)
    both = LOWEST | HIGHEST
    signed = np.array([not _unsigned(footer.schema.column(i)) for i in columns], bool)
    known = (told & both == both) | ((told >> 2 == both) & signed)  # older ones only if signed
    return Chunks(rows, bytes_, nulls, low, high, known)


def one_by_one(footer: pq.FileMetaData, columns: Sequence[int]) -> Walked:
    """Return what PyArrow tells of stored columns, as `walked` does."""
    rows = np.zeros(footer.num_row_groups, np.int64)
    found = np.zeros((rows.size, len(columns), TOLD + 1), np.int64)
    bits = [_BITS.get(footer.schema.column(i).physical_type) for i in columns]
    for number in range(rows.size):
        group = footer.row_group(number)
        rows[number] = group.num_rows
        for at, (i, kinds) in enumerate(zip(columns, bits, strict=True)):
            chunk = group.column(i)
            known = chunk.statistics
            nulls = -1 if known is None or not known.has_null_count else known.null_count
            found[number, at, :LOW] = chunk.total_compressed_size, nulls
            if kinds and known is not None and known.has_min_max:
                ends = np.array([known.min_raw, known.max_raw], kinds[0]).view(kinds[1])
                found[number, at, LOW:] = *ends.tolist(), LOWEST | HIGHEST
    return Walked(rows, found)


def _unsigned(column: Any) -> bool:  # noqa: ANN401 - a ColumnSchema
    logical = json.loads(column.logical_type.to_json())
    return logical.get("Type") == "Int" and not logical["isSigned"]


def may_lack(archive: Archive, columns: Sequence[str]) -> bool:
    """Return whether a row may have a null in some columns, as far as footers tell."""
    for file in archive.files:
        if any(
            not value_in(file.path, own).is_valid for own in archive.folders if own.name in columns
        ):
            return True
        footer = footer_of(file.path, file.changed)
        if chunks_of(footer, stored(footer, columns)).nulls.any():
            return True
    return False


def ranges(archive: Archive, file: Ints, number: Ints, column: str) -> Floats:
    """Return the least and the greatest value that a column of numbers has in row groups.

    Parameters
    ----------
    archive : Archive
    file, number : (groups,) int64
        Place of the file in the archive, and of the row group in it.
    column : str

    Returns
    -------
    (groups, 2) float64
        NaN where footers do not tell.
    """
    found = np.full((file.size, 2), math.nan)
    for which in np.unique(file).tolist():
        one = archive.files[which]
        footer = footer_of(one.path, one.changed)
        places = stored(footer, [column])
        if len(places) == 1:
            own = np.flatnonzero(file == which)
            found[own] = ranges_in(footer, places[0])[number[own]]
    return found


def ranges_in(footer: pq.FileMetaData, column: int) -> Floats:
    """Return the same of all row groups of a file, of a stored column: (groups, 2) float64."""
    stated = footer.schema.column(column)
    kind, logical = stated.physical_type, json.loads(stated.logical_type.to_json())
    if kind not in _BITS or logical["Type"] not in ("Int", "None") or _unsigned(stated):
        groups = map(footer.row_group, range(footer.num_row_groups))
        return np.array([_range(group.column(column)) for group in groups]).reshape(-1, 2)
    known = chunks_of(footer, [column])
    own, bits = _BITS[kind]
    ends = np.concatenate([known.low, known.high], axis=1).astype(bits).view(own)
    return np.where(known.told, ends.astype(np.float64), math.nan)


def _range(column: Any) -> tuple[float, float]:  # noqa: ANN401 - metadata
    """Return the least and the greatest value of a column in a row group, NaN if not told."""
    known = column.statistics
    if known is None or not known.has_min_max:
        return math.nan, math.nan
    low, high = known.min, known.max
    return (float(low), float(high)) if type(low) in _NUMBERS else (math.nan, math.nan)
