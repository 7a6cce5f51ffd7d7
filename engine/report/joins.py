"""What is shown of the reports of joins: their tables and plots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from engine.report.answers import bounded_sum, of_any_split
from engine.report.charts import (
    Bars,
    Chart,
    Series,
    losses_by_key,
    losses_over_time,
    memory,
    memory_over_time,
    outputs_by_lane,
    over_time,
)
from engine.report.envelope import Report
from engine.report.join_tables import print_bound, print_lookup, print_report
from engine.report.multijoin_plots import figure_of
from engine.report.multijoin_tables import print_multijoin
from engine.report.shown import Shown


def replay_shown(report: Report) -> Shown:
    """Return what is shown of a replay, of two streams or of several."""
    content = report.content
    return Shown("replay", content, partial(print_report, report), partial(_replayed, content))


def _replayed(content: Mapping[str, Any]) -> list[Chart]:
    return [
        *losses_over_time(content), *memory_over_time(content), *losses_by_key(content),
        *memory(content), *_best(content),
    ]  # fmt: skip


def _best(content: Mapping[str, Any]) -> list[Chart]:
    """Return the result's importance beside the best possible and the exact join's."""
    bound = content.get("bound")
    if bound is None:
        return []
    best = {"this result": (content["result"]["importance"], None)}
    best["best possible"] = bound["lower"], bound["upper"]
    whole = of_any_split(bound)
    if whole is not None:
        best["best of any split"] = whole["lower"], whole["upper"]
    if "exact" in content:
        best["exact join"] = content["exact"]["importance"], None
    return [_bounds("How far from the best possible", "importance", best)]


def _bounds(title: str, x: str, values: Mapping[str, tuple[float, float | None]]) -> Chart:
    """Return bars of values, the upper bounds of some as marks."""
    lows, highs = zip(*values.values(), strict=True)
    marks = [Series("at most", highs)] if any(own is not None for own in highs) else []
    return Bars(title, x, list(values), [Series("reached, or possible", lows)], marks=marks)


def bound_shown(report: Report) -> Shown:
    """Return what is shown of bounds."""
    content = report.content
    return Shown("bound", content, partial(print_bound, report), partial(_bounded, content))


def _bounded(content: Mapping[str, Any]) -> list[Chart]:
    name = bounded_sum(content)
    values = {
        "best possible": (content["lower"], content["upper"]),
        "exact join": (content["exact"][name], None),
    }
    return [_bounds("Best possible and exact join", name, values)]


def lookup_shown(report: Report) -> Shown:
    """Return what is shown of a look-up."""
    content = report.content
    return Shown("lookup", content, partial(print_lookup, report), partial(lookup_charts, content))


def lookup_charts(content: Mapping[str, Any]) -> list[Chart]:
    """Return how many rows of a stream met how many facts."""
    rows = {
        "rows of the stream": content["rows"]["stream"],
        "rows with a fact": content["matched"],
        "outputs": content["outputs"],
    }
    return [Bars("Look-up", "rows", list(rows), [Series("rows", list(rows.values()))])]


def multijoin_shown(report: Report) -> Shown:
    """Return what is shown of a join of several streams."""
    content = report.content
    printed, drawn = partial(print_multijoin, report), partial(_joined, content)
    pictured = partial(figure_of, content) if content.get("harvest", {}).get("steps") else None
    return Shown("multijoin", content, printed, drawn, pictured=pictured)


def _joined(content: Mapping[str, Any]) -> list[Chart]:
    charts = [*losses_over_time(content), *outputs_by_lane(content)]
    if "harvest" in content:
        return [*charts, *_harvested(content), *_shed(content)]
    if "memory" in content:
        charts += [*memory(content), *_best(content)]
    if "exact" not in content:
        names = list(content["rows"])
        joined = Series("rows", [content["joined"][name] for name in names])
        charts.append(Bars("Rows that took part", "rows", names, [joined]))
    return charts


def _harvested(content: Mapping[str, Any]) -> list[Chart]:
    """Return how load was shed: throttle fraction, rates and outputs of each interval."""
    steps, settings = content["harvest"]["steps"], content["harvest"]["settings"]
    if not steps:
        return []
    span, second = settings["adapt_every"], settings["per_second"]
    ends = [own["to"] for own in steps]
    edges = [ends[0] - span, *ends]
    lengths = [max(end - begin, 1e-9) / second for begin, end in pairwise(edges)]

    def rates(values: Sequence[float]) -> list[float]:
        return [value / length for value, length in zip(values, lengths, strict=True)]

    names = list(content["rows"])
    came = [
        Series(f"{name}, {said}", rates([own[field][i] for own in steps]))
        for i, name in enumerate(names)
        for field, said in (("pushes", "arrived"), ("pops", "joined"))
    ]
    throttle = Series("throttle fraction", [own["throttle"] for own in steps])
    made = Series("outputs", rates([own["outputs"] for own in steps]))
    plots = (
        ("Throttle fraction", "part of a full join's work", [throttle]),
        ("Tuples that arrived and that were joined", "tuples a second", came),
        ("Outputs", "outputs a second", [made]),
    )
    return [over_time(content, title, y, edges, series) for title, y, series in plots]


def _shed(content: Mapping[str, Any]) -> list[Chart]:
    harvest, names = content["harvest"], list(content["rows"])
    parts = (
        ("pops", "joined"),
        ("drops", "dropped by a full buffer"),
        ("shed", "dropped at random"),
    )
    series = [Series(said, [harvest[field][name] for name in names]) for field, said in parts]
    return [Bars("What became of the tuples", "tuples", names, series, stacked=True)]
