"""The report of an estimate on the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from rich.console import Console
from rich.table import Table

from engine.report.charts import Chart, Series, over_time
from engine.report.envelope import Report
from engine.report.sample_table import groups_of, print_aggregates
from engine.report.shown import Shown
from engine.report.tables import facts_line, length, number, percent, print_end, rounded, table_of
from engine.runtime.streams import SIDES

_ALL = 0.95
"""Share from which on a limit of what is read spares nothing."""
_WHOLE = 0.5
"""From here on counts have no decimals."""
_MUCH = 0.01
"""Share of the outputs from which on it is told that replays do not forget how they began."""


def print_estimate(report: Report, aggregates: Mapping[str, pa.Table], console: Console) -> None:
    """Print the estimates, what was read for them, and what everything would have cost."""
    content = report.content
    if "policy" in content:
        console.print(_measures(aggregates))
    else:
        print_aggregates(content, aggregates, console)
    console.print(_how(content))
    exact = content["exact"]
    console.print(_read(content))
    if "lanes" in content:
        console.print(f"from the lanes in {content['lanes']}")
    if "fact" in content:
        console.print(facts_line(content["fact"]))
    if "policy" in content:
        console.print(_kept(content))
    if content.get("sizes") == "keys" and content["slices"]["ticks"] is not None:
        console.print(f"keys of all rows read before: {percent(content['pass'])} of the bytes")
    if content["rejected"]:
        console.print(f"set aside: {number(content['rejected'])} rows with a wrong importance")
    seconds = exact["seconds"]
    details = ""
    if content["how"].startswith("sample") and seconds is not None:
        what = "a whole replay" if "policy" in content else "the exact join"
        details = f"{what} would take about {seconds:.2f}"
    print_end(console, content, details)


def _read(content: Mapping[str, Any]) -> str:
    """Return what was read, which may be more than there is: stretches share row groups.

    Examples
    --------
    >>> exact = {"bytes": 2000, "row_groups": 2}
    >>> read = {"bytes": 3000, "share": 1.5, "row_groups": 3, "rows": 30}
    >>> print(_read({"read": read, "exact": exact, "rows": {"left": 10, "right": 10}}))
    ... # doctest: +ELLIPSIS
    read: 3,000 bytes, where there are 2,000, as some were read more than once: 3 reads of 2 ...
    """
    read, exact = content["read"], content["exact"]
    rows = sum(content["rows"].values())
    if read["share"] > 1 or read["row_groups"] > exact["row_groups"] or read["rows"] > rows:
        return (
            f"read: {number(read['bytes'])} bytes, where there are {number(exact['bytes'])}, as "
            f"some were read more than once: {number(read['row_groups'])} reads of "
            f"{number(exact['row_groups'])} row groups, and {number(read['rows'])} reads of "
            f"{number(rows)} rows"
        )
    return (
        f"read: {percent(read['share'])} of {number(exact['bytes'])} bytes, "
        f"{number(read['row_groups'])} of {number(exact['row_groups'])} row groups, "
        f"{number(read['rows'])} of {number(rows)} rows"
    )


def _measures(tables: Mapping[str, pa.Table]) -> Table:
    """Draw what a replay is expected to come to."""
    rows = []
    for measure, table in tables.items():
        [line] = table.to_pylist()
        shown = percent if "recall" in measure else _rounded
        low, high = line["low"], line["high"]
        interval = f"none: {line['no_interval']}"
        if low is not None:
            interval = f"{shown(low)} to {shown(high)}"
        estimate = "" if line["estimate"] is None else shown(line["estimate"])
        rows.append((measure.replace("_", " "), estimate, interval))
    return table_of(("", "estimate", "interval"), rows, texts=range(1))


def _rounded(value: float) -> str:
    return rounded(value, whole=value == 0 or abs(value) >= _WHOLE)


def _kept(content: Mapping[str, Any]) -> str:
    """Return what was replayed, and what is known of its lead-in."""
    memory, lead = content["memory"], content["lead_in"]
    sides = [memory[side] for side in SIDES]
    tuples = " + ".join("all" if own is None else number(own) for own in sides)
    if memory["left"] is None and memory["both"] is not None:
        tuples = number(memory["both"])
    said = (
        f"{content['policy']['name']} with {tuples} tuples; for their peaks, "
        f"{percent(content['pass'])} of the bytes were read besides"
    )
    if lead is not None and lead["share"] is not None:
        short, long = lead["compared_with"], lead["lifetimes"]
        other = f"{short} windows of lead-in in place of {long} change outputs"
        if lead["loses_keys"]:
            other = (
                f"without half of the keys in the first {long - short} of {long} windows of "
                "lead-in, outputs change"
            )
        said += f"\n{other} by {100 * lead['share']:+.2f} %, which is inside the intervals"
        if lead["loses_keys"] and max(abs(lead["share"]), lead["lasting"]) > _MUCH:
            said += (
                "\na key without matches in memory is hardly ever let in again, so a replay does "
                "not forget how it began; --estimator window does"
            )
    return said


def stretches_of(ticks: int, unit: str) -> str:
    """Return what is drawn, with its length.

    Examples
    --------
    >>> stretches_of(2_879_999_999, "us"), stretches_of(2_500, "tick")
    ('stretches of 48 minutes', 'stretches of 2,500 ticks')
    """
    return f"stretches of {length(ticks, unit)}{' ticks' if unit == 'tick' else ''}"


def _how(content: Mapping[str, Any]) -> str:
    """Return how the estimates came about."""
    if content["how"] == "exact join":
        return f"joined exactly: {content['why']}"
    if content["how"] == "whole replay":
        return f"replayed from end to end: {content['why']}"
    slices, within = content["slices"], content["within"]
    by_keys = content["how"] == "sample of keys"
    tick = content["window"]["tick"]
    what = "parts of the keys" if by_keys else stretches_of(slices["ticks"], tick)
    some = any(own["without_interval"] < own["estimates"] for own in content["aggregates"])
    intervals = f"{100 * content['confidence']:g} % intervals " if some else ""
    said = f"{intervals}from {slices['drawn']:,} of {slices['all']:,} {what}"
    if "lead_in" in content:
        said += f", each after {content['lead_in']['lifetimes']} windows that fill the memory"
    if slices["certain"]:
        chance = slices["drawn"] - slices["certain"]
        said += f", {slices['certain']:,} of them chosen and {chance:,} drawn at random"
    if content["how"] == "sample of keys":
        said += f"; all rows were read: {content['why']}, or have winnow prepare write its lanes"
    if content["stopped"] is not None:
        said += "; stopped by " + ("you" if content["stopped"] == "interrupted" else "--seconds")
    needed, most = content["read"]["needed"], content["read"]["asked"]
    if most is not None and slices["drawn"] == 1 and content["read"]["share"] > most:
        keys = content.get("pass")
        what = f"the pass over the keys took {percent(keys)}" if keys else "one takes more"
        said += f"; {what} {'of' if keys else 'than'} the {percent(most)} of --read"
    if needed is not None:
        said += "; for an interval " + (
            f"give --read {math.ceil(100 * needed)}% or more"
            if needed < _ALL
            else "leave --read out: there are so few stretches that everything is read"
        )
    asked, reached = within["asked"], within["reached"]
    if asked is not None and (reached is None or reached > asked):
        wide = "not all have one" if reached is None else f"the widest reaches {percent(reached)}"
        said += f"; {percent(asked)} was asked for, and {wide}"
    return said


def estimate_shown(report: Report, aggregates: Mapping[str, pa.Table]) -> Shown:
    """Return what is shown of an estimate."""
    printed = partial(print_estimate, report, aggregates)
    grouped = any(map(groups_of, list(aggregates.values())[:1]))
    return Shown("estimate", report.content, printed, partial(_by_time, report.content, grouped))


def _by_time(content: Mapping[str, Any], grouped: bool) -> list[Chart]:
    """Draw the first aggregate in parts of time, over all of its groups if it has some."""
    parts = content["by_time"]
    if all(own["estimate"] is None for own in parts):
        return []
    values, low, high = ([own[name] for own in parts] for name in ("estimate", "low", "high"))
    edges = [*(own["from"] for own in parts), parts[-1]["to"] + 1]
    name = content["aggregates"][0]["aggregate"]
    series, title = Series(name, values), f"{name} over time"
    if grouped:
        title += ", all groups together"
    if any(own is not None for own in low):
        series = Series(name, values, low, high)
        title += f", with intervals of {100 * content['confidence']:g} %"
    return [over_time(content, title, "of each part of time", edges, [series])]
