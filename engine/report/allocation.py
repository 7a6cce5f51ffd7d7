"""An allocation: tables on a and plots of memory and quality by join."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from engine.options.allocate import RECALL
from engine.report.charts import Bars, Chart, Series
from engine.report.envelope import Report
from engine.report.figures import blank, save_each
from engine.report.shown import Shown
from engine.report.tables import number, percent, print_end, table_of
from engine.runtime.errors import chosen
from engine.runtime.uris import Place

_TITLES = {
    "alloc": "ALLOC: the worst join does as well as it can",
    "prop": "PROP: in proportion to what the exact joins need",
}
_COLOURS = {"alloc": "#0072B2", "prop": "#E69F00"}
_WIDTH = 0.38


def print_allocation(report: Report, console: Console) -> None:
    """Print the joins, what each gets by both allocations, and the worst of each."""
    content = report.content
    console.print(_joins(content))
    known = [f"{join['name']} by {join['profile']}" for join in content["joins"] if join["profile"]]
    if known:
        console.print(f"profiles used instead of a pass over the archives: {', '.join(known)}")
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
    expected = [*dict.fromkeys(name for join in content["joins"] for name in join["expected"])]
    rows = (
        (
            join["name"],
            f"{join['weight']:g}",
            number(sum(join["exact"]["peak"].values())),
            join[by] + (", pooled" if join.get("pooled") else ""),
            *(_quality(join["expected"].get(model), "-") for model in expected),
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
            *(_side(join[how][side]) for side in ("left", "right")),
            number(join[how]["memory"]),
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


def _side(memory: int | None) -> str:
    return "pooled" if memory is None else number(memory)


def _quality(value: float | None, none: str = "no bound") -> str:
    return none if value is None else percent(value)


def draw(content: dict[str, Any], folder: Place) -> list[Place]:
    """Draw ``memory`` and ``recall`` (or ``error``) as PNG and SVG.

    Parameters
    ----------
    content : dict
        Of the report.
    folder : Path or Uri
        Made if it is not there.

    Raises
    ------
    OutputError
        If they cannot be written.
    """
    names = ("memory", content["metric"])
    return save_each(((name, figure_of(content, name)) for name in names), folder)


def figure_of(content: Mapping[str, Any], name: str = "memory") -> Any:  # noqa: ANN401 - matplotlib's
    """Return the plot of ``memory``, or of the report's ``metric``, as a figure."""
    name, joins = chosen("plot", name, ("memory", content["metric"])), content["joins"]
    figure = blank(2.8 + 1.1 * len(joins), 3.8)
    axis = figure.subplots()
    places = np.arange(len(joins))
    for shift, how in ((-0.5, "alloc"), (0.5, "prop")):
        at = places + shift * _WIDTH
        values = [_value(join[how], name) for join in joins]
        axis.bar(at, values, 0.92 * _WIDTH, color=_COLOURS[how], label=how.upper())
        if name != "memory":
            predicted = [100 * (join[how]["predicted"] or 0.0) for join in joins]
            axis.plot(
                at, predicted, linestyle="none", marker="_", markersize=16, markeredgewidth=2,
                color="#000000", label="predicted" if how == "prop" else None,
            )  # fmt: skip
    axis.set_xticks(places, [join["name"] for join in joins])
    axis.set_ylabel(
        {"memory": "tuples, both streams", RECALL: "outputs found (% of the exact join's)"}.get(
            name, "standard error (% of the sum)"
        )
    )
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axis.grid(visible=True, axis="y", color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)
    title = f"{name.capitalize()} of the joins, {content['memory']['tuples']:,} tuples in all"
    figure.suptitle(title, fontsize=12, x=0.01, horizontalalignment="left")
    figure.legend(loc="outside right center", frameon=False, fontsize=9)
    return figure


def _value(part: dict[str, Any], name: str) -> float:
    """Return the height of a bar: what was replayed, else what is predicted."""
    if name == "memory":
        return float(part["memory"])
    quality = part["predicted"] if part["replayed"] is None else part["replayed"]
    return 100 * (quality or 0.0)


def allocation_shown(report: Report) -> Shown:
    """Return what is shown of an allocation."""
    content = report.content
    return Shown(
        "allocate", content, partial(print_allocation, report), partial(_by_join, content)
    )  # fmt: skip


def _by_join(content: Mapping[str, Any]) -> list[Chart]:
    """Return the quality and the memory of each join, by both allocations."""
    joins, metric = content["joins"], content["metric"]
    names = [join["name"] for join in joins]

    def bars(title: str, x: str, name: str) -> Chart:
        series = [Series(how.upper(), [_value(own[how], name) for own in joins]) for how in _TITLES]
        return Bars(title, x, names, series)

    quality = "recall (% of the exact join)" if metric == RECALL else f"{metric} (%)"
    return [
        bars(f"{metric.capitalize()} of each join", quality, metric),
        bars("Memory of each join", "tuples, both streams", "memory"),
    ]
