"""The explanation of a join order as a person reads it on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.report.charts import Bars, Chart, Series
from engine.report.shown import Shown
from engine.report.tables import number, table_of, terminal


def print_explanation(
    content: dict[str, Any], shown: int | None = None, console: Console | None = None
) -> None:
    """Print the streams, the cheapest orders and the choice.

    Parameters
    ----------
    content : dict
        What `explain.explain` returns, and perhaps the ``unit`` of its times.
    shown : int or None
        Orders to print, of those that it lists; None: all.
    """
    console = console or terminal()
    console.print(_streams(content["streams"]))
    tau = "" if content["tau"] is None else f", every {content['tau']:g}"
    unit = content.get("unit") or "unit time"
    _say(console, f"{content['method']}{tau}: comparisons per {unit}")
    for ranking in content.get("directions", [content]):
        if "direction" in ranking:
            _say(console, f"new tuples of stream {ranking['direction']}")
        console.print(_orders(ranking, shown))
        _say(console, _choice(ranking))
    if "directions" in content:
        total, best = number(content["chosen_cost"]), number(content["best_cost"])
        _say(console, f"all streams: chosen {total}, best {best}")
    if "low_selectivity" in content:
        found = content["low_selectivity"]
        orders = ", ".join(f"{i}: {_order(order)}" for i, order in enumerate(found["orders"], 1))
        _say(console, f"P4's low selectivity first, at {number(found['cost'])}:\n  {orders}")
    if content["expected"]["measured"]:
        console.print(_measured(content["expected"]["measured"]))


def _say(console: Console, line: str) -> None:
    console.print(line, highlight=False)


def _order(order: Sequence[int] | Sequence[Sequence[int]]) -> str:
    """Return a global order as 1 2 3, and every direction's own as 1 2 3; 2 1 3; ..."""
    parts = [own if isinstance(own, int) else " ".join(map(str, own)) for own in order]
    return (" " if isinstance(parts[0], int) else "; ").join(map(str, parts))


def _streams(streams: list[dict[str, Any]]) -> Table:
    """Return the streams' numbers; names where they say more than the place."""
    named = any(stream["name"] != str(place) for place, stream in enumerate(streams, 1))
    names = ("stream", *(["name"] if named else []))
    fields = ("rate", "window", "distinct", "size", "probed")
    rows = (
        (
            *(str(place), stream["name"])[: len(names)],
            *(f"{stream[field]:,.6g}" for field in fields),
        )
        for place, stream in enumerate(streams, 1)
    )
    return table_of((*names, *fields), rows, texts=range(len(names)))


def _orders(ranking: dict[str, Any], shown: int | None) -> Table:
    listed, best = ranking["orders"][:shown], ranking["best_cost"]
    differ = any(order["cost"] != order["comparisons"] for order in listed)
    rows = (
        (
            _order(order["order"]),
            number(order["cost"]),
            f"{order['cost'] / best:.3f}" if best else "",
            *([number(order["comparisons"])] if differ else []),
        )
        for order in listed
    )
    return table_of(("order", "cost", "to the best", *(["expected"] if differ else [])), rows)


def _choice(ranking: dict[str, Any]) -> str:
    moved = f", with {_order(ranking['moved'])} moved up" if ranking["moved"] else ""
    mean, worst = number(ranking["mean_cost"]), number(ranking["worst_cost"])
    chosen, cost = _order(ranking["chosen"]), number(ranking["chosen_cost"])
    lines = (
        f"of {number(ranking['possible'])} orders: mean {mean}, worst {worst}",
        f"P3's heuristic: {chosen} at {cost}, rank {number(ranking['rank'])}",
        f"  {number(ranking['considered'])} considered, from {_order(ranking['initial'])}{moved}",
    )
    return "\n".join(lines)


def _measured(runs: list[dict[str, Any]]) -> Table:
    rows = (
        (
            _order(run["order"]),
            number(run["expected"]),
            number(run["actual"]),
            "" if run["ratio"] is None else f"{run['ratio']:.3f}",
        )
        for run in runs
    )
    return table_of(("order", "expected", "actual", "actual / expected"), rows)


def explain_shown(content: dict[str, Any], shown: int | None = None) -> Shown:
    """Return what is shown of an explanation; `shown` as of `print_explanation`."""
    drawn = partial(_costs, content, shown)
    return Shown("explain", content, partial(print_explanation, content, shown), drawn)


def _costs(content: Mapping[str, Any], shown: int | None) -> list[Chart]:
    return [
        Bars(
            "Join orders" + (f", stream {own['direction']}" if "direction" in own else ""),
            f"comparisons per {content.get('unit') or 'unit time'}",
            [_order(one["order"]) for one in own["orders"][:shown]],
            [Series("comparisons", [one["cost"] for one in own["orders"][:shown]])],
        )
        for own in content.get("directions", [content])
    ]
