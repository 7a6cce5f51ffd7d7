"""The other tasks: look-ups, joins of several streams, and synthetic streams."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Unpack

import pyarrow as pa
from rich.console import Console

from engine.api.frames import (
    Frame,
    Numbered,
    OfSpark,
    by_name,
    counting,
    home_of,
    in_arrow,
    not_of_spark,
    streams_in_arrow,
)
from engine.api.keywords import call_text, takes
from engine.api.result import Outputs, Result, kind_of, timed
from engine.api.tables import read_several
from engine.generate.source import in_memory
from engine.jobs.lookup.whole import look_up, look_up_rows
from engine.jobs.multijoin.run import run_multijoin
from engine.jobs.star.run import run_star
from engine.options import where
from engine.options.command import values_of
from engine.options.generate import GENERATE, sources_of
from engine.options.lookup import LOOKUP, Lookup, lookup_of
from engine.options.multijoin_given import multijoin_of
from engine.options.multijoin_options import MULTIJOIN, MultiJoin
from engine.options.star import STAR, StarJoin, star_of
from engine.report.charts import Bars, Chart, Series
from engine.report.joins import lookup_shown, multijoin_shown, replay_shown
from engine.report.shown import Request, Shown
from engine.runtime.errors import chosen
from engine.runtime.executors import ThreadExecutor


class LookupKeywords(Lookup, where.Out, OfSpark, total=False):
    """The keywords of a look-up of any frames."""


@takes(LOOKUP)
def lookup(
    stream: Frame, fact: Frame, *, count_only: bool = False, **options: Unpack[LookupKeywords]
) -> Result:
    """Join a stream with the facts that are active when its tuples arrive.

    Exact and stateless: r and f are an output if f has r's attribute and begin <= r's time < end
    (P2 2.1, 2.2). The importance of the output is that of r.

    Parameters
    ----------
    stream, fact : path or frame
        Files or frames, as for `replay`; Spark DataFrames stay in Spark.
    count_only : bool
        Keep no outputs, which may be many: the result has a report alone.
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
        there: Result = home.lookup(stream, fact, **options, **counting(count_only))
        return there
    sources = in_arrow(stream, "stream"), in_arrow(fact, "fact")
    given = LOOKUP.from_keywords(not_of_spark(options))
    job = lookup_of(given)
    rows: pa.Table | Outputs
    if job.out is None and not count_only:
        rows, report, rejected = look_up_rows(job, *sources)
    else:
        rows = Outputs(job.out, count_only=count_only)
        report, rejected = look_up(job, *sources), {}
    kind = kind_of(sources[0], "stream", given["time"])
    unit = "day" if pa.types.is_date(kind) else getattr(kind, "unit", "tick")
    return Result(timed(rows, unit, kind), lookup_shown(report), rejected)


class MultiJoinKeywords(MultiJoin, where.Out, total=False):
    """The keywords of a multi-way join."""


class MultiJoinFrames(MultiJoinKeywords, Numbered, total=False):
    """The keywords of a multi-way join of any frames."""


@takes(MULTIJOIN)
def multijoin(
    streams: Mapping[str, Frame], *, count_only: bool = False, **options: Unpack[MultiJoinFrames]
) -> Result:
    """Join 2 to 8 streams on any predicate: exactly (P3), or within a budget of memory or CPU (P4).

    An output is one tuple of every stream, of which the latest finds all others unexpired.

    Parameters
    ----------
    streams : mapping of str to path or frame
        By name, in order: at equal times, tuples of an earlier stream arrive first. Spark
        DataFrames stay in Spark.
    count_only : bool
        Keep no outputs, which may be many: the result has a report alone.
    **options
        As ``winnow multijoin`` has them. `time`, `importance`, `window` and `buckets` are for all
        streams, or mappings by name, where ``""`` stands for all that are not named. `predicate`
        is text or a `Predicate`; `profiles` is ``{"left,right": file}``. With `out` the outputs are
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

    Examples
    --------
    >>> trades = pa.table({"t": [1, 4, 9], "price": [10.0, 10.5, 11.0]})
    >>> quotes = pa.table({"t": [0, 3, 8], "mid": [10.0, 10.4, 10.9]})
    >>> orders = pa.table({"t": [2, 5, 7], "price": [10.1, 10.6, 12.0]})
    >>> found = multijoin({"trades": trades, "quotes": quotes, "orders": orders},
    ...                   predicate="band:price:0.25", columns_of={"quotes.price": "mid"},
    ...                   time="t", window=5, columns="ids")
    >>> found.outputs.select(["trades_row", "quotes_row", "orders_row", "ts"]).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'trades_row': 0, 'quotes_row': 0, 'orders_row': 0, 'ts': 2},
     {'trades_row': 1, 'quotes_row': 1, 'orders_row': 1, 'ts': 5}]
    """
    home = home_of(*by_name(streams).values())
    if home is not None:
        there: Result = home.multijoin(streams, **options, **counting(count_only))
        return there
    own = not_of_spark(options)
    sources = streams_in_arrow(streams)
    given = MULTIJOIN.from_keywords(own)
    rows, report, rejected = read_several(
        sources,
        given,
        lambda: run_multijoin(multijoin_of(sources, given), ThreadExecutor()),
        count_only=count_only,
    )
    return Result(rows, multijoin_shown(report), rejected)


