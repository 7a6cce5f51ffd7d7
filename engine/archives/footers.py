"""What the footers of Parquet files tell of their columns."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.folders import value_in
from engine.archives.source import Archive, read_error
from engine.runtime.jit import Floats, Ints
from engine.runtime.storage import reading

_LEAST, _MOST, _MOST_BYTES = 2, 1024, 16 << 20
_known: dict[tuple[str, int | str], pq.FileMetaData] = {}
_held = [0]
"""Bytes of the footers in `_known`."""
_lock = threading.Lock()
_NUMBERS = {bool, int, float, Decimal}


def footer_of(path: str, changed: int | str, side: str = "") -> pq.FileMetaData:
    """Return the footer of a file; `changed` tells versions of it apart.

    Raises
    ------
    InputError
        If it is gone or damaged since its archive was opened.

    Notes
    -----
    Those used last are kept, as far as they take `_MOST_BYTES` in their files: nine times as much
    in memory.
    """
    key = path, changed
    with _lock:
        if key in _known:
            _known[key] = _known.pop(key)  # the last one used
            return _known[key]
    try:
        with reading.parquet_file(path) as file:
            found = file.metadata
    except (pa.ArrowException, OSError) as error:
        raise read_error(path, side, changed, error) from error
    with _lock:
        if key not in _known:
            _held[0] += found.serialized_size
        _known[key] = found
        while len(_known) > _LEAST and (_held[0] > _MOST_BYTES or len(_known) > _MOST):
            _held[0] -= _known.pop(next(iter(_known))).serialized_size
    return found


def stored(footer: pq.FileMetaData, columns: Sequence[str]) -> list[int]:
    """Return the numbers of stored columns, of which a nested one has several."""
    paths = [footer.schema.column(i).path for i in range(footer.num_columns)]
    return [
        i for i, path in enumerate(paths) if path in columns or path.partition(".")[0] in columns
    ]


def may_lack(archive: Archive, columns: Sequence[str]) -> bool:
    """Return whether a row may have a null in some columns, as far as footers tell."""
    for file in archive.files:
        if any(
            not value_in(file.path, own).is_valid for own in archive.folders if own.name in columns
        ):
            return True
        footer = footer_of(file.path, file.changed)
        for i in stored(footer, columns):
            for at in range(footer.num_row_groups):
                known = footer.row_group(at).column(i).statistics
                if known is None or not known.has_null_count or known.null_count:
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
            for at in np.flatnonzero(file == which).tolist():
                found[at] = range_of(footer.row_group(int(number[at])).column(places[0]))
    return found


def range_of(column: Any) -> tuple[float, float]:  # noqa: ANN401 - metadata
    """Return the least and the greatest value of a column in a row group, NaN if not told."""
    known = column.statistics
    if known is None or not known.has_min_max:
        return math.nan, math.nan
    low, high = known.min, known.max
    return (float(low), float(high)) if type(low) in _NUMBERS else (math.nan, math.nan)
