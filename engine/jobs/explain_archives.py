"""Statistics for join orders, measured on archives."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from engine.jobs.explain import Measured
from engine.jobs.multijoin.join_task import TICKS, MultiJoinTask, check_rows, open_join
from engine.jobs.multijoin.orders import bucket_numbers, statistics_of
from engine.jobs.multijoin.read import Read, read_streams
from engine.multiway.loops.method import LoopsSettings
from engine.multiway.loops.run import LoopsRun
from engine.multiway.measure import Measures, measure
from engine.multiway.orders.choose import choose_local_orders, choose_order
from engine.multiway.orders.problem import JoinStatistics, OrderingProblem, StreamStatistics
from engine.multiway.streams import MultiStreams
from engine.options.by_stream import BY_STREAM
from engine.options.command import Given
from engine.options.multijoin_given import multijoin_of
from engine.options.multijoin_options import MULTIJOIN
from engine.runtime.executors import Progress, SerialExecutor, Stages


class Archives(NamedTuple):
    """What was found of a join of archives.

    Attributes
    ----------
    statistics : JoinStatistics
    tau : float or None
    measured : list of Measured
        The run of the chosen order, if one was asked for.
    unit : {"second", "tick"} or None
        Of all times: seconds, where the time columns hold times; None where it is not known.
    """

    statistics: JoinStatistics
    tau: float | None
    measured: list[Measured]
    unit: str | None


def measured_archives(given: Given, progress: Progress | None = None) -> Archives:
    """Measure what orders depend on in archives, and run the join if requested.

    Memory: the streams.

    Parameters
    ----------
    progress : callable, optional
        Called as ``progress(stage, done, total)``.

    Raises
    ------
    WinnowError
        If an option or an archive is invalid.
    """
    own = (
        "predicate",
        "columns_of",
        "time",
        "window",
        "join_graph",
        "bad_rows",
        "method",
        "tau",
        "time_unit",
    )
    join = {name: given[name] for name in own if name in given} | {"method": given["method"]}
    if "buckets" in given:
        join["buckets"] = BY_STREAM.read("--buckets", given["buckets"])
    task = open_join(multijoin_of(given["stream"], MULTIJOIN.given(join)))
    options, loops = task.options, task.options.loops
    stages = Stages(SerialExecutor(), progress)
    rows = sum(file.rows or 0 for own in task.sources for file in own.archive.files)
    (read,) = stages.mapped("read", _read, [task], [rows])
    if options.bad_rows == "error":
        check_rows(task, [read.faults])
    joined = read.lanes[0].streams
    ticks = TICKS[task.unit]
    (found,) = stages.mapped("measure", partial(_measures, task), [joined])
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
        run = partial(_run, task, joined, found.span / ticks)
        runs = stages.mapped("join", run, [problem], [joined.ts.size])
    return Archives(statistics, tau, runs, "tick" if task.unit == "tick" else "second")


def _read(task: MultiJoinTask) -> Read:
    return read_streams(
        task.sources, task.options.predicate, task.columns, task.windows, payload=False,
        rejected=False,
    )  # fmt: skip


def _measures(task: MultiJoinTask, streams: MultiStreams) -> Measures:
    return measure(streams, task.windows, task.options.predicate)


def _run(
    task: MultiJoinTask, streams: MultiStreams, span: float, problem: OrderingProblem
) -> Measured:
    """Run the join in the order that the heuristic chooses, and count its comparisons."""
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
