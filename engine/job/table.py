"""The report as a person reads it on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from engine.job.report import Report

_BARS = " ▁▂▃▄▅▆▇█"


def _number(value: float | None) -> str:
    if value is None:
        return "exact"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}"


def _percent(value: float) -> str:
    return f"{100 * value:.2f} %"


def _profile(shares: list[float]) -> str:
    """Draw shares of 0 to 1 as a row of bars."""
    return "".join(_BARS[round(8 * min(1.0, max(0.0, share)))] for share in shares)


def print_report(report: Report, console: Console | None = None) -> None:
    """Print what came out, what was lost and where."""
    content = report.content
    console = console or Console()
    console.print(_results(content))
    console.print(_sides(content))
    if content["lost"]["outputs"]:
        _where(content, console)
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in content["seconds"].items())
    console.print(
        f"seconds: {seconds}; {content['tuples_per_second']:,.0f} tuples/s on "
        f"{content['device']['used']} ({content['device']['reason']}); seed {content['seed']}"
    )
    if content["out"]:
        console.print(f"output: {content['out']}", markup=False)


def _results(content: dict[str, Any]) -> Table:
    policy = content["policy"]
    table = Table(title=f"policy {policy['name']}", title_justify="left")
    for name in ("", "outputs", "importance"):
        table.add_column(name, justify="left" if not name else "right")
    for name in ("exact", "result", "lost"):
        part = content[name]
        table.add_row(name, _number(part["outputs"]), _number(part["importance"]))
    table.add_row("recall", _percent(content["recall"]), _percent(content["importance_recall"]))
    return table


def _sides(content: dict[str, Any]) -> Table:
    table = Table()
    for name in ("", "rows", "null keys", "rejected", "sorted", "window", "memory", "peak"):
        table.add_column(name, justify="left" if not name else "right")
    for side in ("left", "right"):
        table.add_row(
            side,
            _number(content["rows"][side]),
            _number(content["null_keys"][side]),
            _number(content["rejected"][side]),
            "yes" if content["sorted"][side] else "by winnow",
            _number(content["window"][side]),
            _number(content["memory"][side]),
            _number(content["peak_memory"][side]),
        )
    return table


def _where(content: dict[str, Any], console: Console) -> None:
    bins = content["lost"]["by_time"]
    shares = [
        b["lost_importance"] / b["exact_importance"] if b["exact_importance"] else 0.0 for b in bins
    ]
    console.print(
        f"importance lost over time, {bins[0]['from']} to {bins[-1]['to']} (full block: all of it)"
    )
    console.print(_profile(shares), markup=False)
    table = Table(title="keys that lost most", title_justify="left")
    for name in ("key", "outputs lost", "of", "importance lost", "of "):
        table.add_column(name, justify="left" if name == "key" else "right")
    for key in content["lost"]["top_keys"]:
        table.add_row(
            str(key["key"]),
            _number(key["lost_outputs"]),
            _number(key["exact_outputs"]),
            _number(key["lost_importance"]),
            _number(key["exact_importance"]),
        )
    console.print(table)
