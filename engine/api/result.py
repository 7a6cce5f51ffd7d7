"""What every task gives back: rows, a report, and both as a person looks at them."""

from __future__ import annotations

import io
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from rich.console import Console

from engine.api.frames import loaded
from engine.archives.moments import time_type, typed_times
from engine.archives.roles import time_kind
from engine.archives.rows import restored
from engine.archives.source import open_archive
from engine.facts.read import table_archive
from engine.report.envelope import check_place, with_times
from engine.report.shown import Request, Shown, print_in_words
from engine.runtime.errors import InputError, SpecError, did_you_mean
from engine.runtime.storage.disk import in_full
from engine.runtime.storage.listing import dataset, rejected_of
from engine.runtime.storage.uris import Place

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow.dataset as ds

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


def _remove(folder: Path, process: int) -> None:
    """Remove a folder of this process; one that was forked has a copy of what is here."""
    if os.getpid() == process:
        in_full(partial(shutil.rmtree, folder, ignore_errors=True))


class Outputs:
    """The rows of a folder of Parquet files, read when they are asked for.

    Parameters
    ----------
    folder : Path, Uri or None
        None: a temporary one that goes with this object, `place` below it for the dataset.
    count_only : bool
        There are no rows, and `place` is None.
    """

    def __init__(self, folder: Place | None, *, count_only: bool = False) -> None:
        if count_only and folder is not None:
            raise SpecError("count_only keeps no outputs, and out is where to keep them: give one")
        self.kinds: dict[str, pa.DataType] = {}
        self.times: dict[str, pa.DataType] = {}
        self._temporary = folder is None and not count_only
        if self._temporary:
            home = Path(tempfile.mkdtemp(prefix="winnow-"))
            weakref.finalize(self, _remove, home, os.getpid())
            folder = home / "out"
        self.place = folder

    def __getstate__(self) -> dict[str, Any]:
        """Hold the rows themselves if their folder is temporary: it goes with the original."""
        if self._temporary:
            _ = self.table
        return vars(self)

    @cached_property
    def table(self) -> pa.Table:
        """All rows in memory."""
        return self.reader().read_all()

    def reader(self) -> pa.RecordBatchReader:
        """Return the rows, batch by batch, in their order."""
        if "table" in vars(self):
            return self.table.to_reader()
        batches = self._rows().scanner().to_reader()
        schema = self._typed(batches.schema.empty_table()).schema

        def typed() -> Iterator[pa.RecordBatch]:
            for batch in batches:
                yield from self._typed(pa.Table.from_batches([batch])).to_batches()

        return pa.RecordBatchReader.from_batches(schema, typed())

    def first(self, rows: int) -> pa.Table:
        """Return the first rows."""
        if "table" in vars(self):
            return self.table.slice(0, rows)
        return self._typed(self._rows().head(rows))

    def rejected(self) -> dict[str, pa.Table]:
        """Return the rows that were set aside, by stream."""
        return {} if self.place is None else rejected_of(self.place)

    def _rows(self) -> ds.Dataset:
        if self.place is None:
            raise SpecError("outputs were only counted: leave count_only out to have them")
        try:
            return dataset(self.place)
        except FileNotFoundError:
            raise InputError(f"outputs {self.place} are not there any more: run it again") from None

    def _typed(self, table: pa.Table) -> pa.Table:
        table = restored(table, self.kinds)
        return typed_times(table, self.times)


