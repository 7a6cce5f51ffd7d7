"""The other tasks: look-ups, joins of several streams, allocations and synthetic streams."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

import pyarrow as pa
from rich.console import Console

from engine.api.allocate import allocate_joins
from engine.api.frames import (
    Frame,
    Numbered,
    OfSpark,
    by_name,
    home_of,
    in_arrow,
    not_of_spark,
    streams_in_arrow,
)
from engine.api.keywords import call_text, takes
from engine.api.lookup import LookupFiles, look_up, lookup_tables
from engine.api.multijoin import MultiJoinKeywords, MultiJoinOutput
from engine.api.multijoin import multijoin as multijoin_tables
from engine.api.result import Outputs, Result, kind_of, timed
from engine.api.star import StreamsResult
from engine.api.star import replay_streams as star_tables
from engine.generate.source import in_memory
from engine.options import where
from engine.options.by_stream import by_stream
from engine.options.command import Given, values_of
from engine.options.generate import GENERATE, sources_of
from engine.options.lookup import LOOKUP, lookup_of
from engine.options.multijoin_options import MULTIJOIN
from engine.options.star import STAR, StarJoin
from engine.report.allocation import allocation_shown
from engine.report.allocation import figure_of as allocation_figure
from engine.report.charts import Bars, Chart, Series
from engine.report.envelope import Report
from engine.report.joins import lookup_shown, multijoin_shown, replay_shown
from engine.report.shown import Request, Shown
from engine.runtime.errors import chosen
from engine.runtime.executors import Executor, Progress


class LookupKeywords(LookupFiles, OfSpark, total=False):
    """The keywords of a look-up of any frames."""


@takes(LOOKUP)
def lookup(stream: Frame, fact: Frame, **options: Unpack[LookupKeywords]) -> Result:
    """Join a stream with the facts that are active when its tuples arrive.

    Parameters
    ----------
    stream, fact : path or frame
        Files or frames, as for `replay`; Spark DataFrames stay in Spark.
    **options
        As ``winnow lookup`` has them. With `out` the outputs are a dataset in that folder, which
        must not exist.

    Returns
    -------
    Result
        ``outputs`` has ``row``, ``fact_row``, ``ts``, ``importance``, and the columns of both as
        ``stream_<name>`` and ``fact_<name>``.

    Raises
    ------
    WinnowError
        If an option, a frame or an archive is invalid, or the output cannot be written.

    Examples
    --------
    >>> trips = pa.table({"at": [1, 5], "car": ["x", "x"]})
    >>> leases = pa.table({"car": ["x", "x"], "from": [None, 5], "to": [5, None]})
    >>> found = lookup(trips, leases, on="car", time="at", fact_begin="from", fact_end="to")
    >>> found.outputs["fact_row"].to_pylist(), found.report.matched
    ([0, 1], 2)
    """
    home = home_of(stream, fact)
    if home is not None:
        there: Result = home.lookup(stream, fact, **options)
        return there
    own = not_of_spark(options)
    sources = in_arrow(stream, "stream"), in_arrow(fact, "fact")
    if own.get("out") is None:
        own.pop("out", None)
        found = lookup_tables(*sources, **own)
        rows, report, aside = found.outputs, found.report, found.rejected
        rejected = dict(zip(("stream", "fact"), aside, strict=True))
    else:
        job = lookup_of(LOOKUP.from_keywords(own))
        report, rejected = look_up(job, *sources).content, {}
        rows = Outputs(job.out)
    kind = kind_of(sources[0], "stream", own["time"])
    unit = "day" if pa.types.is_date(kind) else getattr(kind, "unit", "tick")
    rows = timed(rows, unit, kind)
    return Result(
        rows,
        lookup_shown(Report(report)),
        {name: table for name, table in rejected.items() if table is not None},
    )


class MultiJoinFrames(MultiJoinKeywords, Numbered, total=False):
    """The keywords of a multi-way join of any frames."""


@takes(MULTIJOIN)
def multijoin(streams: Mapping[str, Frame], **options: Unpack[MultiJoinFrames]) -> Result:
    """Join 2 to 8 streams on any predicate, exactly or within a budget of memory or CPU.

    Parameters
    ----------
    streams : mapping of str to path or frame
        By name, in order: at equal times, tuples of an earlier stream arrive first. Spark
        DataFrames stay in Spark.
    **options
        As ``winnow multijoin`` has them; see `engine.multijoin_streams`. With `out` the outputs are
        a dataset in that folder, which must not exist.

    Returns
    -------
    Result
        ``outputs`` has ``NAME_row`` of every stream, ``ts``, ``importance``, ``weight``, and the
        columns of all as ``NAME_<column>``.

    Raises
    ------
    WinnowError
        If an option, a frame or an archive is invalid, or the output cannot be written.
    """
    home = home_of(*by_name(streams).values())
    if home is not None:
        there: Result = home.multijoin(streams, **options)
        return there
    own = not_of_spark(options)
    sources = streams_in_arrow(streams)
    found = multijoin_tables(sources, **own)
    rows = _rows_of(found, sources, MULTIJOIN.from_keywords(own))
    return Result(rows, multijoin_shown(Report(found.report)), found.rejected)


@takes(STAR)
def replay_streams(
    streams: Mapping[str, Frame], fact: Frame, **options: Unpack[StarJoin]
) -> Result:
    """Join several streams through a fact relation within a memory budget for each.

    Parameters
    ----------
    streams : mapping of str to path or frame
        By name, in order: at equal times, tuples of an earlier stream arrive first.
    fact : path or frame
        Rows of facts, or of their changes.
    **options
        As ``winnow replay --stream`` has them; see `engine.replay_streams`. With `out` the outputs
        are a dataset in that folder, which must not exist.

    Returns
    -------
    Result
        ``outputs`` has ``NAME_row`` of every stream, ``fact_row``, ``ts``, ``importance``,
        ``weight``, and the columns of all as ``NAME_<column>`` and ``fact_<column>``.

    Raises
    ------
    WinnowError
        If an option, a frame or an archive is invalid, or the output cannot be written.
    """
    sources = streams_in_arrow(streams)
    found = star_tables(sources, in_arrow(fact, "fact"), **options)
    rows = _rows_of(found, sources, STAR.from_keywords(options))
    return Result(rows, replay_shown(Report(found.report)), found.rejected)


def _rows_of(
    found: MultiJoinOutput | StreamsResult, sources: Mapping[str, str | pa.Table], given: Given
) -> pa.Table | Outputs:
    """Return the outputs of a join of several streams, their times as the first stream's."""
    rows = Outputs(given["out"]) if found.outputs is None else found.outputs
    first, source = next(iter(sources.items()))
    time = by_stream("time", given["time"], [*sources])[first]
    return timed(rows, found.report["window"]["tick"], kind_of(source, first, time or ""))


