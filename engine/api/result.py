"""What every task gives back: rows, a report, and both as a person looks at them."""

from __future__ import annotations

import html
import io
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.types as pt
from rich.console import Console

from engine.api.frames import loaded
from engine.archives.rows import restored
from engine.archives.source import open_archive
from engine.runtime.errors import did_you_mean

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

WIDTH = 100
"""Characters of a line of a report's text."""
FIRST = 5
"""Rows that a notebook shows."""


class Fields(dict[str, Any]):
    """A report: a dictionary whose entries are attributes as well.

    Examples
    --------
    >>> Fields({"exact": {"outputs": 4}}).exact.outputs
    4
    """

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what the report holds
        if name not in self:
            raise AttributeError(f"the report has no field {name!r}.{did_you_mean(name, self)}")
        return _attributes(self[name])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]


def _attributes(value: Any) -> Any:  # noqa: ANN401 - as above
    if isinstance(value, dict):
        return Fields(value)
    return [_attributes(own) for own in value] if isinstance(value, list) else value


class Outputs:
    """The rows of a folder of Parquet files, read when they are asked for.

    Parameters
    ----------
    folder : Path or None
        None: a temporary one that goes with this object, `place` below it for the dataset.
    """

    def __init__(self, folder: Path | None) -> None:
        self.kinds: dict[str, pa.DataType] = {}
        self.times: dict[str, pa.DataType] = {}
        if folder is None:
            home = Path(tempfile.mkdtemp(prefix="winnow-"))
            weakref.finalize(self, shutil.rmtree, home, ignore_errors=True)
            folder = home / "out"
        self.place = folder

    @cached_property
    def table(self) -> pa.Table:
        """All rows in memory."""
        return self.reader().read_all()

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows, batch by batch, in their order."""
        batches = ds.dataset(self.place, format="parquet").scanner().to_reader()
        schema = self._typed(batches.schema.empty_table()).schema

        def typed() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from self._typed(pa.Table.from_batches([batch])).to_batches()

        return pa.RecordBatchReader.from_batches(schema, typed())

    def first(self, rows: int) -> pa.Table:
        """Return the first rows."""
        return self._typed(ds.dataset(self.place, format="parquet").head(rows))

    def _typed(self, table: pa.Table) -> pa.Table:
        table = restored(table, self.kinds)
        for name, kind in self.times.items():
            table = typed_times(table, name, kind)
        return table


class Result:
    """What a task gives: an Arrow stream itself, for any library that reads one.

    ``polars.DataFrame(result)`` and ``duckdb.table("result")`` work without a copy of the rows.

    Parameters
    ----------
    rows : pyarrow.Table or Outputs
    report : mapping
    printed : callable
        Prints the report on a console.
    drawn : callable
        Draws it.
    rejected : mapping of str to pyarrow.Table

    Attributes
    ----------
    report : Fields
        As the command line writes it: ``report["exact"]["outputs"]``, ``report.exact.outputs``.
    rejected : dict of str to pyarrow.Table
        Rows that were set aside, with their reasons, by stream; streams without any are left out.
    """

    def __init__(
        self,
        rows: pa.Table | Outputs,
        report: Mapping[str, Any],
        printed: Callable[[Console], None],
        drawn: Callable[..., Any],
        rejected: Mapping[str, pa.Table] | None = None,
    ) -> None:
        self._rows = rows
        self._printed, self._drawn = printed, drawn
        self.report = Fields(report)
        self.rejected = dict(rejected or {})

    @property
    def outputs(self) -> pa.Table:
        """The rows as an Arrow table: of a replay its outputs, of a sweep its cells, and so on."""
        return self._rows.table if isinstance(self._rows, Outputs) else self._rows

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a frame of pandas."""
        loaded("pandas")
        return self.outputs.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a frame of polars."""
        frame: pl.DataFrame = loaded("polars").from_arrow(self.outputs)
        return frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a PyCapsule of an ``ArrowArrayStream``, read as they are consumed."""
        if isinstance(self._rows, Outputs) and "table" not in vars(self._rows):
            return self._rows.reader().__arrow_c_stream__(requested_schema)
        return self.outputs.__arrow_c_stream__(requested_schema)

    def plot(self, *which: str) -> Any:  # noqa: ANN401 - matplotlib's, which has no types
        """Return a figure of matplotlib, which a notebook shows and `savefig` writes.

        Parameters
        ----------
        *which : str
            The name of one of several plots: of a sweep a measure, of a profile one of
            ``age_curves``, ``key_frequencies``, ``correlation``, ``drift``, ``recall``.

        Raises
        ------
        SpecError
            If there is nothing to draw, or no such plot.
        """
        return self._drawn(*which)

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=WIDTH, force_jupyter=False)
        self._printed(console)
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return text.rstrip()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: print it, or see .report, .outputs and .plot()>"

    def _repr_html_(self) -> str:
        console = Console(record=True, file=io.StringIO(), width=WIDTH, force_jupyter=False)
        self._printed(console)
        shown = console.export_html(
            inline_styles=True, code_format='<pre style="line-height: 1.2">{code}</pre>'
        )
        return shown + self._first_rows()

    def _first(self, rows: int) -> pa.Table:
        """Return the first rows."""
        own = self._rows
        return own.first(rows) if isinstance(own, Outputs) else own.slice(0, rows)

    def _first_rows(self) -> str:
        first = self._first(FIRST)
        cells = zip(*(column.to_pylist() for column in first.columns), strict=True)
        names = "".join(f"<th>{html.escape(name)}</th>" for name in first.column_names)
        lines = "".join(
            f"<tr>{''.join(f'<td>{html.escape(str(cell))}</td>' for cell in line)}</tr>"
            for line in cells
        )
        return f"<table><tr>{names}</tr>{lines}</table>"


