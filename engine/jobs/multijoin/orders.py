"""Join orders of a join that was read: as they are given, else by the papers' heuristics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.multiway.loops.method import METHODS, LoopsSettings
from engine.multiway.measure import Measures, measure
from engine.multiway.orders.choose import choose_local_orders, choose_order, low_selectivity_orders
from engine.multiway.orders.problem import JoinStatistics, OrderingProblem, StreamStatistics
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams, Windows
from engine.options.multijoin import Loops, MultiJoinOptions
from engine.runtime.errors import SpecError

MOST_BUCKETS = 1 << 24
"""Hash buckets of a stream that may be asked for; each takes 8 bytes or more."""

HASHING = tuple(name for name, method in METHODS.items() if method.hashed != "none")


def statistics_of(
    names: Sequence[str], windows: Windows, found: Measures, buckets: Sequence[int | None]
) -> JoinStatistics:
    """Return what P3's cost model needs to know, times in ticks.

    Where attributes have no codes, a stream counts as having so many distinct values as make the
    average selectivity of its pairs.

    Parameters
    ----------
    names : m strings
    buckets : m ints or None
    """
    streams = []
    off = ~np.eye(len(names), dtype=np.bool_)
    for i, name in enumerate(names):
        rate = float(found.rates[i])
        span = float(windows.size[i])
        if windows.by_rows[i]:
            span = span / rate if rate else 0.0
        distinct = float(found.distinct[i])
        if distinct == 1.0:
            mean = float(found.selectivities[i][off[i]].mean())
            distinct = max(1.0, 1.0 / mean) if mean > 0 else max(1.0, rate * span)
        streams.append(StreamStatistics(name, rate, span, distinct, buckets[i]))
    return JoinStatistics(tuple(streams), found.selectivities.tolist())


def harvest_orders(
    streams: MultiStreams, windows: Windows, predicate: Predicate, names: Sequence[str],
    order: Sequence[str], basic_window: int | None = None,
) -> tuple[list[list[int]], Measures]:  # fmt: skip
    """Return R_i of every direction: the global order without i, else by low selectivity first."""
    found = measure(streams, windows, predicate, basic_window)
    if order:
        given = [names.index(name) for name in order]
        return [[j for j in given if j != i] for i in range(len(names))], found
    return [list(own) for own in low_selectivity_orders(found.selectivities.tolist())], found


def bucket_numbers(loops: Loops, names: Sequence[str], found: Measures) -> list[int | None] | None:
    """Return the hash buckets of every stream for a method that hashes; None for one that does not.

    Unless they are given, hash methods take as many as a window has distinct attributes.
    """
    if loops.method not in HASHING:
        return None
    everyone = loops.buckets.get("")
    given = [loops.buckets.get(name, everyone) for name in names]
    if loops.method == "hybrid" and any(given):
        return given
    return [
        max(1, round(float(distinct))) if own is None else own
        for own, distinct in zip(given, found.distinct, strict=True)
    ]


def check_loops(options: MultiJoinOptions, tau: int | None, expire_every: int | None) -> None:
    """Raise `SpecError` if the options of an algorithm of P3 do not go together."""
    loops, m = options.loops, len(options.names)
    for name, number in loops.buckets.items():
        given = f"{name}={number}" if name else str(number)
        if number < 1:
            raise SpecError(f"--buckets {given} must be 1 or more")
        if number > MOST_BUCKETS:
            raise SpecError(
                f"--buckets {given} take too much memory: give at most {MOST_BUCKETS:,}"
            )
    some = 1 if loops.buckets or loops.method in HASHING else None  # else measured
    settings = LoopsSettings(
        loops.method, options.graph, tau=tau, expire_every=expire_every or 0, buckets=some
    )
    settings.lists(m, options.predicate)


def loops_orders(
    streams: MultiStreams, windows: Windows, predicate: Predicate, names: Sequence[str],
    loops: Loops, tau: int | None,
) -> tuple[list[int] | None, list[list[int]] | None, list[int | None] | None]:  # fmt: skip
    """Return what an algorithm of P3 needs: the global order or the local ones, and buckets.

    By P3's heuristic (5.1 to 5.4) unless an order is given.
    """
    given = [names.index(name) for name in loops.order]
    local = loops.method == "general-lazy-nlj"
    found = measure(streams, windows, predicate)
    buckets = bucket_numbers(loops, names, found)
    if given:
        everyone = [[i, *(j for j in given if j != i)] for i in range(len(names))]
        return (None, everyone, buckets) if local else (given, None, buckets)
    join = statistics_of(names, windows, found, buckets or [None] * len(names))
    problem = OrderingProblem(join, loops.method, None if tau is None else float(tau))
    if local:
        return None, [list(choice.order) for choice in choose_local_orders(problem)], buckets
    return list(choose_order(problem).order), None, buckets
