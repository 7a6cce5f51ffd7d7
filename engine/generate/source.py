"""What the generators share: seeded draws, sources of record batches, checks, writing files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import IntEnum
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from engine.runtime.errors import OutputError, SpecError, did_you_mean
from engine.runtime.executors import Progress, silent
from engine.runtime.storage.disk import undone_at_end

ROW_GROUP_ROWS = 2**16
"""Rows of a record batch, and of a row group of a written archive."""

KEYED_SCHEMA = pa.schema(
    [
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("key", pa.int64(), nullable=False),
        pa.field("importance", pa.float64(), nullable=False),
        pa.field("payload", pa.int64(), nullable=False),
    ]
)
"""Streams with a join attribute; ``payload`` is the row's sequence number."""


class Purpose(IntEnum):
    """What a sequence of draws is for: each purpose of each stream has a sequence of its own."""

    KEY = 0
    IMPORTANCE = 1
    ARRIVAL = 2
    TIE = 3
    PERMUTATION = 4
    BUCKET = 5
    MEMBER = 6
    NOISE = 7


class StreamSource(NamedTuple):
    """A stream that can be generated, again and again, in pieces of any size."""

    schema: pa.Schema
    """Columns of every batch."""
    batches: Callable[[int], Iterator[pa.RecordBatch]]
    """``batches(chunk_rows)`` yields the stream's record batches, all of `chunk_rows` rows but the
    last. The rows do not depend on `chunk_rows`."""
    rows: int = 0
    """About how many there will be; 0 if that is not known."""


def draws(seed: int, purpose: Purpose, stream: int) -> np.random.Generator:
    """Return the generator of one purpose of one stream.

    The n-th draw is a row's n-th, whatever else is drawn and in whatever pieces: so rows depend
    neither on the chunk size nor, for the rows in front, on how many follow.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(int(purpose), stream))
    return np.random.Generator(np.random.PCG64(sequence))


def in_memory(sources: Iterable[StreamSource]) -> tuple[pa.Table, ...]:
    """Return the whole streams of sources in memory."""
    return tuple(
        pa.Table.from_batches(list(source.batches(ROW_GROUP_ROWS)), schema=source.schema)
        for source in sources
    )


def chunk_lengths(rows: int, chunk_rows: int) -> Iterator[tuple[int, int]]:
    """Yield (first row, row count) of every chunk of `rows` rows."""
    for first in range(0, rows, chunk_rows):
        yield first, min(chunk_rows, rows - first)


def check_range(name: str, value: float, low: float, high: float = math.inf) -> None:
    """Raise SpecError unless `value` is a finite number from `low` to `high`.

    Examples
    --------
    >>> check_range("skew-left", -1, 0)
    Traceback (most recent call last):
    ...
    engine.runtime.errors.SpecError: skew-left -1 must be 0 or more
    """
    if math.isfinite(value) and low <= value <= high:
        return
    wanted = f"{low} or more" if high == math.inf else f"from {low} to {high}"
    if value == high:
        wanted = f"finite, and {wanted}"
    raise SpecError(f"{name} {value} must be {wanted}")


def check_name(name: str, value: str, known: Sequence[str]) -> None:
    """Raise SpecError unless `value` is one of the `known` names."""
    if value not in known:
        hint = did_you_mean(value, known)
        raise SpecError(f"{name} '{value}' is not known: use one of {', '.join(known)}.{hint}")


def check_seed(seed: int) -> None:
    """Raise SpecError unless `seed` can start the draws."""
    check_range("seed", seed, 0, 2**64 - 1)


def exact_ratio(name: str, value: float) -> Fraction:
    """Return `value` as the fraction that was meant, 0.1 as 1/10, checked to be positive.

    Raises
    ------
    SpecError
        If `value` is not between 1e-9 and 1e9.
    """
    check_range(name, value, 1e-9, 1e9)
    return Fraction(repr(float(value))).limit_denominator(10**9)


FORMATS = ("parquet", "csv")


def write_streams(
    folder: Path,
    sources: Mapping[str, StreamSource],
    file_format: str = "parquet",
    *,
    overwrite: bool = False,
    progress: Progress = silent,
) -> dict[Path, int]:
    """Write each source to ``folder/NAME.FORMAT``.

    Every file is written under a temporary name; all are renamed once all are complete. A row
    group has 2**16 rows, and no more than one batch of rows is held, so memory does not grow with
    the rows. The bytes depend on the sources and the version of pyarrow alone.

    Parameters
    ----------
    folder : Path
        Created if missing.
    sources : mapping of str to StreamSource
        Streams by file name, without its suffix.
    file_format : str
        ``parquet`` or ``csv`` (with a header line).
    overwrite : bool
        Write into a folder that has files. Files of the same names are replaced, others are left.
    progress : callable, optional
        Called as ``progress("rows", done, total)``.

    Returns
    -------
    dict of Path to int
        Rows written to each file.

    Raises
    ------
    SpecError
        If the format is not known.
    OutputError
        If the folder has files and `overwrite` is off, or it cannot be written.
    """
    check_name("format", file_format, FORMATS)
    folder = Path(folder)
    made = [own for own in (folder, *folder.parents) if not os.path.lexists(own)]
    finished: list[tuple[Path, Path]] = []
    written = {}
    through = _Through(progress, sum(source.rows for source in sources.values()))
    with undone_at_end(partial(_undo, finished, made)):
        try:
            _prepare(folder, overwrite=overwrite)
            for name, source in sources.items():
                target = folder / f"{name}.{file_format}"
                temporary = folder / f".{name}.{file_format}.{os.getpid()}.tmp"
                finished.append((temporary, target))
                written[target] = _write(temporary, source, file_format, through)
            for temporary, target in finished:
                temporary.replace(target)
        except OutputError:
            raise
        except OSError as error:
            raise OutputError(
                f"folder {folder} cannot be written: {error}; free the place or give another folder"
            ) from error
    return written


class _Through:
    """The rows that have been written, of about so many."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._rows = progress, total, 0
        progress("rows", 0, total)

    def more(self, rows: int) -> None:
        self._rows += rows
        self._progress("rows", self._rows, max(self._rows, self._total))