@takes(STAR)
def replay_streams(
    streams: Mapping[str, Frame], fact: Frame, *, count_only: bool = False,
    **options: Unpack[StarJoin],
) -> Result:  # fmt: skip
    """Join several streams through a fact relation within a memory budget for each.

    A fact joins one tuple of every stream (P2 2): those of its attributes that arrive while it is
    active. The latest of them must find the others unexpired.

    Parameters
    ----------
    streams : mapping of str to path or frame
        By name, in order: at equal times, tuples of an earlier stream arrive first.
    fact : path or frame
        Rows of facts, or of their changes.
    count_only : bool
        Keep no outputs, which may be many: the result has a report alone.
    **options
        As ``winnow replay --stream`` has them. `on`, `time`, `importance` and `window` are for all
        streams, or mappings by name, where ``""`` stands for all that are not named. A single
        `memory` is split evenly, the odd rest to the first streams; in a mapping of it, which takes
        no ``""``, a stream that is not named is exact. `fact_on` maps streams to F's attributes, by
        default the columns of the streams' names. AGE takes the parameter ``curve_NAME`` for a
        stream's own curve; there is no policy `yield`. With `out` the outputs are a dataset in that
        folder, which must not exist.

    Returns
    -------
    Result
        ``outputs`` has ``NAME_row`` of every stream, ``fact_row``, ``ts``, ``importance``,
        ``weight``, and the columns of all as ``NAME_<column>`` and ``fact_<column>``.

    Raises
    ------
    WinnowError
        If an option, a frame or an archive is invalid, or the output cannot be written.

    Examples
    --------
    >>> orders = pa.table({"t": [0, 1], "order": [7, 8], "price": [5.0, 3.0]})
    >>> payments = pa.table({"t": [2, 3], "payment": ["x", "y"], "price": [4.0, 3.0]})
    >>> parcels = pa.table({"t": [4, 5, 9], "parcel": [1, 1, 2], "price": [9.0, 1.0, 3.0]})
    >>> links = pa.table({"orders": [7, 8], "payments": ["x", "y"], "parcels": [1, 2]})
    >>> found = replay_streams(
    ...     {"orders": orders, "payments": payments, "parcels": parcels}, links,
    ...     on={"orders": "order", "payments": "payment", "parcels": "parcel"},
    ...     time="t", importance="price", window=5, columns="ids")
    >>> found.outputs.select(["orders_row", "parcels_row", "fact_row", "importance"]).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'orders_row': 0, 'parcels_row': 0, 'fact_row': 0, 'importance': 4.0},
     {'orders_row': 0, 'parcels_row': 1, 'fact_row': 0, 'importance': 1.0}]
    """
    sources = streams_in_arrow(streams)
    given = STAR.from_keywords({**options, "fact": in_arrow(fact, "fact")})
    rows, report, rejected = read_several(
        sources,
        given,
        lambda: run_star(star_of(sources, given), ThreadExecutor()),
        given["fact"],
        count_only=count_only,
    )
    return Result(rows, replay_shown(report), rejected)


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
