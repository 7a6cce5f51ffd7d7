"""The report of a multi-way join as a person reads it on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from engine.report.envelope import Report
from engine.report.tables import add_compared, number, percent


def print_multijoin(report: Report, console: Console | None = None) -> None:
    """Print what came out, what was lost and what it cost."""
    content = report.content
    console = console or Console()
    console.print(_results(content))
    console.print(_streams(content))
    if "comparisons" in content["method"]:
        console.print(_work(content["method"]))
    if "harvest" in content:
        _print_harvest(content["harvest"], console)
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in content["seconds"].items())
    console.print(
        f"seconds: {seconds}; {content['tuples_per_second']:,.0f} tuples/s on "
        f"{content['device']['used']} ({content['device']['reason']}); seed {content['seed']}"
    )
    if content["out"]:
        console.print(f"output: {content['out']}", markup=False)


def _results(content: dict[str, Any]) -> Table:
    title = f"{content['predicate']} ({content['join_graph']}), {content['method']['name']}"
    table = Table(title=title, title_justify="left")
    for name in ("", "outputs", "importance"):
        table.add_column(name, justify="left" if not name else "right")
    add_compared(table, content)
    return table


def _streams(content: dict[str, Any]) -> Table:
    table = Table()
    for name in ("", "rows", "null keys", "rejected", "sorted", "window"):
        table.add_column(name, justify="left" if not name else "right")
    for stream in content["rows"]:
        window = content["window"][stream]
        table.add_row(
            stream,
            number(content["rows"][stream]),
            number(content["null_keys"][stream]),
            number(content["rejected"][stream]),
            "yes" if content["sorted"][stream] else "by winnow",
            window if isinstance(window, str) else number(window),
        )
    return table


def _load(harvest: dict[str, Any]) -> Table:
    """Return what became of the tuples of each stream."""
    table = Table()
    for name in ("", "came", "joined", "dropped by a full buffer", "dropped at random"):
        table.add_column(name, justify="left" if not name else "right")
    for stream in harvest["pushes"]:
        counted = (harvest[name][stream] for name in ("pushes", "pops", "drops", "shed"))
        table.add_row(stream, *map(number, counted))
    return table


def _work(method: dict[str, Any]) -> str:
    orders = "; ".join(", ".join(order) for order in method["orders"])
    counted = ", ".join(
        f"{number(method[name])} {name}"
        for name in ("comparisons", "visits", "insertions", "expirations", "accesses")
    )
    delays = f"delay {method['mean_delay']:,.1f} on average, {number(method['max_delay'])} at most"
    return f"join order {orders}: {counted}; most tuples held {number(method['peak'])}; {delays}"


def _print_harvest(harvest: dict[str, Any], console: Console) -> None:
    console.print(_load(harvest))
    steps = harvest["steps"]
    least = min((step["throttle"] for step in steps), default=1.0)
    console.print(
        f"{number(harvest['comparisons'])} comparisons in {len(steps)} intervals; throttle "
        f"fraction {steps[-1]['throttle'] if steps else 1.0:.3f} at the end, {least:.3f} at least; "
        f"most tuples in the windows {number(harvest['peak_memory'])}"
    )
    if harvest["keep"] is not None:
        kept = ", ".join(f"{name} {percent(part)}" for name, part in harvest["keep"].items())
        console.print(f"kept at random: {kept}")
