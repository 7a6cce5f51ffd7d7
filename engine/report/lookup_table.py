"""The report of a look-up as a person reads it on a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from engine.report.envelope import Report
from engine.report.tables import number


def print_lookup(report: Report, console: Console | None = None) -> None:
    """Print what was read and what came out."""
    content = report.content
    console = console or Console()
    read = Table()
    for name in ("", "rows", "null keys", "rejected"):
        read.add_column(name, justify="right" if name else "left")
    for side in ("stream", "fact"):
        cells = (number(content[name][side]) for name in ("rows", "null_keys", "rejected"))
        read.add_row(side, *cells)
    console.print(read)
    found = Table()
    for name in ("facts", "duplicates", "rows matched", "outputs", "importance"):
        found.add_column(name, justify="right")
    fields = ("facts", "duplicates", "matched", "outputs", "importance")
    found.add_row(*(number(content[name]) for name in fields))
    console.print(found)
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in content["seconds"].items())
    console.print(
        f"seconds: {seconds}; {content['rows_per_second']:,.0f} rows/s by {content['access']}"
    )
    if content["out"]:
        console.print(f"output: {content['out']}", markup=False)
