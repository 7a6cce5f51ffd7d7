"""Look-ups from Python: the command line's work as functions."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, TypedDict, Unpack

import pyarrow as pa

from engine.archives.roles import Roles
from engine.archives.rows import restored
from engine.archives.source import open_archive
from engine.facts.read import table_archive
from engine.facts.roles import FactRoles
from engine.jobs.lookup.run import Source, run_lookup
from engine.jobs.lookup.sinks import FolderSink, MemorySink
from engine.jobs.output import output_at
from engine.options.lookup import LookupOptions
from engine.report.envelope import Report
from engine.runtime.errors import SpecError
from engine.runtime.stages import Progress

Names = str | Sequence[str]


class Lookup(TypedDict, total=False):
    """The keywords that say how a stream is looked up; `lookup_tables` explains each."""

    on: Names
    time: str
    importance: str | None
    fact_on: Names | None
    fact_begin: str | None
    fact_end: str | None
    fact_op: str | None
    fact_time: str | None
    fact_id: Names
    fact_access: str
    columns: str
    bad_rows: str


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
        Rows of the stream and of F that were set aside, with their reasons; None where there are
        none.
    """

    outputs: pa.Table
    report: dict[str, Any]
    rejected: tuple[pa.Table | None, pa.Table | None]


def lookup_tables(stream: pa.Table, fact: pa.Table, **how: Unpack[Lookup]) -> LookupResult:
    """Join a stream with the facts that are active when its tuples arrive.

    Exact and stateless: r and f are an output if f has r's attribute and begin <= r's time < end
    (P2 2.1, 2.2). Its importance is r's.

    Parameters
    ----------
    stream : pyarrow.Table
        In any order of time; a row's number is its position.
    fact : pyarrow.Table
        The fact relation: rows of facts, or of their changes.
    on : str or sequence of str
        Join attributes of the stream.
    time : str
        Arrival times: integers, timestamps or dates.
    importance : str, optional
        Importance of each tuple; without one every tuple has 1.
    fact_on : str or sequence of str, optional
        Join attributes of F; those of `on` if not given.
    fact_begin, fact_end : str, optional
        When a fact begins and ends to be active: null is before the stream, and never. Without
        either F does not change.
    fact_op, fact_time : str, optional
        Instead of these, of a log of changes: insert or delete, and when. A null time of an insert
        is before the stream.
    fact_id : str or sequence of str
        What tells facts of one attribute apart; by default all columns but the times.
    fact_access : {"hash", "index", "binary", "scan"}
        How F is searched.
    columns : {"all", "ids"}
        Whether the outputs carry the columns of both.
    bad_rows : {"error", "quarantine"}
        What is done about rows with a wrong time or importance, and rows of F that are no facts.

    Returns
    -------
    LookupResult
        O(|F| log |F| + rows * log |F| + outputs) with the default access.

    Raises
    ------
    WinnowError
        If the options mean nothing, or a table is no stream or no fact relation.

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
    options = _options(how, None)
    sink = MemorySink()
    left, right = (
        Source(table_archive(table, side), table)
        for side, table in (("stream", stream), ("fact", fact))
    )
    report, schema = run_lookup(options, left, right, sink)
    outputs = pa.concat_tables([schema.empty_table(), *sink.outputs])
    kinds = {
        f"{side}_{column.name}": column.type
        for side, table in (("stream", stream), ("fact", fact))
        for column in table.schema
    }
    rejected = [_aside(sink, side, table) for side, table in (("stream", stream), ("fact", fact))]
    return LookupResult(restored(outputs, kinds), report.content, (rejected[0], rejected[1]))


def _aside(sink: MemorySink, side: str, table: pa.Table) -> pa.Table | None:
    if side not in sink.rejected:
        return None
    kinds = {column.name: column.type for column in table.schema}
    return restored(pa.concat_tables(sink.rejected[side]), kinds)


def lookup_archives(
    stream: str | os.PathLike[str],
    fact: str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    **how: Unpack[Lookup],
) -> dict[str, Any]:
    """Look an archive up in the fact relation as ``winnow lookup`` does.

    Parameters
    ----------
    stream, fact : path
        File, folder or glob.
    out : path, optional
        Folder of the output dataset, which must not exist; without it outputs are only counted.
    **how
        As for `lookup_tables`.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    WinnowError
        If the options mean nothing, an archive cannot be read, or the output cannot be written.
    """
    options = _options(how, None if out is None else Path(out))
    return look_up(options, os.fspath(stream), os.fspath(fact)).content


def look_up(
    options: LookupOptions, stream: str, fact: str, progress: Progress | None = None
) -> Report:
    """Look an archive up and write the outputs, whole or not at all; `options.out` says where."""
    left, right = Source(open_archive(stream, "stream")), Source(open_archive(fact, "fact"))
    with output_at(options.out) as output:
        if output is None:
            return run_lookup(options, left, right, None, progress)[0]
        with closing(FolderSink(output)) as sink:
            report, schema = run_lookup(options, left, right, sink, progress)
            sink.commit(schema)
    return report


def _options(how: Lookup, out: Path | None) -> LookupOptions:
    unknown = how.keys() - Lookup.__annotations__.keys()
    if unknown:
        raise TypeError(f"unexpected keyword {min(unknown)!r}")
    given: Mapping[str, Any] = how
    for name in ("on", "time"):
        if given.get(name) is None:
            raise SpecError(f"{name} is missing: name the column")
    on = _names(given["on"])
    roles = FactRoles(
        left=on if given.get("fact_on") is None else _names(given["fact_on"]),
        begin=given.get("fact_begin"),
        end=given.get("fact_end"),
        op=given.get("fact_op"),
        time=given.get("fact_time"),
        identity=_names(given.get("fact_id") or ()),
    )
    chosen = {
        name: given[key]
        for name, key in (
            ("access", "fact_access"), ("columns", "columns"), ("bad_rows", "bad_rows"),
        )
        if key in given
    }  # fmt: skip
    return LookupOptions(
        Roles(on, given["time"], given.get("importance")), roles, out=out, **chosen
    )


def _names(value: Names) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)