class Result:
    """What a task gives: an Arrow stream itself, for any library that reads one.

    ``polars.DataFrame(result)`` and ``duckdb.table("result")`` work without a copy of the rows.

    Parameters
    ----------
    rows : pyarrow.Table or Outputs
    shown : Shown
        The report, and what is shown of it.
    rejected : mapping of str to pyarrow.Table
    drawn : callable, optional
        Draws the plots that `plot` is asked for by name; without, there is one figure.

    Attributes
    ----------
    rejected : dict of str to pyarrow.Table
        Rows that were set aside, with their reasons, by stream; streams without any are left out.
    """

    def __init__(
        self,
        rows: pa.Table | Outputs,
        shown: Shown,
        rejected: Mapping[str, pa.Table] | None = None,
        drawn: Callable[..., Any] | None = None,
    ) -> None:
        self._rows = rows
        self._shown, self._drawn = shown, drawn
        self.rejected = dict(rejected or {})

    @cached_property
    def report(self) -> Fields:
        """What the command line writes: ``report["recall"]``, or ``report.exact.outputs``."""
        return Fields(with_times(self._shown.content))

    @property
    def outputs(self) -> pa.Table:
        """The rows as an Arrow table: of a replay its outputs, of a sweep its cells, and so on."""
        return self._rows.table if isinstance(self._rows, Outputs) else self._rows

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows as a frame of pandas."""
        loaded("pandas")
        return self.outputs.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the rows as a frame of polars.

        Times with a fixed offset, such as -05:30, are in UTC: polars has named zones alone.
        """
        offset = {
            own.name: pa.timestamp(own.type.unit, "UTC")
            for own in self.outputs.schema
            if pa.types.is_timestamp(own.type) and str(own.type.tz)[:1] in ("+", "-")
        }
        frame: pl.DataFrame = loaded("polars").from_arrow(typed_times(self.outputs, offset))
        return frame

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the rows as a PyCapsule of an ``ArrowArrayStream``, read as they are consumed."""
        if isinstance(self._rows, Outputs):
            return self._rows.reader().__arrow_c_stream__(requested_schema)
        return self.outputs.__arrow_c_stream__(requested_schema)

    def plot(self, *which: str) -> Any:  # noqa: ANN401 - matplotlib's, which has no types
        """Return a figure of matplotlib, which a notebook shows and `savefig` writes.

        Parameters
        ----------
        *which : str
            The name of one of several plots: of a sweep a measure, of a profile one of
            ``age_curves``, ``key_frequencies``, ``correlation``, ``drift``, ``recall``, of an
            allocation ``memory`` or its metric. Others have one figure with all of their plots.

        Raises
        ------
        SpecError
            If there is no such plot.
        """
        if self._drawn is not None:
            if len(which) > 1:
                raise SpecError(f"plots {', '.join(map(repr, which))} are several: give one name")
            return self._drawn(*which)
        if which:
            raise SpecError(
                f"plot is {which[0]!r}; the result of {self._shown.task} has one figure, which "
                "holds all of its plots: leave the name out"
            )
        return self._shown.figure()

    def html(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as one HTML file, as ``--html`` of the command line does.

        It has the answer, plots that respond to the pointer, tables that sort, and what was asked,
        and loads nothing from elsewhere.

        Parameters
        ----------
        path : path
            Replaced if it exists.

        Returns
        -------
        Path
            Of the file.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        from engine.report.html.page import save_page  # noqa: PLC0415 - few reports are HTML

        place = Path(path)
        check_place(place, "HTML report", begins=b"<")
        save_page(self._shown, place)
        return place

    def asked(self, request: Request, in_words: Callable[[str], str]) -> None:
        """Take note of what was asked.

        `in_words` names options in what is printed as the caller writes them.
        """
        shown = self._shown._replace(request=request)
        self._shown = shown._replace(printed=partial(print_in_words, shown.printed, in_words))

    def __str__(self) -> str:
        console = Console(
            file=io.StringIO(), width=WIDTH, force_jupyter=False, markup=False, emoji=False
        )
        self._shown.printed(console)
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return text.rstrip()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: print it, or see .report, .outputs and .plot()>"

    def _repr_html_(self) -> str:
        from engine.report.html.page import fragment_of, table_of  # noqa: PLC0415 - as above

        own = self._rows
        if isinstance(own, Outputs) and own.place is None:
            return fragment_of(self._shown.printed)
        first = self._first(FIRST)
        rows = zip(*(column.to_pylist() for column in first.columns), strict=True)
        return fragment_of(self._shown.printed) + table_of(first.column_names, rows)

    def _first(self, rows: int) -> pa.Table:
        """Return the first rows."""
        own = self._rows
        return own.first(rows) if isinstance(own, Outputs) else own.slice(0, rows)


def moments(unit: str, kind: pa.DataType) -> pa.DataType:
    """Return the type of times in ticks: that of the column they come from, in the ticks' unit."""
    return time_type(unit, getattr(kind, "tz", None))


def kind_of(source: str | pa.Table, side: str, name: str) -> pa.DataType:
    """Return the type of a stream's column of times; int64 if it has none."""
    archive = open_archive(source, side) if isinstance(source, str) else table_archive(source, side)
    return time_kind(archive, name) if name in archive.schema.names else pa.int64()


def timed(rows: pa.Table | Outputs, unit: str, kind: pa.DataType) -> pa.Table | Outputs:
    """Return outputs whose ``ts``, in ticks of `unit`, has the type of the streams' times."""
    time = moments(unit, kind)
    if isinstance(rows, pa.Table):
        return typed_times(rows, {"ts": time})
    rows.times["ts"] = time
    return rows
