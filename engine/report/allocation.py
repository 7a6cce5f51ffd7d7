"""An allocation: tables on a and plots of memory and quality by join."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.options.allocate import RECALL
from engine.policies import POLICIES
from engine.report import figure_files, figures
from engine.report.charts import Bars, Chart, Series
from engine.report.envelope import Report
from engine.report.shown import Shown
from engine.report.tables import number, percent, print_end, table_of
from engine.runtime.errors import chosen
from engine.runtime.storage.uris import Place

_TITLES = {
    "alloc": "ALLOC: the worst join does as well as it can",
    "prop": "PROP: in proportion to what the exact joins need",
}


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
    if content["metric"] != RECALL:
        console.print("memory held on average: at their peaks samples may hold more")
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
            _how(join, by),
            *(_quality(join["expected"].get(model), "-") for model in expected),
        )
        for join in content["joins"]
    )
    title = (
        f"memory {number(memory['tuples'])} of {number(memory['exact'])} tuples; "
        f"{content['metric']} expected of PROP"
    )
    return table_of(("join", "weight", "peak", by, *expected), rows, title, texts=(0, 3))


def _how(join: dict[str, Any], by: str) -> str:
    """Return a join's method; or its policy, whether memory is pooled, and an estimator it has."""
    if by != "policy":
        return str(join[by])
    pooled = ", pooled" if join["pooled"] else ""
    own = POLICIES.get(join["policy"])
    estimator = f", {join['estimator']}" if own and own.estimates else ""
    return f"{join['policy']}{pooled}{estimator}"


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
    return figure_files.save_each(((name, figure_of(content, name)) for name in names), folder)


def figure_of(content: Mapping[str, Any], name: str = "memory") -> Any:  # noqa: ANN401 - matplotlib's
    """Return the plot of ``memory``, or of the report's ``metric``, as a figure."""
    plots = dict(zip((content["metric"], "memory"), _by_join(content), strict=True))
    return figures.figure_of([plots[chosen("plot", name, [*plots])]])


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
    quality, memory = [], []
    for how in _TITLES:
        parts = [join[how] for join in joins]
        memory.append(Series(how.upper(), [float(own["memory"]) for own in parts]))
        predicted, reached = (
            [None if own[name] is None else 100 * own[name] for own in parts]
            for name in ("predicted", "replayed")
        )
        quality.append(Series(how.upper(), reached))
        if reached != predicted:
            quality.append(Series(f"{how.upper()}, predicted", predicted))
    axis = "recall (% of the exact join)" if metric == RECALL else f"{metric} (%)"
    return [
        Bars(f"{metric.capitalize()} of each join", axis, names, quality),
        Bars("Memory of each join", "tuples, both streams", names, memory),
    ]
