"""Runs a look-up: F is read and indexed, then the stream goes by, part by part."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.archives.families import plain_type
from engine.archives.normalise import FaultTally, Normalised, bad_rows_error, normalise, with_file
from engine.archives.roles import JoinColumns, check_importance
from engine.archives.rows import Part
from engine.facts.access import access_by
from engine.facts.lookup import FactLookup, Matches
from engine.facts.read import FactTable, read_facts
from engine.facts.roles import FactColumns, check_fact_roles
from engine.jobs.lookup.sinks import Sink
from engine.jobs.pieces import bytes_a_row, in_pieces
from engine.jobs.streams import Source, rows_of
from engine.options.lookup import LookupOptions, with_identity
from engine.report.envelope import Report, envelope
from engine.runtime.columns import beside
from engine.runtime.errors import SpecError
from engine.runtime.executors import Progress, SerialExecutor, Stages

IDS = pa.schema(
    [
        ("row", pa.int64()),
        ("fact_row", pa.int64()),
        ("ts", pa.int64()),
        ("importance", pa.float64()),
    ]
)
_MATCHES = 131_072
"""Matches that are found at a time."""


def output_schema(options: LookupOptions, stream: pa.Schema, fact: pa.Schema) -> pa.Schema:
    """Return the columns of the outputs."""
    fields = list(IDS)
    if options.columns == "all":
        for prefix, own in (("stream", stream), ("fact", fact)):
            fields += [pa.field(f"{prefix}_{one.name}", plain_type(one.type)) for one in own]
    return pa.schema(fields)


def run_lookup(
    options: LookupOptions,
    stream: Source,
    fact: Source,
    sink: Sink | None,
    progress: Progress | None = None,
) -> tuple[Report, pa.Schema]:
    """Look every tuple of a stream up in F.

    Parameters
    ----------
    stream, fact : Source
        With sides "stream" and "fact".
    sink : Sink, optional
        Takes the outputs; without one they are only counted.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    (Report, pyarrow.Schema)
        The schema is that of the outputs. Memory: F, a part of the stream and its outputs.

    Raises
    ------
    WinnowError
        If an option or a source is invalid.
    """
    stages = Stages(SerialExecutor(), progress)
    roles = with_identity(options.fact_roles, fact.archive)
    options = replace(options, fact_roles=roles)
    columns = check_fact_roles([(stream.archive, options.stream_roles)], fact.archive, roles)
    if options.stream_roles.importance is not None:
        check_importance(stream.archive, options.stream_roles.importance)
    payload = options.columns == "all" and sink is not None
    if payload and "row" in fact.archive.schema.names:
        raise SpecError(
            "column row of the fact archive would be written as fact_row, which holds the position "
            "of the row: rename it or leave the columns out with --columns ids"
        )
    with stages.timed("facts"):
        given = fact.archive if fact.table is None else fact.table
        table = read_facts(given, roles, columns, bad_rows=options.bad_rows, payload=payload)
    if sink is not None and table.rejected.num_rows:
        sink.reject("fact", table.rejected)
    with stages.timed("index"):
        access = access_by(options.access, table.facts.a)
        lookup = FactLookup(table.facts, access, table.values[0])
    run = _Run(options, stream, columns, table, lookup, sink)
    with stages.timed("lookup"):
        schema = run.all(stages)
    rate = {"rows_per_second": run.tally.rows / max(stages.seconds["lookup"], 1e-9)}
    content = {
        **run.tally.content(table),
        "access": options.access,
        "tick": columns.unit,
        **envelope(stages.seconds, rate=rate, out=options.out),
    }
    facts = fact.archive.schema if table.payload is None else table.payload.schema
    return Report(content), output_schema(options, schema, facts)


@dataclass
class _Tally:
    """What the stream came to."""

    rows: int = 0
    null_keys: int = 0
    rejected: int = 0
    matched: int = 0
    outputs: int = 0
    sums: list[float] = field(default_factory=list)
    faults: FaultTally = field(default_factory=FaultTally)

    def add(self, part: Part, found: Normalised) -> None:
        """Count a part."""
        self.rows += part.table.num_rows
        self.null_keys += found.null_keys
        self.rejected += found.rejected.num_rows
        self.faults.add(part, found)

    def content(self, table: FactTable) -> dict[str, Any]:
        """Return the report's fields."""
        return {
            "rows": {"stream": self.rows, "fact": table.rows},
            "null_keys": {"stream": self.null_keys, "fact": table.null_keys},
            "rejected": {"stream": self.rejected, "fact": table.rejected.num_rows},
            "facts": int(table.facts.a.size),
            "duplicates": table.duplicates,
            "deletes": table.deletes,
            "between_ticks": table.between_ticks,
            "matched": self.matched,
            "outputs": self.outputs,
            "importance": math.fsum(self.sums),
        }


@dataclass
class _Run:
    options: LookupOptions
    stream: Source
    columns: FactColumns
    table: FactTable
    lookup: FactLookup
    sink: Sink | None
    tally: _Tally = field(default_factory=_Tally)

    def all(self, stages: Stages) -> pa.Schema:
        """Let the stream go by; return its schema."""
        options, roles = self.options, self.options.stream_roles
        quarantine = options.bad_rows == "quarantine"
        join = JoinColumns(self.columns.unit, self.columns.zoned, self.columns.left, ())
        known = [file.rows for file in self.stream.archive.files]
        total = sum(count for count in known if count is not None)
        with rows_of(self.stream, roles) as rows:
            everything = self.table.payload is not None or quarantine
            names = tuple(rows.schema.names) if everything else roles.columns
            for part in rows.parts(names):
                found = normalise(part.table, roles, join, part.first, seed=self.table.seed)
                self.tally.add(part, found)
                if self.sink is not None and quarantine and found.rejected.num_rows:
                    self.sink.reject("stream", with_file(found.rejected, part.file))
                if quarantine or not self.tally.faults:
                    self._look_up(found)
                stages.progress("rows", self.tally.rows, max(total, self.tally.rows))
            schema = rows.schema
        if self.tally.faults and not quarantine:
            raise bad_rows_error(self.tally.faults.bad_rows(roles, "the stream"))
        return schema

    def _look_up(self, found: Normalised) -> None:
        met = np.zeros(found.ts.size, np.bool_)
        width = 0.0
        if self.sink is not None and self.table.payload is not None:
            width = bytes_a_row([found.payload, self.table.payload])
        for matches in self.lookup.matches(found.key, found.ts, found.keys, _MATCHES):
            met[matches.arrival] = True
            importance = found.importance[matches.arrival]
            self.tally.outputs += importance.size
            self.tally.sums.append(float(importance.sum()))
            if self.sink is not None:
                make = partial(self._outputs, found, matches, importance)
                for table in in_pieces(importance.size, width, make):
                    self.sink.write(table)
        self.tally.matched += int(np.count_nonzero(met))

    def _outputs(
        self, found: Normalised, matches: Matches, importance: NDArray[np.float64], rows: slice
    ) -> pa.Table:
        matches, importance = Matches._make(own[rows] for own in matches), importance[rows]
        fact_row = self.table.facts.row[matches.fact]
        ids = found.row[matches.arrival], fact_row, found.ts[matches.arrival], importance
        table = pa.table([pa.array(column) for column in ids], schema=IDS)
        if self.table.payload is None:
            return table
        members = (
            ("stream", found.payload.take(pa.array(matches.arrival))),
            ("fact", self.table.payload.take(pa.array(fact_row))),
        )
        for prefix, own in members:
            names = [f"{prefix}_{name}" for name in own.column_names]
            table = beside(table, own.rename_columns(names))
        return table
