"""Reports of multi-way joins on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from engine.report.envelope import Report, spans
from engine.report.join_tables import add_best, compared, sides_table
from engine.report.losses import two_digits
from engine.report.tables import archive_rows, number, percent, print_end, speed_of, table_of

SHOWN_LANES = 10
"""Lanes that are told of on a terminal: those with the most outputs of the exact join."""


def print_multijoin(report: Report, console: Console) -> None:
    """Print what came out, what was lost and what it cost."""
    content = report.content
    method, windows = content["method"], spans(content)
    how = f"policy {content['policy']['name']}" if "policy" in content else method["name"]
    results = compared(content, f"{content['predicate']} ({content['join_graph']}), {how}")
    if "bound" in content:
        add_best(results, content["bound"])
    console.print(results)
    if "memory" in content:
        console.print(sides_table(content))
    else:
        rows = ([*cells, windows[cells[0]]] for cells in archive_rows(content))
        console.print(table_of(("", "rows", "null keys", "rejected", "sorted", "window"), rows))
    if "comparisons" in method:
        console.print(_work(method))
    if "harvest" in content:
        _print_harvest(content["harvest"], console)
    if content["lanes"]["by_lane"]:
        _print_lanes(content["lanes"], console)
    print_end(console, content, speed_of(content))
    if (exact := content["expected"]) is not None:
        console.print(
            f"expected before it began: {exact['seconds']:,.2f} s for the exact join, and "
            f"{two_digits(exact['outputs'])} outputs"
        )
    expected = content.get("harvest", {}).get("expected_seconds")
    if expected is not None:
        console.print(
            f"expected before it began: {expected['harvested']:,.2f} s, and "
            f"{expected['exact']:,.2f} s for the exact join"
        )


def _print_lanes(lanes: dict[str, Any], console: Console) -> None:
    """Print what became of the lanes with the most outputs."""
    most = sorted(lanes["by_lane"], key=lambda lane: -(lane["exact_outputs"] or lane["outputs"]))
    budgets = [own for own in ("capacity", "memory") if most[0].get(own) is not None]
    rows = []
    for lane in most[:SHOWN_LANES]:
        exact = lane["exact_outputs"]
        cells = [number(lane["outputs"]), "" if exact is None else number(exact)]
        cells += [_budget(lane[own]) for own in budgets]
        rows.append((", ".join(map(str, lane["lane"])), *cells))
    what = ", ".join(lanes["partition_by"]) or "hash lane"
    console.print(table_of((what, "outputs", "exact", *budgets), rows))
    everyone = lanes["per_group"] * lanes["groups"]
    if everyone > len(rows):
        console.print(f"{len(rows)} of {number(everyone)} lanes, those with the most outputs")


def _budget(given: float | dict[str, int | None]) -> str:
    """Return a lane's comparisons a second, or the tuples of its streams that have a limit."""
    if isinstance(given, dict):
        return number(sum(own for own in given.values() if own is not None))
    return f"{given:,.0f}"


def _work(method: dict[str, Any]) -> str:
    orders = "; ".join(", ".join(order) for order in method.get("orders", ()))
    counted = ", ".join(
        f"{number(method[name])} {name}"
        for name in ("comparisons", "visits", "insertions", "expirations", "accesses")
    )
    delays = f"delay {method['mean_delay']:,.1f} on average, {number(method['max_delay'])} at most"
    begin = f"join order {orders}: " if orders else ""
    return f"{begin}{counted}; most tuples held {number(method['peak'])}; {delays}"


def _print_harvest(harvest: dict[str, Any], console: Console) -> None:
    """Print what became of the tuples of each stream, and how the load was shed."""
    rows = (
        (stream, *(number(harvest[name][stream]) for name in ("pushes", "pops", "drops", "shed")))
        for stream in harvest["pushes"]
    )
    headings = ("", "arrived", "joined", "dropped by a full buffer", "dropped at random")
    console.print(table_of(headings, rows))
    said = [f"{number(harvest['comparisons'])} comparisons"]
    if throttles := [step["throttle"] for step in harvest["steps"]]:
        said[0] += f" in {len(throttles)} intervals"
        said.append(
            f"throttle fraction {throttles[-1]:.3f} at the end, {min(throttles):.3f} at least"
        )
    said.append(f"most tuples in the windows {number(harvest['peak_memory'])}")
    console.print("; ".join(said))
    if harvest["keep"] is not None:
        kept = ", ".join(f"{name} {percent(part)}" for name, part in harvest["keep"].items())
        console.print(f"kept at random: {kept}")
