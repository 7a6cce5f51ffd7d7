"""Lines of text files that are no rows: which they are, and how they stand in for rows.

A malformed line is a row without cells, but for its time, which says what is wrong: it is then
counted, reported or set aside as any row whose time does not read.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv

MARK = "malformed line "
"""How the cell of time of a malformed line begins."""
_SHOWN = 100


class MalformedError(Exception):
    """Lines of a CSV file are malformed, and not yet known by their places."""


def marked(text: str, reason: str) -> str:
    """Return what stands for the time of a malformed line."""
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f"{MARK}{shown!r} ({reason})"


def csv_lines(file: pa.NativeFile, delimiter: str, block: int) -> dict[int, str]:
    """Return the malformed lines of a CSV file, by their rows, counted from 0, and what they are.

    Parameters
    ----------
    file : pyarrow.NativeFile
    delimiter : str
    block : int
        Bytes that are read at once.
    """
    found: dict[int, str] = {}

    def note(line: pv.InvalidRow) -> str:
        cells = f"{line.actual_columns} cell{'s' if line.actual_columns != 1 else ''}"
        wanted = f"where the header has {line.expected_columns}"
        found[line.number - 2] = marked(line.text, f"{cells}, {wanted}")
        return "skip"

    pv.read_csv(
        file,  # by one thread, which alone counts; and no column is kept
        read_options=pv.ReadOptions(block_size=block, use_threads=False),
        parse_options=pv.ParseOptions(
            delimiter=delimiter, newlines_in_values=True, invalid_row_handler=note
        ),
        convert_options=pv.ConvertOptions(include_columns=["\0"], include_missing_columns=True),
    )
    return found


def with_gaps(batch: pa.RecordBatch, first: int, lines: Mapping[int, str]) -> pa.RecordBatch:
    """Return rows of a file with a row of nulls for each malformed line that precedes one of them.

    Parameters
    ----------
    batch : pyarrow.RecordBatch
    first : int
        Row of the file at which it begins.
    lines : mapping of int to str
        Of a row that is malformed, what it is.
    """
    bad = np.array([row for row in lines if row >= first], np.int64)
    bad.sort()
    before = bad - first - np.arange(bad.size)  # how many of the batch's rows precede each
    own = bad[before < batch.num_rows] - first
    if not own.size:
        return batch
    taken = np.zeros(batch.num_rows + own.size, np.int64)
    gap = np.zeros(taken.size, np.bool_)
    gap[own] = True
    taken[~gap] = np.arange(batch.num_rows)
    return batch.take(pa.array(taken, mask=gap))
