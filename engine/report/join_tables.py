"""Reports of joins on a terminal: replays, bounds and look-ups."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from engine.models.profile.advice import AGREED
from engine.report.advice import advice_of
from engine.report.answers import of_any_split
from engine.report.charts import key_text
from engine.report.envelope import Report, instant, spans
from engine.report.tables import (
    Sketch,
    archive_rows,
    facts_line,
    number,
    percent,
    print_end,
    speed_of,
    table_of,
)

MOST_POINTS = 2.0
"""Points of recall that hash lanes may cost without a warning."""
_BARS = " ▁▂▃▄▅▆▇█"


def print_report(report: Report, console: Console) -> None:
    """Print a replay: what came out, what was lost and where."""
    content = report.content
    policy = content["policy"]
    profile = "" if policy["profile"] is None else f", profile {policy['profile']}"
    results = compared(content, f"policy {policy['name']}{profile}")
    if met_prediction(content):
        expected = content["predicted"]
        off = f"(off by {100 * abs(expected['recall'] - content['recall']):.2f})"
        results.add_row(f"predicted by {expected['model']}", percent(expected["recall"]), off)
    if "bound" in content:
        add_best(results, content["bound"])
    console.print(results)
    if "advice" in content:
        console.print(advice_of(content["advice"]))
    console.print(sides_table(content))
    if content.get("lanes", {}).get("cost") is not None:
        console.print(cost_of_lanes(content["lanes"]))
    if policy["name"] == "plan":
        console.print(
            f"most tuples of both sides at once: {number(content['peak_memory']['both'])}"
        )
    if "recall" in content and "predicted" in content and not met_prediction(content):
        console.print(_unmet(content))
    if "fact" in content:
        console.print(facts_line(content["fact"]))
    if "lost" not in content:
        console.print("the exact join was not counted: what was lost of it is not known")
    elif content["lost"]["outputs"]:
        _print_lost(content, console)
    print_end(console, content, speed_of(content))


def cost_of_lanes(lanes: dict[str, Any]) -> str:
    """Say what hash lanes cost."""
    cost, many = lanes["cost"], lanes["per_group"]
    found = f"{many} hash lanes in place of one cost {cost['points']:.1f} points of recall"
    if not cost["stretches"]:
        return found
    between = f"95 % interval {cost['low']:.1f} to {cost['high']:.1f}"
    return f"{found}, estimated on {cost['stretches']} stretches ({between})"


def warning_of(content: dict[str, Any]) -> str | None:
    """Return what to say if hash lanes cost more than `MOST_POINTS`, and the remedy."""
    lanes = content.get("lanes", {})
    cost = lanes.get("cost")
    if cost is None or cost["points"] <= MOST_POINTS:
        return None
    return f"{cost_of_lanes(lanes)}: give fewer --lanes, 1 for none, or more --memory"


def met_prediction(content: dict[str, Any]) -> bool:
    """Return whether a model predicts a recall, and the replay bears it out."""
    if "recall" not in content or "predicted" not in content:
        return False
    return bool(abs(content["predicted"]["recall"] - content["recall"]) <= AGREED)


def _unmet(content: dict[str, Any]) -> str:
    """Say why a prediction is left out."""
    if policy_knows_less(content):
        return (
            "the frequency model is of a policy that knows all frequencies, and prob counts only "
            "what it kept: give --estimator history; its prediction is left out"
        )
    return (
        f"the {content['predicted']['model']} model does not fit these streams, as this replay "
        "shows: its prediction is left out"
    )


def policy_knows_less(content: dict[str, Any]) -> bool:
    """Whether recall is predicted from frequencies of which the policy sees but what it keeps."""
    by_frequency: bool = content.get("predicted", {}).get("model") == "frequency"
    return by_frequency and content["policy"]["estimator"] == "memory"


def compared(content: dict[str, Any], title: str) -> Table:
    """Return the result and, where it was counted, the exact join, what was lost and recall."""
    rows: list[tuple[str, str, str]] = [
        (name, number(content[name]["outputs"]), number(content[name]["importance"]))
        for name in ("exact", "result", "lost")
        if name in content
    ]
    if "recall" in content:
        rows.append(("recall", percent(content["recall"]), percent(content["importance_recall"])))
    return table_of(("", "outputs", "importance"), rows, title)


def add_best(table: Table, bound: dict[str, Any]) -> None:
    """Add the best possible importance, as the memory is split and however, and its shares."""
    _add_bounds(table, bound, "best possible")
    whole = of_any_split(bound)
    if whole is not None:
        _add_bounds(table, whole, "best of any split")


def _add_bounds(table: Table, bound: dict[str, Any], name: str) -> None:
    """Add a best possible importance, and the result's share of it."""
    shares = [percent(bound["share_of_best"][name]) for name in ("least", "most")]
    if bound["gap"] == 0.0:
        table.add_row(name, "", number(bound["lower"]))
        table.add_row("share of it", "", shares[0])
        return
    table.add_row(f"{name}, at least", "", number(bound["lower"]))
    table.add_row(f"{name}, at most", "", number(bound["upper"]))
    table.add_row("share of it", "", f"{shares[0]} to {shares[1]}")


