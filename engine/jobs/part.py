"""The parts of the output dataset: each lane writes one, and the driver puts them in place."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.archives.families import plain_type
from engine.archives.source import Archive
from engine.jobs.output import IDS, Output, PartWriter
from engine.jobs.pieces import bytes_a_row
from engine.lanes.facts import FactFile
from engine.lanes.manifest import Prepared
from engine.lanes.reader import LaneBatch
from engine.lanes.stored import lanes_read
from engine.runtime.errors import OutputError
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.uris import Place


class LanePart:
    """A lane's output on its way to a file of this attempt's own.

    Parameters
    ----------
    number : int, optional
        Of a slice of the lane.
    """

    def __init__(self, folder: Place, lane: int, number: int | None = None) -> None:
        own = f"part-{lane:05d}" + ("" if number is None else f"-{number:05d}")
        self._name = f"{own}.{uuid.uuid4().hex[:8]}.parquet"
        self._writer = PartWriter(folder / self._name)
        self.schema: pa.Schema | None = None

    def write(self, table: pa.Table) -> None:
        """Append output tuples."""
        self.schema = table.schema
        self._writer.write(table)

    def close(self) -> str | None:
        """Finish the file and return its name, None if there was no output."""
        return self._name if self._writer.close() else None


class _Arrived(NamedTuple):
    """The payload of rows that arrived together."""

    last: int
    """When the last of them did."""
    begin: int
    """Arrival number of the first."""
    table: pa.Table


class PayloadWindow:
    """Keeps one side's payload for as long as its rows are unexpired.

    Parameters
    ----------
    window : int
        W in ticks.

    Notes
    -----
    Memory: the payload of the window and three batches. No row is copied before it is taken.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._parts: deque[_Arrived] = deque()
        self._next = 0  # arrival number of the next row

    def push(self, ts: NDArray[np.int64], table: pa.Table) -> None:
        """Add a batch's rows; drop the batches that expired before it.

        The other side's first arrival of a batch can be long before this side's, but never before
        the last of an earlier batch.
        """
        if ts.size == 0:
            return
        reach = self._parts[-1].last - self._window if self._parts else 0
        while self._parts and self._parts[0].last < reach:
            self._parts.popleft()
        self._parts.append(_Arrived(int(ts[-1]), self._next, table.combine_chunks()))
        self._next += ts.size

    @property
    def width(self) -> float:
        """Mean bytes of a row that came last."""
        return bytes_a_row(part.table for part in [*self._parts][-1:])

    def take(self, seq: NDArray[np.int64]) -> pa.Table:
        """Return the payload of rows by their arrival numbers, in that order."""
        if seq.size == 0:
            return self._parts[-1].table.slice(0, 0)
        begins = np.array([part.begin for part in self._parts])
        number = np.searchsorted(begins, seq, "right") - 1
        order = np.argsort(number, kind="stable")
        used, at = np.unique(number[order], return_index=True)
        taken = [
            self._parts[which].table.take(pa.array(seq[rows] - begins[which]))
            for which, rows in zip(used, np.split(order, at[1:]), strict=True)
        ]
        if len(taken) == 1:  # in order already
            return taken[0]
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return pa.concat_tables(taken).combine_chunks().take(pa.array(place))


class MemberPayload:
    """The payload of both members of outputs, for as long as they can join.

    Parameters
    ----------
    windows : (int, int)
        W of left and right in ticks.
    """

    def __init__(self, windows: tuple[int, int]) -> None:
        self._windows = PayloadWindow(windows[0]), PayloadWindow(windows[1])
        self._empty = [False, False]  # sides of which no column is read

    def arrive(self, batch: LaneBatch) -> None:
        """Keep the payload of arrivals."""
        tables = batch.left_payload, batch.right_payload
        for side, (arrived, table) in enumerate(zip(batch[:2], tables, strict=True)):
            self._empty[side] = table is None or table.num_columns == 0
            if table is not None and table.num_columns:
                self._windows[side].push(arrived.ts, table)

    @property
    def width(self) -> float:
        """Mean bytes of both members' payload."""
        return sum(own.width for own in self._windows)

    def take(
        self, left_seq: NDArray[np.int64], right_seq: NDArray[np.int64]
    ) -> tuple[pa.Table, pa.Table]:
        """Return the payload of left and right members by their arrival numbers."""
        left, right = (
            pa.table({}) if empty else window.take(seq)
            for window, empty, seq in zip(
                self._windows, self._empty, (left_seq, right_seq), strict=True
            )
        )
        return left, right


class FactColumns:
    """What is written of the facts that join outputs."""

    def __init__(self, file: FactFile, payload: bool) -> None:
        self.rows = file.index().facts.row
        self.payload = file.payload() if payload else pa.table({})
        self.width = bytes_a_row([self.payload])


class Written(Protocol):
    """What a lane wrote."""

    @property
    def part(self) -> str | None:
        """Its file, None if it had no output."""
        ...

    @property
    def schema(self) -> pa.Schema | None:
        """The columns of that file."""
        ...

    @property
    def outputs(self) -> int:
        """The rows that it reports to have put there."""
        ...


def assemble_parts(
    output: Output,
    prepared: Prepared,
    archives: Sequence[Archive],
    results: Sequence[Written],
) -> None:
    """Put the lanes' parts and the rows that were set aside together, to be committed.

    `archives` are those whose columns are written: of left, right, and what joins them.
    """
    with output.writing():
        for rejected in prepared.rejected_files:
            target = output.whole / "_rejected"
            target.mkdir(exist_ok=True)
            with lanes_read(rejected):
                found = bytes_at(rejected)
                if found is None:
                    raise FileNotFoundError("it is gone")
            (target / rejected.name).write_bytes(found)
    schemas = [result.schema for result in results if result.schema is not None]
    parts = reported((result.part, result.outputs) for result in results)
    output.assemble(parts, schemas[0] if schemas else _empty_schema(prepared, archives))


def reported(results: Iterable[tuple[str | None, int]]) -> dict[str, int]:
    """Return the parts of results, each a part and the rows that it reports.

    Raises
    ------
    OutputError
        If one reports rows and has no part.
    """
    parts: dict[str, int] = {}
    for part, rows in results:
        if part is not None:
            parts[part] = rows
        elif rows:
            raise OutputError(f"{rows} rows of the output were not written: run it again")
    return parts


def _empty_schema(prepared: Prepared, archives: Sequence[Archive]) -> pa.Schema:
    """Return the schema of an output with no rows."""
    fields = list(IDS)
    if prepared.facts is not None:
        fields.insert(2, pa.field("fact_row", pa.int64()))
    if prepared.payload:
        fields += [
            pa.field(f"{archive.side}_{column.name}", plain_type(column.type))
            for archive in archives
            for column in archive.schema
        ]
    return pa.schema(fields)