def _undo(finished: Sequence[tuple[Path, Path]], made: Sequence[Path]) -> None:
    """Remove files that have not been renamed, and folders that were made and are empty."""
    with suppress(OSError):
        for temporary, _ in finished:
            temporary.unlink(missing_ok=True)
        for folder in made:
            folder.rmdir()


def _prepare(folder: Path, *, overwrite: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file, not a folder: give another folder")
    folder.mkdir(parents=True, exist_ok=True)
    present = sorted(entry.name for entry in folder.iterdir())
    if present and not overwrite:
        raise OutputError(
            f"folder {folder} has {len(present)} entries, {present[0]} among them: give an empty "
            "folder, or --overwrite to replace files of the same name"
        )


def _write(path: Path, source: StreamSource, file_format: str, through: _Through) -> int:
    rows = 0
    with path.open("wb") as sink, _writer(sink, source.schema, file_format) as writer:
        for batch in source.batches(ROW_GROUP_ROWS):
            writer.write_batch(batch)
            rows += batch.num_rows
            through.more(batch.num_rows)
    return rows


def _writer(
    sink: BinaryIO, schema: pa.Schema, file_format: str
) -> pyarrow.csv.CSVWriter | pq.ParquetWriter:
    if file_format == "csv":
        return pyarrow.csv.CSVWriter(sink, schema)
    # Sequences have no repeats for a dictionary to find, and looking for them costs time.
    repeating = [name for name in schema.names if name in ("key", "importance")]
    return pq.ParquetWriter(sink, schema, use_dictionary=repeating)
