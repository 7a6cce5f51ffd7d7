"""The report of an estimate on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from rich.console import Console

from engine.report.charts import Chart, Series, over_time
from engine.report.envelope import Report
from engine.report.sample_table import FIRST, aggregate_table
from engine.report.shown import Shown
from engine.report.tables import number, percent, print_end, terminal


def print_estimate(
    report: Report, aggregates: Mapping[str, pa.Table], console: Console | None = None
) -> None:
    """Print the estimates, what was read for them, and what everything would have cost."""
    console, content = console or terminal(), report.content
    for text, table in aggregates.items():
        console.print(aggregate_table(text, table, content))
        if table.num_rows > FIRST:
            console.print(f"the first {FIRST} of {table.num_rows:,} rows")
    console.print(_how(content))
    read, exact = content["read"], content["exact"]
    rows = sum(content["rows"].values())
    console.print(
        f"read: {percent(read['share'])} of {number(exact['bytes'])} bytes, "
        f"{number(read['row_groups'])} of {number(exact['row_groups'])} row groups, "
        f"{number(read['rows'])} of {number(rows)} rows"
    )
    if content["rejected"]:
        console.print(f"set aside: {number(content['rejected'])} rows with a wrong importance")
    seconds = exact["seconds"]
    details = ""
    if content["how"] == "sample" and seconds is not None:
        details = f"the exact join would take about {seconds:.2f}"
    print_end(console, content, details)
    if content["plot"]:
        console.print(f"plot: {content['plot']}")


def _how(content: Mapping[str, Any]) -> str:
    """Return how the estimates came about."""
    if content["how"] == "exact join":
        return f"joined exactly: {content['why']}"
    slices, within = content["slices"], content["within"]
    said = (
        f"{100 * content['confidence']:g} % intervals from {slices['drawn']:,} of "
        f"{slices['all']:,} stretches of {slices['ticks']:,} ticks"
    )
    if slices["certain"]:
        said += f", {slices['certain']:,} of them drawn for certain"
    if content["stopped"] is not None:
        said += "; stopped by " + ("you" if content["stopped"] == "interrupted" else "--seconds")
    asked, reached = within["asked"], within["reached"]
    if asked is not None and (reached is None or reached > asked):
        wide = "not all have one" if reached is None else f"the widest reaches {percent(reached)}"
        said += f"; {percent(asked)} was asked for, and {wide}"
    return said


def estimate_shown(report: Report, aggregates: Mapping[str, pa.Table]) -> Shown:
    """Return what is shown of an estimate."""
    printed = partial(print_estimate, report, aggregates)
    return Shown("estimate", report.content, printed, partial(_by_time, report.content))


def _by_time(content: Mapping[str, Any]) -> list[Chart]:
    parts = content["by_time"]
    if not parts:
        return []
    values, low, high = ([own[name] for own in parts] for name in ("estimate", "low", "high"))
    edges = [*(own["begin"] for own in parts), parts[-1]["end"]]
    name = content["aggregates"][0]["aggregate"]
    series, title = Series(name, values), f"{name} over time"
    if any(own is not None for own in low):
        series = Series(name, values, low, high)
        title += f", with intervals of {100 * content['confidence']:g} %"
    return [over_time(content, title, "of each part of time", edges, [series])]
