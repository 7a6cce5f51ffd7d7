"""The report as a person reads it on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from engine.report.envelope import Report

_BARS = " ▁▂▃▄▅▆▇█"


def number(value: float | None) -> str:
    """Return a number with thousands apart; None is an exact side's memory."""
    if value is None:
        return "exact"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}"


def percent(value: float) -> str:
    """Return a share in percent."""
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
    if policy_knows_less(content):
        console.print(
            "the frequencies promise that to a policy that knows them; prob counts only what it "
            "kept: give --estimator history"
        )
    if "fact" in content:
        console.print(facts_line(content["fact"]))
    if "lost" not in content:
        console.print("the exact join was not counted: what was lost of it is not known")
    elif content["lost"]["outputs"]:
        _where(content, console)
    seconds = ", ".join(f"{name} {value:.2f}" for name, value in content["seconds"].items())
    console.print(
        f"seconds: {seconds}; {content['tuples_per_second']:,.0f} tuples/s on "
        f"{content['device']['used']} ({content['device']['reason']}); seed {content['seed']}"
    )
    if content["out"]:
        console.print(f"output: {content['out']}", markup=False)


def policy_knows_less(content: dict[str, Any]) -> bool:
    """Whether recall is predicted from frequencies of which the policy sees but what it keeps."""
    by_frequency: bool = content.get("predicted", {}).get("model") == "frequency"
    return by_frequency and content["policy"]["estimator"] == "memory"


def _results(content: dict[str, Any]) -> Table:
    policy = content["policy"]
    told = "" if policy["profile"] is None else escape(f", told by {policy['profile']}")
    table = Table(title=f"policy {policy['name']}{told}", title_justify="left")
    for name in ("", "outputs", "importance"):
        table.add_column(name, justify="left" if not name else "right")
    add_compared(table, content)
    if "predicted" in content:
        expected = content["predicted"]
        table.add_row(f"predicted by {expected['model']}", percent(expected["recall"]), "")
    if "bound" in content:
        _add_best(table, content["bound"])
    return table


def add_compared(table: Table, content: dict[str, Any]) -> None:
    """Add what came out and, where the exact join was counted, that, what was lost and recall."""
    for name in ("exact", "result", "lost"):
        if name in content:
            part = content[name]
            table.add_row(name, number(part["outputs"]), number(part["importance"]))
    if "recall" in content:
        table.add_row("recall", percent(content["recall"]), percent(content["importance_recall"]))


def _add_best(table: Table, bound: dict[str, Any]) -> None:
    """Add the best possible importance, and the result's share of it."""
    shares = [percent(bound["share_of_best"][name]) for name in ("least", "most")]
    if bound["gap"] == 0.0:
        table.add_row("best possible", "", number(bound["lower"]))
        table.add_row("share of it", "", shares[0])
        return
    table.add_row("best possible, at least", "", number(bound["lower"]))
    table.add_row("best possible, at most", "", number(bound["upper"]))
    table.add_row("share of it", "", f"{shares[0]} to {shares[1]}")


def _sides(content: dict[str, Any]) -> Table:
    table = Table()
    for name in ("", "rows", "null keys", "rejected", "sorted", "window", "memory", "peak"):
        table.add_column(name, justify="left" if not name else "right")
    for side in content["rows"]:
        table.add_row(
            side,
            number(content["rows"][side]),
            number(content["null_keys"][side]),
            number(content["rejected"][side]),
            "yes" if content["sorted"][side] else "by winnow",
            number(content["window"][side]),
            number(content["memory"][side]),
            number(content["peak_memory"][side]),
        )
    return table


def facts_line(fact: dict[str, int]) -> str:
    """Return what was read of the fact relation."""
    others = [
        f"{number(fact[name])} {name.replace('_', ' ')}"
        for name in ("duplicates", "deletes", "null_keys", "between_ticks", "rejected")
        if fact[name]
    ]
    said = f"facts: {number(fact['facts'])} of {number(fact['rows'])} rows"
    return said + (f" ({', '.join(others)})" if others else "")


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
            number(key["lost_outputs"]),
            number(key["exact_outputs"]),
            number(key["lost_importance"]),
            number(key["exact_importance"]),
        )
    console.print(table)
