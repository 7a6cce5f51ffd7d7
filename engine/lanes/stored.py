"""One stream of a lane as it lies on disk.

Either a Parquet file into which the lane's runs were merged, or, where the archive was in time
order already, the runs themselves: the lane's pieces of them follow one another in time. Pieces
need no second pass to be written and are read as they lie, faster, at two to six times the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.lanes.runfiles import COLUMNS, RunRows, empty_columns
from engine.lanes.runs import TimedPiece
from engine.runtime.errors import InputError, WinnowError
from engine.runtime.storage.reading import lacking, parquet_file
from engine.runtime.storage.uris import Place, Uri, text_of

_GROUPS_FETCHED = 64
"""Row groups of a lane in an object store: about a million rows."""
READ_ROWS = 262_144
"""Rows of a Parquet file that are read at a time by default."""
Ticks = tuple[int, int]


class Span(NamedTuple):
    """Rows that are read together, and the times of the first and the last of them."""

    rows: int
    first: int
    last: int

    def meets(self, between: Ticks | None) -> bool:
        """Return whether there may be tuples from one tick to another, both included."""
        return between is None or (self.first <= between[1] and self.last >= between[0])


class Rows(Protocol):
    """The rows of a stream, open to be read in the order of time."""

    @property
    def schema(self) -> pa.Schema:
        """``_ts``, ``_row``, ``_key``, ``_importance`` and the columns that are kept."""

    def spans(self) -> list[Span]:
        """Return what is read together, in order."""

    def batches(
        self, columns: Sequence[str], *, between: Ticks | None = None, rows: int = READ_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows, or those from one tick to another, both included.

        Parameters
        ----------
        columns : sequence of str
            To be found by name in the batches; ``_ts`` among them where `between` is given.
        between : (int, int), optional
            Spans before and after are not read.
        rows : int
            Rows in a batch, at most; none is kept here. Fewer where a batch has columns beside
            those that every lane has.
        """


@contextmanager
def lanes_read(place: Place) -> Iterator[None]:
    """Raise `InputError` where prepared lanes in the block are found to be gone or damaged."""
    try:
        yield
    except (
        pa.ArrowException, OSError, ValueError, LookupError, ArithmeticError, AttributeError
    ) as error:  # fmt: skip
        if isinstance(error, WinnowError):
            raise
        if reason := lacking(text_of(place), error):
            raise InputError(f"prepared lanes: {reason}") from error
        said = str(error).strip().partition("\n")[0] or type(error).__name__
        raise InputError(
            f"prepared lanes {place} cannot be read ({said}): they were removed or damaged; remove "
            "what is left with winnow cache clean, and the --cache of this run if it had one, and "
            "run again"
        ) from error


class Stored(Protocol):
    """A stream of a lane: where it lies."""

    def open(self) -> AbstractContextManager[Rows]:
        """Open it to be read."""


@dataclass(frozen=True)
class MergedFile:
    """A Parquet file of its own."""

    path: Place

    @contextmanager
    def open(self) -> Iterator[Rows]:
        """Open the file, without Arrow's read-ahead, which keeps all row groups to the last batch.

        Read, not mapped: pages of a mapped file stay with the process. Of an object, some row
        groups are fetched together.
        """
        far = isinstance(self.path, Uri)
        with lanes_read(self.path):
            opened = parquet_file(
                text_of(self.path), pre_buffer=False, page_checksum_verification=True
            )
        with opened as file:
            yield _FileRows(self.path, file, _GROUPS_FETCHED if far else file.num_row_groups)


@dataclass(frozen=True)
class RunPieces:
    """Pieces of the runs in a folder, in the order of time; at least one."""

    folder: Path
    pieces: tuple[TimedPiece, ...]

    @contextmanager
    def open(self) -> Iterator[Rows]:
        """Open runs one by one as they are read."""
        yield _PieceRows(self.folder, self.pieces)


