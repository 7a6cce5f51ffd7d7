"""An allocation as a person reads it on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from engine.options.allocate import RECALL
from engine.report.envelope import Report
from engine.report.tables import number, percent, print_end, table_of

_TITLES = {
    "alloc": "ALLOC: the worst join does as well as it can",
    "prop": "PROP: in proportion to what the exact joins need",
}


def print_allocation(report: Report, console: Console | None = None) -> None:
    """Print the joins, what each gets by both allocations, and the worst of each."""
    content = report.content
    console = console or Console()
    console.print(_joins(content))
    told = [f"{join['name']} by {join['profile']}" for join in content["joins"] if join["profile"]]
    if told:
        console.print(f"told of without a pass over the archives: {', '.join(told)}", markup=False)
    for how, title in _TITLES.items():
        console.print(_parts(content, how, title))
    if content["refine"]:
        console.print(f"worst join replayed: {_rounds(content)}")
    print_end(console, content)


def _rounds(content: dict[str, Any]) -> str:
    """Return what the worst join of each division reached, and on which ALLOC settled."""
    return ", ".join(
        f"{one['by']} {_quality(one['replayed'], '-')}" + (" (settled)" if one["settled"] else "")
        for one in content["rounds"]
    )


def _joins(content: dict[str, Any]) -> Table:
    memory = content["memory"]
    by = "policy" if content["metric"] == RECALL else "method"
    expected = [*content["joins"][0]["expected"]]
    rows = (
        (
            join["name"],
            f"{join['weight']:g}",
            number(sum(join["exact"]["peak"].values())),
            join[by],
            *(_quality(join["expected"][model]) for model in expected),
        )
        for join in content["joins"]
    )
    title = (
        f"memory {number(memory['tuples'])} of {number(memory['exact'])} tuples; "
        f"{content['metric']} expected of PROP"
    )
    return table_of(("join", "weight", "peak", by, *expected), rows, title, texts=(0, 3))


def _parts(content: dict[str, Any], how: str, title: str) -> Table:
    metric = content["metric"]
    rows = (
        (
            join["name"],
            *(number(join[how][name]) for name in ("left", "right", "memory")),
            _quality(join[how]["predicted"]),
            _quality(join[how]["replayed"], "-"),
        )
        for join in content["joins"]
    )
    headings = ("join", "left", "right", "memory", f"{metric} predicted", "replayed")
    table = table_of(headings, rows, title)
    table.add_section()
    table.add_row(
        "least / weight" if metric == RECALL else "most * weight",
        "",
        "",
        number(content[how]["memory"]),
        _quality(content[how]["predicted"]),
        _quality(content[how]["replayed"], "-"),
    )
    return table


def _quality(value: float | None, none: str = "no bound") -> str:
    return none if value is None else percent(value)