def allocate(
    jobs: where.PathLike | Mapping[str, Any],
    *,
    plots: where.PathLike | None = None,
    cache: where.PathLike | None = None,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> Result:
    """Divide one memory over several joins as ``winnow allocate`` does (P5 5).

    Parameters
    ----------
    jobs : path or mapping
        A TOML file, or what one holds: ``{"memory": "20%", "join": [{"left": ..., ...}, ...]}``.
    plots, cache, executor, progress
        As for `engine.allocate_joins`.

    Returns
    -------
    Result
        ``outputs`` has a row for each join: ``name``, ``left`` and ``right``, null where both have
        one memory, ``memory``, ``predicted``, ``replayed``.

    Raises
    ------
    WinnowError
        If a job is invalid, an archive cannot be read, or the plots cannot be written.
    """
    report = allocate_joins(jobs, plots=plots, cache=cache, executor=executor, progress=progress)
    names = ("left", "right", "memory", "predicted", "replayed")
    rows = [
        {"name": join["name"]} | {name: join["alloc"][name] for name in names}
        for join in report["joins"]
    ]
    asked = Request(call_text("allocate", {"jobs": jobs}, ()), ())
    shown = allocation_shown(Report(report))._replace(request=asked)
    kinds = [pa.string(), *[pa.int64()] * 3, *[pa.float64()] * 2]
    outputs = pa.Table.from_pylist(rows, pa.schema(zip(("name", *names), kinds, strict=True)))
    return Result(outputs, shown, drawn=partial(allocation_figure, report))


class Generated(Result):
    """Synthetic streams: `streams` has each by its name."""

    streams: Mapping[str, pa.Table] = {}


def generate(kind: str = "zipf", **options: Any) -> Generated:  # noqa: ANN401 - options of any kind
    """Make synthetic streams in memory as ``winnow generate`` writes them.

    Parameters
    ----------
    kind : {"zipf", "age", "gaussian"}
    **options
        As ``winnow generate`` has them for this kind, without `out`.

    Returns
    -------
    Generated
        ``outputs`` has all tuples, with their ``stream``.

    Raises
    ------
    SpecError
        If an option is missing, unknown or invalid.

    Examples
    --------
    >>> left, right = generate("zipf", rows=3, domain=2, seed=1).streams.values()
    >>> left.column_names, right.num_rows
    (['ts', 'key', 'importance', 'payload'], 3)
    """
    commands = {own.name: own for own in GENERATE.kinds}
    command = commands[chosen("kind", kind, [*commands])]
    with command.as_keywords():
        given = command.given(values_of(command, options, ""))
        made = sources_of(command.name, given)
    streams = dict(zip(made, in_memory(made.values()), strict=True))
    every = pa.concat_tables(
        [
            table.add_column(0, "stream", pa.repeat(pa.scalar(name), table.num_rows))
            for name, table in streams.items()
        ]
    )
    report = {"kind": command.name, "rows": {name: own.num_rows for name, own in streams.items()}}
    asked = Request(call_text("generate", {"kind": kind, **options}, options), ())
    shown = Shown(
        "generate", report, partial(_print_rows, report), partial(_streams, report), asked
    )
    found = Generated(every, shown)
    found.streams = streams
    return found


def _print_rows(report: Mapping[str, Any], console: Console) -> None:
    for name, rows in report["rows"].items():
        console.print(f"{name}: {rows:,} rows")


def _streams(report: Mapping[str, Any]) -> list[Chart]:
    rows = report["rows"]
    return [Bars(report["kind"], "tuples", list(rows), [Series("tuples", list(rows.values()))])]
