"""Look-ups from Python: the command line's work as functions."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.api.keywords import takes
from engine.archives.moments import time_type
from engine.archives.rows import restored
from engine.facts.roles import check_fact_roles
from engine.jobs.lookup.run import run_lookup
from engine.jobs.lookup.sinks import FolderSink, MemorySink
from engine.jobs.output_at import output_at
from engine.jobs.streams import open_source
from engine.options import where
from engine.options.lookup import LOOKUP, Lookup, LookupOptions, lookup_of, with_identity
from engine.report.envelope import Report
from engine.runtime.executors import Progress


class LookupFiles(Lookup, where.Out, total=False):
    """The keywords of a look-up of archives."""


class LookupResult(NamedTuple):
    """What a look-up of tables gives.

    Attributes
    ----------
    outputs : pyarrow.Table
        ``row``, ``fact_row``, ``ts``, ``importance``, and the columns of both as ``stream_<name>``
        and ``fact_<name>``; in the order of the stream's rows and then of the facts'.
    report : dict
        As the command line writes it.
    rejected : tuple of pyarrow.Table or None
        Rows of the stream and of F that were set aside, with their reasons; None if there are none.
    """

    outputs: pa.Table
    report: dict[str, Any]
    rejected: tuple[pa.Table | None, pa.Table | None]


@takes(LOOKUP)
def lookup_tables(
    stream: str | pa.Table, fact: str | pa.Table, **options: Unpack[Lookup]
) -> LookupResult:
    """Join a stream with the facts that are active when its tuples arrive.

    Exact and stateless: r and f are an output if f has r's attribute and begin <= r's time < end
    (P2 2.1, 2.2). The importance of the output is that of r.

    Parameters
    ----------
    stream : pyarrow.Table or str
        In any order of time; a row's number is its position. Text is the path of an archive.
    fact : pyarrow.Table or str
        The fact relation: rows of facts, or of their changes.
    **options
        As ``winnow lookup`` has them.

    Returns
    -------
    LookupResult
        O(|F| log |F| + rows * log |F| + outputs) with the default access.

    Raises
    ------
    WinnowError
        If an option or a table is invalid.

    Examples
    --------
    >>> trips = pa.table({"at": [1, 5, 9], "car": ["x", "x", "y"], "fare": [4.0, 8.0, 2.0]})
    >>> leases = pa.table({"car": ["x", "x"], "driver": ["Ann", "Ben"], "from": [None, 5],
    ...                    "to": [5, None]})
    >>> found = lookup_tables(trips, leases, on="car", time="at", importance="fare",
    ...                       fact_begin="from", fact_end="to")
    >>> found.outputs.select(["row", "fact_row", "importance", "fact_driver"]).to_pylist()[-1]
    {'row': 1, 'fact_row': 1, 'importance': 8.0, 'fact_driver': 'Ben'}
    >>> found.report["matched"], found.report["outputs"]
    (2, 2)
    """
    job = lookup_of(LOOKUP.from_keywords(options))
    sink = MemorySink()
    left, right = (open_source(table, side) for side, table in (("stream", stream), ("fact", fact)))
    report, schema = run_lookup(job, left, right, sink)
    outputs = pa.concat_tables([schema.empty_table(), *sink.outputs])
    kinds = {
        f"{side}_{column.name}": column.type
        for side, table in (("stream", stream), ("fact", fact))
        if isinstance(table, pa.Table)
        for column in table.schema
    }
    rejected = [_aside(sink, side, table) for side, table in (("stream", stream), ("fact", fact))]
    return LookupResult(restored(outputs, kinds), report.content, (rejected[0], rejected[1]))


def _aside(sink: MemorySink, side: str, table: str | pa.Table) -> pa.Table | None:
    if side not in sink.rejected:
        return None
    own = table.schema if isinstance(table, pa.Table) else ()
    kinds = {column.name: column.type for column in own}
    return restored(pa.concat_tables(sink.rejected[side]), kinds)


@takes(LOOKUP)
def lookup_archives(
    stream: where.PathLike, fact: where.PathLike, **options: Unpack[LookupFiles]
) -> dict[str, Any]:
    """Look an archive up in the fact relation as ``winnow lookup`` does.

    Parameters
    ----------
    stream, fact : path
        File, folder or glob.
    **options
        As for `lookup_tables`, and `out`, the folder of the output dataset, which must not exist;
        without it outputs are only counted.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or the output cannot be written.
    """
    job = lookup_of(LOOKUP.from_keywords(options))
    return look_up(job, os.fspath(stream), os.fspath(fact)).content


def look_up(
    options: LookupOptions,
    stream: str | pa.Table,
    fact: str | pa.Table,
    progress: Progress | None = None,
) -> Report:
    """Look an archive up and write the outputs, whole or not at all; `options.out` says where."""
    left, right = open_source(stream, "stream"), open_source(fact, "fact")
    with output_at(options.out) as output:
        if output is None:
            return run_lookup(options, left, right, None, progress)[0]
        roles = with_identity(options.fact_roles, right.archive)
        columns = check_fact_roles([(left.archive, options.stream_roles)], right.archive, roles)
        kind = left.archive.schema.field(options.stream_roles.time).type
        output.has_times(time_type(columns.unit, getattr(kind, "tz", None)), "ts")
        with closing(FolderSink(output)) as sink:
            report, schema = run_lookup(options, left, right, sink, progress)
            sink.commit(schema)
    return report