class _FileRows:
    def __init__(self, path: Place, file: pq.ParquetFile, together: int) -> None:
        self._path, self._file, self._together = path, file, together

    @property
    def schema(self) -> pa.Schema:
        return self._file.schema_arrow

    def spans(self) -> list[Span]:
        with lanes_read(self._path):
            metadata = self._file.metadata
            ts = metadata.schema.names.index("_ts")
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            found = [(group.num_rows, group.column(ts).statistics) for group in groups]
            return [Span(rows, times.min, times.max) for rows, times in found]

    def batches(
        self, columns: Sequence[str], *, between: Ticks | None = None, rows: int = READ_ROWS
    ) -> Iterator[pa.RecordBatch]:
        groups: Sequence[int] = range(self._file.num_row_groups)
        if between is not None:
            groups = [i for i, span in enumerate(self.spans()) if span.meets(between)]
        for begin in range(0, len(groups), self._together):
            some = groups[begin : begin + self._together]
            with lanes_read(self._path):
                for batch in self._file.iter_batches(rows, some, columns=list(columns)):
                    yield batch if between is None else _cut(batch, between)


class _PieceRows:
    def __init__(self, folder: Path, pieces: Sequence[TimedPiece]) -> None:
        self._folder = folder
        self._pieces = pieces

    @cached_property
    def schema(self) -> pa.Schema:
        with lanes_read(self._folder), closing(self._run(self._pieces[0])) as run:
            return run.schema

    def spans(self) -> list[Span]:
        return [_span(piece) for piece in self._pieces]

    def batches(
        self, columns: Sequence[str], *, between: Ticks | None = None, rows: int = READ_ROWS
    ) -> Iterator[pa.RecordBatch]:
        with lanes_read(self._folder):
            if any(name not in COLUMNS for name in columns):
                for _, run, start, stop in self._parts(between):
                    yield from run.batches(start, stop, columns, rows)
            else:
                yield from self._together(columns, between, rows)

    def _together(
        self, columns: Sequence[str], between: Ticks | None, rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of pieces one after the other in the same arrays: pieces may be small."""
        found: dict[str, NDArray[Any]] = {}
        size = filled = 0
        for left, run, start, stop in self._parts(between):
            at = start
            while at < stop:
                if filled == size:
                    size, filled = min(rows, left - (at - start)), 0
                    found = empty_columns(columns, size)
                count = min(stop - at, size - filled)
                run.fill(at, {name: own[filled : filled + count] for name, own in found.items()})
                at, filled = at + count, filled + count
                if filled == size:
                    yield pa.RecordBatch.from_pydict(found)
        if filled < size:
            yield pa.RecordBatch.from_pydict({name: own[:filled] for name, own in found.items()})

    def _parts(self, between: Ticks | None) -> Iterator[tuple[int, RunRows, int, int]]:
        """Yield runs, each open meanwhile, and which rows of them; and how many there are yet."""
        left = sum(piece.stop - piece.start for piece in self._pieces)
        for piece in self._pieces:
            if _span(piece).meets(between):
                with closing(self._run(piece)) as run:
                    ends = piece.start, piece.stop
                    if between is not None:
                        ends = run.between(*ends, *between)
                    yield left, run, *ends
            left -= piece.stop - piece.start

    def _run(self, piece: TimedPiece) -> RunRows:
        return RunRows(str(self._folder / piece.run))


def _span(piece: TimedPiece) -> Span:
    return Span(piece.stop - piece.start, piece.first, piece.last)


def _cut(batch: pa.RecordBatch, between: Ticks) -> pa.RecordBatch:
    times = batch.column(batch.schema.get_field_index("_ts")).to_numpy()
    low, high = np.searchsorted(times, between[0]), np.searchsorted(times, between[1], "right")
    return batch.slice(low, high - low)


def time_cuts(streams: Sequence[Stored | None], parts: int) -> list[int]:
    """Return the first ticks of the slices of time but the first, of about equal rows."""
    spans = []
    for stored in streams:
        if stored is not None:
            with stored.open() as rows:
                spans += rows.spans()
    spans.sort(key=lambda span: span.first)
    upto = np.cumsum([span.rows for span in spans])
    places = np.searchsorted(upto, [upto[-1] * part // parts for part in range(1, parts)])
    return sorted({spans[int(place)].first for place in places})
