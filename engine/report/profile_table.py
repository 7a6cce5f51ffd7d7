"""A profile as a person reads it on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from engine.models.profile.advice import MODELS
from engine.models.profile.model import ArrivalProfile
from engine.report.advice import NAMES, doubt, predicted, short, tried_on
from engine.report.tables import CommandLine, length, table_of
from engine.runtime.streams import SIDES


def print_profile(profile: ArrivalProfile, console: Console) -> None:
    """Print both streams beside each other, the models, and the advice."""
    rows = ((name, *values) for name, values in _rows(profile))
    console.print(table_of(("", *SIDES), rows, _title(profile)))
    advice = profile.advice
    if profile.fit["model"] is not None:
        console.print(_fit(profile.fit["bits_a_match"]["both"]))
    if advice["caution"]:
        console.print(advice["caution"])
    if advice["memory"]:
        _print_models(advice["memory"], console)
    if advice["trials"]:
        _print_advice(advice["trials"], console)
    for kind in ("monitor", "retain"):
        if profile.online[kind] is not None:
            console.print(_online(kind, profile.online[kind]))


def _fit(bits: dict[str, Any]) -> str:
    """Return how the models that the first half trained do in the second."""
    said = ", ".join(
        f"the {model} model {'better' if bits[model] > 0 else 'no better'}" for model in MODELS
    )
    return f"the second half, by models of the first: than a constant rate {said}"


def _print_advice(trials: list[dict[str, Any]], console: Console) -> None:
    """Print which policy short replays advise with each memory, and how to replay with it."""
    measure = trials[0]["measure"]
    rows = [
        (
            one["memory"],
            f"{sum(one['tuples'].values()):,}",
            short(one),
            predicted(one[measure]),
            "-" if one["next"] is None else short(one["next"]),
            "-" if one["next"] is None else predicted(one["next"][measure]),
        )
        for one in trials
    ]
    title = f"advice by short replays: {NAMES[measure]}"
    headings = ("memory", "tuples", "best", "reaches", "next", "its")
    console.print(table_of(headings, rows, title, texts=(2, 4)))
    most = max(trials, key=lambda one: one["candidates"])  # one memory may stand for all
    console.print(f"tried: {tried_on(most)}")
    for one in trials:
        doubtful = doubt(one)
        if doubtful is not None:
            console.print(f"with memory {one['memory']}: {doubtful}")
    for one in trials:
        if "command" in one:
            console.print(CommandLine(one["command"]), highlight=False, soft_wrap=True)


def _print_models(points: list[dict[str, Any]], console: Console) -> None:
    """Print the recall that models predict where replays of their policies confirm it."""
    headings = ["memory", "tuples\n(even)"]
    for model in MODELS:
        headings += [model, "best split"]
    rows, left_out = [], set()
    for one in points:
        cells = [one["memory"], f"{sum(one['tuples'].values()):,}"]
        for model in MODELS:
            for kind in ("even", "best"):
                own = one[model]
                interval = own[f"{kind}_interval"]
                if interval is None:
                    left_out.add(model)
                    cells.append("-")
                    continue
                split = f", {own['split']['left']:,}+{own['split']['right']:,}"
                cells.append(
                    f"{100 * own[kind]:.1f} ({100 * interval[0]:.1f} to {100 * interval[1]:.1f}"
                    f"{split if kind == 'best' else ''})"
                )
        rows.append(cells)
    if len(left_out) < len(MODELS) or any("(" in "".join(row) for row in rows):
        title = "recall in % that models predict (interval by replays; split over left and right)"
        console.print(table_of(headings, rows, title, texts=()))
    if left_out:
        models = " and ".join(model for model in MODELS if model in left_out)
        console.print(f"left out: predictions by {models}, which replays do not confirm")


def _title(profile: ArrivalProfile) -> str:
    exact = profile.exact
    return f"{exact['outputs']:,} outputs, {exact['simultaneous']:,} of them simultaneous"


def _rows(profile: ArrivalProfile) -> list[tuple[str, list[str]]]:
    """Return the lines of the table: name, and the values of left and right."""
    streams, unit = profile.streams, profile.unit
    within = [profile.advice["window"][side] for side in SIDES]
    rows = [
        ("tuples", [f"{own.rows:,}" for own in streams]),
        ("window", [length(window, unit) for window in profile.windows]),
        ("held on average", [f"{own.mean_window:,.1f}" for own in streams]),
        ("held at the peak", [f"{own.peak:,}" for own in streams]),
        ("distinct keys", [f"{own.distinct_keys:,}" for own in streams]),
        ("share of the top key", [f"{100 * own.top_share['1']:.2f} %" for own in streams]),
        (
            "Zipf exponent",
            ["-" if o.zipf_exponent is None else f"{o.zipf_exponent:.2f}" for o in streams],
        ),
        ("matches a stored tuple", [f"{own.age.matches:.3f}" for own in streams]),
    ]
    told = [("best held for (k_opt)", [own.age.k_opt for own in streams])]
    told += [
        (f"window that keeps {percent} %", [own[percent] for own in within])
        for percent in ("95", "99")
    ]
    for name, values in told:  # 0 where no stored tuple matches
        rows.append((name, [length(ticks, unit) if ticks else "none" for ticks in values]))
    return rows


def _online(kind: str, found: dict[str, Any]) -> str:
    said = []
    for side in SIDES:
        own = found[side]
        if own["matches_ratio"] is None:
            said.append(f"{side} nothing to compare")
            continue
        far = "-" if own["curve_distance"] is None else f"{own['curve_distance']:.3f}"
        said.append(
            f"{side} n {own['matches_ratio']:.3f} of the exact, curve off by {far} "
            f"({own['tuples']:,} tuples)"
        )
    return f"{kind}: {'; '.join(said)}"
