"""What a sweep advises, as a person reads it on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from engine.jobs.sweep.advice import Advice, Choice, Kind
from engine.report.tables import Folding, percent, print_command, table_of

_NONE = "none in the grid"


def varying(choices: Sequence[Choice]) -> list[str]:
    """Return what settings differ by, besides the policy."""
    names = [name for name in Kind._fields if name != "policy"]
    found: Mapping[str, set[Any]] = {
        name: {getattr(one, name) for one in choices} for name in names
    }
    return [name for name in names if len(found[name] - {None}) > 1]


def label_of(kind: Kind | Choice, name: str) -> str:
    """Return what tells a setting from others; empty if it has none of that."""
    value = getattr(kind, name)
    return "" if value is None else str(value)


def print_advice(console: Console, advice: Advice, names: Sequence[str], beside: str) -> None:
    """Print a target's advice as a table, the command that replays it, and its check.

    Parameters
    ----------
    names : sequence of str
        What settings differ by, besides the policy.
    beside : str
        What ends the title.
    """
    table = _advised(advice, names, beside)
    if table.least_width > console.width:
        table = _advised(advice, names, beside, stacked=True)
    console.print(table)
    _print_end(console, advice)


def _advised(
    advice: Advice, names: Sequence[str], beside: str, *, stacked: bool = False
) -> Folding:
    """Return the table of an advice; `stacked`: one column has all that makes up a setting."""
    target = advice.target
    measure = target.measure.replace("_", " ")
    shares = [one for one in (advice.best, advice.nearest) if one is not None]
    bounded = any(one.share_of_best_any is not None for one in shares)
    settings = _stacked("policy", *names) if stacked else ["policy", *names]
    table = table_of(
        ("", *settings, "memory", "tuples", "reached", *(["of best possible"] if bounded else [])),
        title=f"least memory for {measure} of {100 * target.value:g} %{beside}",
        texts=range(1 + len(settings)),
    )

    def said(words: str, choice: Choice | None, style: str | None = None) -> None:
        if choice is None:
            table.add_row(words, _NONE)
            return
        own = [choice.policy, *(label_of(choice, name) for name in names)]
        best = choice.share_of_best_any
        table.add_row(
            words,
            *(_stacked(*own) if stacked else own),
            choice.memory,
            f"{choice.tuples:,}",
            percent(choice.reached(target.measure)),
            *([] if best is None else [percent(best)]),
            style=style,
        )

    if advice.best is None:
        said("none meets it; nearest", advice.nearest)
    else:
        said("cheapest", advice.best, "bold")
        said("next smaller fails", advice.below)
    others = [
        (policy, choice)
        for policy, choice in advice.policies.items()
        if advice.best is None or policy != advice.best.policy
    ]
    table.add_section()
    for other in sorted((c for _, c in others if c is not None), key=lambda c: c.tuples):
        said("meets it", other)
    return table


def _stacked(*parts: str) -> list[str]:
    return ["\n".join(parts)]


def _print_end(console: Console, advice: Advice) -> None:
    """Print what is a mean, what never meets the target, and how to replay what does, checked."""
    shown = [advice.best, advice.nearest, *advice.policies.values()]
    means = {one.policy: one.seeds for one in shown if one is not None and one.seeds > 1}
    if means:
        seeds = max(means.values())
        console.print(f"reached by {', '.join(means)}: the mean of {seeds} seeds")
    never = [policy for policy, choice in advice.policies.items() if choice is None]
    if never:
        console.print(f"never meets it: {', '.join(never)}")
    if advice.command is None or advice.check is None:
        return
    measure = advice.target.measure
    print_command(console, advice.command)
    if advice.check.problem is None:
        reached = percent(getattr(advice.check, measure))
        of_seeds = advice.best is not None and advice.best.seeds > 1
        seed = ", of the first seed that meets the target," if of_seeds else ""
        console.print(f"checked: this replay{seed} reaches {reached}")
    else:
        console.print(f"ERROR: {advice.check.problem}", style="bold red")
