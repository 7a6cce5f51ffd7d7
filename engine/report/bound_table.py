"""Bounds as a person reads them on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from engine.report.envelope import Report
from engine.report.tables import facts_line, number, percent


def print_bound(report: Report, console: Console | None = None) -> None:
    """Print what is possible, how sure that is, and what the exact join comes to."""
    content = report.content
    console = console or Console()
    console.print(_bounds(content))
    if "fact" in content:
        console.print(facts_line(content["fact"]))
    memory = content["memory"]
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in content["seconds"].items())
    console.print(
        f"memory: left {number(memory['left'])}, right {number(memory['right'])}; "
        f"probe {content['objective']['probe']}"
    )
    device = content["device"]
    console.print(f"seconds: {seconds}; prices on {device['used']} ({device['reason']})")
    if content["out"]:
        console.print(f"plan: {content['out']}", markup=False)


def _bounds(content: dict[str, Any]) -> Table:
    objective = content["objective"]
    beyond = f" beyond {objective['threshold']:g}" if objective["threshold"] else ""
    table = Table(title=f"best possible: {objective['name']}{beyond}", title_justify="left")
    table.add_column("")
    for name in ("outputs", "importance"):
        table.add_column(name, justify="right")
    exact = content["exact"]
    table.add_row("exact join", number(exact["outputs"]), number(exact["importance"]))
    table.add_row("plan", number(content["outputs"]), number(content["importance"]))
    shown = "outputs" if objective["name"] == "outputs" else "importance"
    if content["gap"] == 0.0:
        said = f"optimal (by {content['method']})"
        table.add_row(said, *_under(shown, number(content["lower"])))
        return table
    table.add_row("at least", *_under(shown, number(content["lower"])))
    table.add_row("at most", *_under(shown, number(content["upper"])))
    gap = f"{percent(content['gap'])} by {content['method']}"
    table.add_row("gap", *_under(shown, gap))
    return table


def _under(column: str, value: str) -> tuple[str, str]:
    return (value, "") if column == "outputs" else ("", value)
