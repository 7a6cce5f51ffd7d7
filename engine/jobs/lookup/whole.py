"""Look-ups of archives or tables as they lie: into memory, or into a folder."""

from __future__ import annotations

from contextlib import closing

import pyarrow as pa

from engine.archives.moments import time_type
from engine.archives.roles import zone_of
from engine.archives.rows import restored
from engine.facts.roles import check_fact_roles
from engine.jobs.lookup.run import run_lookup
from engine.jobs.lookup.sinks import FolderSink, MemorySink
from engine.jobs.output_at import output_at
from engine.jobs.streams import open_source
from engine.options.lookup import LookupOptions, with_identity
from engine.report.envelope import Report
from engine.report.recording import record_of
from engine.runtime.executors import Progress


def look_up_rows(
    job: LookupOptions, stream: str | pa.Table, fact: str | pa.Table
) -> tuple[pa.Table, Report, dict[str, pa.Table]]:
    """Look a stream up; return the outputs, the report, and the rows that were set aside.

    O(|F| log |F| + rows * log |F| + outputs) with the default access.

    Parameters
    ----------
    stream, fact : pyarrow.Table or str
        Text is the path of an archive.

    Returns
    -------
    outputs : pyarrow.Table
        In the order of the stream's rows and then of the facts'; times in ticks.
    report : Report
    rejected : dict of str to pyarrow.Table
        By ``stream`` and ``fact``.
    """
    sources = {"stream": stream, "fact": fact}
    sink = MemorySink()
    left, right = (open_source(own, side) for side, own in sources.items())
    report, schema = run_lookup(job, left, right, sink)
    kinds = {
        side: {column.name: column.type for column in own.schema}
        for side, own in sources.items()
        if isinstance(own, pa.Table)
    }
    both = {f"{side}_{name}": kind for side, own in kinds.items() for name, kind in own.items()}
    rejected = {
        side: restored(pa.concat_tables(own), kinds.get(side, {}))
        for side, own in sink.rejected.items()
    }
    outputs = pa.concat_tables([schema.empty_table(), *sink.outputs])
    return restored(outputs, both), report, rejected


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
        zone = zone_of(left.archive, options.stream_roles.time)
        output.has_times(time_type(columns.unit, zone), "ts")
        with closing(FolderSink(output)) as sink:
            report, schema = run_lookup(options, left, right, sink, progress)
            sink.commit(schema, record_of("lookup", report.content))
    return report