def sides_table(content: dict[str, Any]) -> Table:
    """Return what each stream held, with its window."""
    windows = spans(content)
    rows = [
        [
            *cells,
            windows[cells[0]],
            *(number(content[name][cells[0]]) for name in ("memory", "peak_memory")),
        ]
        for cells in archive_rows(content)
    ]
    if content["memory"].get("split") == "pooled":
        for row in rows:
            row[-2] = "pooled"
        every = "total" if "total" in content["memory"] else "both"
        cells = (number(content[name][every]) for name in ("memory", "peak_memory"))
        rows.append([every, *[""] * 5, *cells])
    return table_of(
        ("", "rows", "null keys", "rejected", "sorted", "window", "memory", "peak"), rows
    )


def _print_lost(content: dict[str, Any], console: Console) -> None:
    lost = content["lost"]
    bins = lost["by_time"]
    shares = [
        b["lost_importance"] / b["exact_importance"] if b["exact_importance"] else 0.0 for b in bins
    ]
    first, last = instant(content, bins[0]["from"]), instant(content, bins[-1]["to"])
    console.print(
        Sketch(f"importance lost over time, {first} to {last} (full block: all of it)"),
        highlight=False,
    )
    bars = "".join(_BARS[round(8 * min(1.0, max(0.0, share)))] for share in shares)
    console.print(Sketch(bars))
    fields = ("lost_outputs", "exact_outputs", "lost_importance", "exact_importance")
    table = table_of(
        ("key", "outputs lost", "exact outputs", "importance lost", "exact importance"),
        (
            (key_text(key["key"]), *(number(key[name]) for name in fields))
            for key in lost["top_keys"]
        ),
        "keys that lost most",
    )
    console.print(table)


def print_bound(report: Report, console: Console) -> None:
    """Print what is possible, how sure that is, and what the exact join comes to."""
    content = report.content
    console.print(_bounds(content))
    if "fact" in content:
        console.print(facts_line(content["fact"]))
    memory, device = content["memory"], content["device"]
    console.print(f"memory: {_memory(memory)}; probe {content['objective']['probe']}")
    print_end(console, content, f"prices on {device['used']} ({device['reason']})", "plan")


def _memory(memory: dict[str, Any]) -> str:
    """Return the memory of a bound in words."""
    if memory["split"] == "any":
        return f"{number(memory['both'])} for both sides, split in any way at any instant"
    left, right = number(memory["left"]), number(memory["right"])
    return f"left {left}, right {right} (split {memory['split']})"


def _bounds(content: dict[str, Any]) -> Table:
    objective = content["objective"]
    beyond = f" beyond {objective['threshold']:g}" if objective["threshold"] else ""
    rows = [
        (name, number(own["outputs"]), number(own["importance"]))
        for name, own in (("exact join", content["exact"]), ("plan", content))
    ]
    if content["gap"] == 0.0:
        bounds = [(f"optimal (by {content['method']})", number(content["lower"]))]
    else:
        bounds = [
            ("at least", number(content["lower"])),
            ("at most", number(content["upper"])),
            ("gap", f"{percent(content['gap'])} by {content['method']}"),
        ]
    of_outputs = objective["name"] == "outputs"
    rows += [(name, value, "") if of_outputs else (name, "", value) for name, value in bounds]
    return table_of(
        ("", "outputs", "importance"), rows, f"best possible: {objective['name']}{beyond}"
    )


def print_lookup(report: Report, console: Console) -> None:
    """Print what was read of a stream and its facts, and what came out."""
    content = report.content
    rows = (
        (side, *(number(content[name][side]) for name in ("rows", "null_keys", "rejected")))
        for side in ("stream", "fact")
    )
    console.print(table_of(("", "rows", "null keys", "rejected"), rows))
    fields = ("facts", "duplicates", "matched", "outputs", "importance")
    cells = [number(content[name]) for name in fields]
    headings = [name.replace("matched", "rows matched") for name in fields]
    console.print(table_of(headings, [cells], texts=()))
    print_end(console, content, f"{content['rows_per_second']:,.0f} rows/s by {content['access']}")