def moments(unit: str, kind: pa.DataType | None) -> pa.DataType:
    """Return the type of times in ticks: that of the column they come from, in the ticks' unit.

    Examples
    --------
    >>> moments("us", pa.timestamp("ns", "UTC")), moments("tick", pa.int64())
    (TimestampType(timestamp[us, tz=UTC]), DataType(int64))
    """
    if unit == "tick":
        return pa.int64()
    if unit == "day":
        return pa.date32()
    return pa.timestamp(unit, kind.tz if kind is not None and pt.is_timestamp(kind) else None)


def typed_times(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    """Return a table with a column of ticks as times of a type."""
    at = table.schema.get_field_index(name)
    if at < 0 or table.schema.field(at).type == kind:
        return table
    return table.set_column(at, name, in_time(table.column(at), kind))


def windows_timed(aggregate: pa.Table, kind: pa.DataType) -> pa.Table:
    """Return the estimates of an aggregate with the edges of its windows as times."""
    for name in ("window_begin", "window_end"):
        aggregate = typed_times(aggregate, name, kind)
    return aggregate


def in_time(ticks: Any, kind: pa.DataType) -> Any:  # noqa: ANN401 - a PyArrow without types
    """Return ticks, int64, as times of a type."""
    return ticks.cast(pa.int32()).cast(kind) if pt.is_date32(kind) else ticks.cast(kind)


def kind_of(source: str | pa.Table, side: str, name: str) -> pa.DataType:
    """Return the type of a stream's column of times; int64 if it has none."""
    schema = open_archive(source, side).schema if isinstance(source, str) else source.schema
    at = schema.get_field_index(name)
    return schema.field(at).type if at >= 0 else pa.int64()


def timed(rows: pa.Table | Outputs, unit: str, kind: pa.DataType) -> pa.Table | Outputs:
    """Return outputs whose ``ts``, in ticks of `unit`, has the type of the streams' times."""
    time = moments(unit, kind)
    if isinstance(rows, pa.Table):
        return typed_times(rows, "ts", time)
    rows.times["ts"] = time
    return rows
