"""The explanation of a join order as a person reads it on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.options.meanings import cited
from engine.report.charts import Bars, Chart, Series
from engine.report.shown import Shown
from engine.report.tables import Footnote, number, table_of


def print_explanation(content: dict[str, Any], shown: int | None, console: Console) -> None:
    """Print the streams, the cheapest orders and the choice.

    Parameters
    ----------
    content : dict
        What `explain.explain` returns, and perhaps the ``unit`` of its times.
    shown : int or None
        Orders to print, of those that it lists; None: all.
    """
    names = names_of(content)
    console.print(_streams(content["streams"]))
    tau = "" if content["tau"] is None else f", every {content['tau']:g}"
    unit = content.get("unit") or "unit time"
    said = [f"{content['method']}{tau}: comparisons per {unit}"]
    _say(console, said[-1])
    for ranking in content.get("directions", [content]):
        if "direction" in ranking:
            _say(console, f"new tuples of stream {names[ranking['direction'] - 1]}")
        console.print(_orders(ranking, names, shown))
        said += _choice(ranking, names)
        _say(console, *said[-3:])
    if "directions" in content:
        total, best = _cost(content["chosen_cost"]), _cost(content["best_cost"])
        _say(console, f"all streams: chosen {total}, best {best}")
    if "low_selectivity" in content:
        found = content["low_selectivity"]
        said.append(f"P4's low selectivity first, at {_cost(found['cost'])}:")
        each = (
            f"  {name}: {order_text(order, names)}"
            for name, order in zip(names, found["orders"], strict=True)
        )
        _say(console, said[-1], *each)
    if content["expected"]["measured"]:
        runs = content["expected"]["measured"]
        console.print(_measured(runs, names))
        if any((run["ratio"] or 0) > 2 for run in runs):
            _say(
                console, "the model takes rates for constant and all values for equally frequent: "
                f"measure other orders by winnow multijoin --method {content['method']} --order",
            )  # fmt: skip
    _say(console, *map(Footnote, cited(" ".join(said))))


def names_of(content: Mapping[str, Any]) -> list[str]:
    """Return what the streams are called: their names, or their numbers where they have none."""
    return [own["name"] for own in content["streams"]]


def order_text(order: Sequence[int] | Sequence[Sequence[int]], names: Sequence[str]) -> str:
    """Return a global order as 1 2 3, and every direction's own as 1 2 3; 2 1 3; ...

    Examples
    --------
    >>> order_text([2, 1], ["trades", "quotes"]), order_text([[1, 2], [2, 1]], ["1", "2"])
    ('quotes trades', '1 2; 2 1')
    """
    parts = [
        names[own - 1] if isinstance(own, int) else " ".join(names[one - 1] for one in own)
        for own in order
    ]
    return (" " if order and isinstance(order[0], int) else "; ").join(parts)


def _say(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, highlight=False)


def _cost(value: float) -> str:
    """Return a cost such that those of slow streams differ as well: below 1 with three digits."""
    return f"{value:.3g}" if 0 < value < 1 else number(value)


def _streams(streams: list[dict[str, Any]]) -> Table:
    """Return what the order depends on, of each stream."""
    fields = ("rate", "window", "distinct", "size", "probed")
    rows = ((own["name"], *(f"{own[field]:,.6g}" for field in fields)) for own in streams)
    return table_of(("stream", *fields), rows)


def _orders(ranking: dict[str, Any], names: Sequence[str], shown: int | None) -> Table:
    listed, best = ranking["orders"][:shown], ranking["best_cost"]
    differ = any(order["cost"] != order["comparisons"] for order in listed)
    rows = (
        (
            order_text(order["order"], names),
            _cost(order["cost"]),
            f"{order['cost'] / best:.3f}" if best else "",
            *([_cost(order["comparisons"])] if differ else []),
        )
        for order in listed
    )
    return table_of(("order", "cost", "to the best", *(["expected"] if differ else [])), rows)


def _choice(ranking: dict[str, Any], names: Sequence[str]) -> list[str]:
    moved = f", with {order_text(ranking['moved'], names)} moved up" if ranking["moved"] else ""
    mean, worst = _cost(ranking["mean_cost"]), _cost(ranking["worst_cost"])
    chosen, cost = order_text(ranking["chosen"], names), _cost(ranking["chosen_cost"])
    initial = order_text(ranking["initial"], names)
    return [
        f"of {number(ranking['possible'])} orders: mean {mean}, worst {worst}",
        f"P3's heuristic: {chosen} at {cost}, rank {number(ranking['rank'])}",
        f"  {number(ranking['considered'])} considered, from {initial}{moved}",
    ]


def _measured(runs: list[dict[str, Any]], names: Sequence[str]) -> Table:
    rows = (
        (
            order_text(run["order"], names),
            _cost(run["expected"]),
            _cost(run["actual"]),
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
    names = names_of(content)
    return [
        Bars(
            "Join orders"
            + (f", stream {names[own['direction'] - 1]}" if "direction" in own else ""),
            f"comparisons per {content.get('unit') or 'unit time'}",
            [order_text(one["order"], names) for one in own["orders"][:shown]],
            [Series("comparisons", [one["cost"] for one in own["orders"][:shown]])],
        )
        for own in content.get("directions", [content])
    ]
