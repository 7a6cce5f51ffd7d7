"""Orders of multi-way joins, of given statistics or of streams that are measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Unpack

import pyarrow as pa

from engine.api.frames import Frame, streams_in_arrow
from engine.api.keywords import takes
from engine.api.result import Result
from engine.jobs.explain import explain as explained
from engine.jobs.explain_archives import Archives, measured_archives
from engine.multiway.orders.problem import OrderingProblem
from engine.options.explain import (
    EXPLAIN,
    SHOWN,
    Measure,
    Order,
    Shown,
    Statistics,
    check_options,
    question,
    statistics,
)
from engine.options.multijoin_options import Arriving, On
from engine.options.streams import Reading, TimeUnit
from engine.report.order_tables import explain_shown


class ExplainKeywords(
    Statistics, Order, Shown, Arriving, On, TimeUnit, Reading, Measure, total=False
):
    """The keywords of an explanation, of statistics or of streams."""


@takes(EXPLAIN)
def explain(
    streams: Mapping[str, Frame] | None = None, **options: Unpack[ExplainKeywords]
) -> Result:
    """Say which order a multi-way join should take, from statistics of its streams (P3).

    Parameters
    ----------
    streams : mapping of str to path or frame, optional
        By name, to be measured; `predicate`, `time` and `window` say what joins them, as for
        `multijoin`, and ``measure=True`` runs the join in the chosen order. Without them, `rates`,
        `windows` and `distinct` or `selectivities` are given.
    **options
        As ``winnow explain`` has them; a list of numbers may be a sequence.

    Returns
    -------
    Result
        ``outputs`` has the orders, the cheapest first: ``order``, ``cost``, ``comparisons``, and
        ``direction`` where every stream has an order of its own.

    Raises
    ------
    WinnowError
        If a statistic, an option or a stream is missing or invalid.

    Examples
    --------
    >>> found = explain(rates=[10, 1, 1, 3], windows=[100, 100, 200, 100],
    ...                 distinct=[500, 50, 40, 5], top=1)
    >>> found.report.chosen, found.outputs.to_pylist()[0]["cost"]
    ([1, 2, 3, 4], 16000.0)
    """
    given = EXPLAIN.from_keywords(options)
    if streams is not None:
        given["stream"] = streams_in_arrow(streams)
    check_options(given)
    asks = question(given)
    if streams is None:
        found = Archives(statistics(given), asks.tau, [], None)
    else:
        found = measured_archives(given)
    problem = OrderingProblem(found.statistics, asks.method, found.tau)
    report = {"unit": found.unit, **explained(problem, found.measured, asks.top)}
    rows = [
        ({"direction": one["direction"]} if "direction" in one else {}) | line
        for one in report.get("directions", [report])
        for line in one["orders"]
    ]
    return Result(pa.Table.from_pylist(rows), explain_shown(report, asks.top or SHOWN))
