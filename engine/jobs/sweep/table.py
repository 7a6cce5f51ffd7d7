"""A sweep as a person reads it on a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table

from engine.jobs.sweep.advice import Advice, Choice, choices_of
from engine.jobs.sweep.rows import Row, rows_in
from engine.jobs.sweep.run import SweepResult


def print_sweep(result: SweepResult, console: Console | None = None) -> None:
    """Print every window's importance recalls, the advice, and what the sweep took."""
    console = console or Console()
    report = result.report
    rows = rows_in(result.table)
    for windows in dict.fromkeys((row.window_left, row.window_right) for row in rows):
        mine = [row for row in rows if (row.window_left, row.window_right) == windows]
        for measure, title in _MEASURES.items():
            for table in _shares(mine, windows, report["grid"]["tick"], console.width, measure):
                table.title = f"{title} in %{table.title}"
                console.print(table)
    for advice in result.advice:
        console.print(_advised(advice, many=len(report["grid"]["windows"]) > 1))
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in report["seconds"].items())
    own = sum(row.seconds for row in rows)
    console.print(
        f"seconds: {seconds}; {own:.2f} in {len(rows):,} replays on {report['device']['used']} "
        f"({report['device']['reason']})"
    )
    if report["out"]:
        console.print(f"output: {report['out']}", markup=False)


_MEASURES = {
    "importance_recall": "importance recall",
    "share_of_best": "share, at least, of the best possible importance",
}


def _shares(
    rows: list[Row], windows: tuple[int, int], tick: str, width: int, measure: str
) -> Iterator[Table]:
    """Yield a window's shares, as many policies beside each other as the terminal has room for."""
    unit = "" if tick == "tick" else f" {tick}"
    choices = [one for one in choices_of(rows) if getattr(one, measure) is not None]
    found = {(choice.memory, choice.policy): choice for choice in choices}
    memories = {choice.memory: f"{choice.tuples:,}" for choice in choices}
    if not memories:
        return
    named = max(len(text) for text in (*memories, "memory"))
    sized = max(len(text) for text in (*memories.values(), "tuples"))
    room = width - 1 - (named + _AROUND) - (sized + _AROUND)
    title = f", window {windows[0]:,}{unit}"
    for policies in _fitting(list(dict.fromkeys(choice.policy for choice in choices)), room):
        table = Table(title=title, title_justify="left")
        table.add_column("memory", justify="right")
        table.add_column("tuples", justify="right")
        for policy in policies:
            table.add_column(policy, justify="right", overflow="fold")
        for memory, tuples in memories.items():
            mine = [found[memory, policy] for policy in policies]
            shares = [f"{100 * choice.reached(measure):.1f}" for choice in mine]
            table.add_row(memory, tuples, *shares)
        yield table


_AROUND = 3
"""Characters of a column beside its text."""


def _fitting(names: list[str], room: int) -> list[list[str]]:
    """Cut column names into runs that fit in `room` characters, one at least in each.

    Examples
    --------
    >>> _fitting(["rand", "prob", "until_expiry", "dgl"], 24)
    [['rand', 'prob'], ['until_expiry', 'dgl']]
    """
    runs: list[list[str]] = [[]]
    taken = 0
    for name in names:
        own = max(len(name), len("100.0")) + _AROUND
        if runs[-1] and taken + own > room:
            runs.append([])
            taken = 0
        runs[-1].append(name)
        taken += own
    return runs


def _advised(advice: Advice, *, many: bool) -> Table:
    target = advice.target
    measure = target.measure.replace("_", " ")
    where = f", window {advice.window_left:,}" if many else ""
    table = Table(
        title=f"least memory for {measure} of {100 * target.value:g} %{where}",
        title_justify="left",
    )
    for name, justify in (
        ("", "left"),
        ("policy", "left"),
        ("memory", "right"),
        ("tuples", "right"),
        ("reached", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    if advice.best is None:
        table.add_row("none meets it; nearest", *_said(advice.nearest, target.measure))
    else:
        table.add_row("cheapest", *_said(advice.best, target.measure), style="bold")
        table.add_row("next smaller fails", *_said(advice.below, target.measure))
    others = [
        (policy, choice)
        for policy, choice in advice.policies.items()
        if advice.best is None or policy != advice.best.policy
    ]
    met = sorted((c for _, c in others if c is not None), key=lambda c: c.tuples)
    table.add_section()
    for other in met:
        table.add_row("meets it", *_said(other, target.measure))
    for policy, choice in others:
        if choice is None:
            table.add_row("never meets it", policy, "", "", "")
    return table


def _said(choice: Choice | None, measure: str) -> tuple[Any, ...]:
    if choice is None:
        return "none in the grid", "", "", ""
    return (
        choice.policy,
        choice.memory,
        f"{choice.tuples:,}",
        f"{100 * choice.reached(measure):.2f} %",
    )
