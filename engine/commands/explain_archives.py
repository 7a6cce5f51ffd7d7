"""``winnow explain --stream ..``: what the order of a join of archives depends on, measured."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

from engine.commands.given import Given, required, text
from engine.commands.per_stream import pairs, per_stream
from engine.jobs.explain import Measured
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.orders import bucket_numbers, statistics_of
from engine.jobs.multijoin.read import read_streams
from engine.jobs.multijoin.run import TICKS, check_rows, opened
from engine.multiway.loops.method import LoopsSettings
from engine.multiway.loops.run import LoopsRun
from engine.multiway.measure import measure
from engine.multiway.orders.choose import choose_local_orders, choose_order
from engine.multiway.orders.problem import (
    DEFAULT_METHOD,
    JoinStatistics,
    OrderingProblem,
    StreamStatistics,
)
from engine.multiway.streams import MultiStreams
from engine.options.multijoin import GRAPHS
from engine.options.multijoin_keywords import MultiJoin, multijoin_options
from engine.runtime.errors import SpecError

OF_ARCHIVES = ("predicate", "column", "time", "window", "join_graph", "bad_rows", "measure")
TOLD = ("rates", "windows", "distinct", "selectivities")


class Archives(NamedTuple):
    """What was found of a join of archives.

    Attributes
    ----------
    statistics : JoinStatistics
    tau : float or None
    measured : list of Measured
        The run of the chosen order, if one was asked for.
    unit : {"second", "tick"}
        Of all times: seconds, where the time columns hold times.
    """

    statistics: JoinStatistics
    tau: float | None
    measured: list[Measured]
    unit: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of archives."""
    own = parser.add_argument_group("archives, in place of told statistics, which are measured")
    own.add_argument("--stream", action="append", help="a stream, NAME=PATH; 2 to 8 times")
    own.add_argument("--predicate", help="as of winnow multijoin: equi:COL, band:COL:EPS, ..")
    own.add_argument("--column", action="append", help="attribute's other name, NAME.COL=ITS")
    own.add_argument(
        "--time", action="append", help="arrival time: VALUE for all, or NAME=VALUE with commas"
    )
    own.add_argument(
        "--window", action="append", help="ticks, a duration or rows:C; for all, or NAME=VALUE"
    )
    own.add_argument("--join-graph", help=f"{', '.join(GRAPHS)}: of the run")
    own.add_argument("--bad-rows", help="error (default), or quarantine: leave them out")
    own.add_argument(
        "--measure", action="store_const", const=True,
        help="run the join in the chosen order, and compare what it compares with the model",
    )  # fmt: skip


def check_options(given: Given) -> None:
    """Raise `SpecError` if statistics are both told and to be measured, or an option is of neither.

    Parameters
    ----------
    given : dict
        The options.
    """
    for name in TOLD if "stream" in given else OF_ARCHIVES:
        if name in given:
            option = "--" + name.replace("_", "-")
            raise SpecError(
                f"{option} is told, and --stream has it measured: leave one out"
                if "stream" in given
                else f"{option} is of archives: name each of them with --stream NAME=PATH"
            )


def measured_archives(given: Given) -> Archives:
    """Read the archives, measure what orders depend on, and run the join if that is asked.

    Raises
    ------
    WinnowError
        If an option means nothing, or an archive is no stream. Memory: the streams.
    """
    task = opened(
        multijoin_options(
            pairs(given, "stream", "NAME=PATH, such as trades=trades.parquet"),
            None,
            None,
            _join(given),
        )
    )
    options, loops = task.options, task.options.loops
    read = read_streams(
        task.sources, options.predicate, task.columns, task.windows, payload=False, rejected=False
    )
    if options.bad_rows == "error":
        check_rows(task, [read.faults])
    ticks = TICKS[task.columns.unit]
    found = measure(read.streams, task.windows, options.predicate)
    buckets = bucket_numbers(loops, options.names, found)
    counted = statistics_of(
        options.names, task.windows, found, buckets or [None] * len(options.names)
    )
    streams = tuple(
        StreamStatistics(own.name, own.rate * ticks, own.window / ticks, own.distinct, own.buckets)
        for own in counted.streams
    )
    statistics = JoinStatistics(streams, counted.selectivities)
    tau = None if task.tau is None else task.tau / ticks
    runs = []
    if "measure" in given:
        problem = OrderingProblem(statistics, loops.method, tau)
        runs = [_run(task, read.streams, problem, found.span / ticks)]
    return Archives(statistics, tau, runs, "tick" if task.columns.unit == "tick" else "second")


def _join(given: Given) -> MultiJoin:
    """Return the keywords of the join that the options describe."""
    join: dict[str, Any] = {"predicate": required(given, "predicate")}
    join |= {name: per_stream(given, name) for name in ("time", "window", "buckets")}
    join["columns_of"] = pairs(given, "column", "NAME.COL=ITS, such as quotes.price=mid")
    join["method"] = text(given, "method") or DEFAULT_METHOD
    for name in ("tau", "join_graph", "bad_rows"):
        if name in given:
            join[name] = text(given, name)
    return MultiJoin(**join)  # type: ignore[typeddict-item, no-any-return]


def _run(
    task: MultiJoinTask, streams: MultiStreams, problem: OrderingProblem, span: float
) -> Measured:
    """Run the join in the order that the heuristic chooses, and count what it compares."""
    order, orders = None, None
    if problem.algorithm.local:
        orders = [list(choice.order) for choice in choose_local_orders(problem)]
    else:
        order = list(choose_order(problem).order)
    own = [stream.buckets for stream in problem.statistics.streams]
    hashed = problem.algorithm.hashed != "none"
    settings = LoopsSettings(
        problem.method, task.options.graph, order, orders, task.tau, buckets=own if hashed else None
    )
    run = LoopsRun(streams, task.windows, task.options.predicate, settings, emit=False)
    for _ in run.parts():
        pass  # outputs are counted, not written
    return Measured(order or orders or [], run.counters.comparisons, span)
