"""A profile as a person reads it on a terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from engine.models.profile.advice import MODELS
from engine.models.profile.model import ArrivalProfile
from engine.report.profile_plots import time_scale
from engine.report.tables import table_of
from engine.runtime.streams import SIDES


def print_profile(profile: ArrivalProfile) -> None:
    """Print both streams beside each other, the fit of the models, and the advice."""
    console = Console()
    rows = ((name, *values) for name, values in _rows(profile))
    console.print(table_of(("", *SIDES), rows, _title(profile)))
    bits = profile.fit["bits_a_match"]
    title = "bits a match saved over a constant rate"
    fits = table_of(("model", "left", "right", "both"), title=title)
    for model in MODELS:
        own = [bits[name][model] for name in ("left", "right", "both")]
        style = "bold" if model == profile.fit["model"] else None
        fits.add_row(model, *("-" if one is None else f"{one:+.3f}" for one in own), style=style)
    console.print(fits)
    if profile.advice["memory"]:
        console.print(_memories(profile.advice["memory"]))
    if profile.advice["caution"]:
        console.print(profile.advice["caution"], markup=False)
    console.print(_advice(profile.advice))
    for kind in ("monitor", "retain"):
        if profile.online[kind] is not None:
            console.print(_online(kind, profile.online[kind]))


def _advice(advice: dict[str, Any]) -> str:
    """Return the policy advised, and the one to try beside it."""
    estimator = advice["estimator"]
    with_it = "" if estimator is None else f", estimator {estimator}"
    said = f"advice: policy {advice['policy']}{with_it}. {advice['why']}"
    if advice["alternative"] is None:
        return said
    return f"{said}\nor try: policy {advice['alternative']}. {advice['alternative_why']}"


def _title(profile: ArrivalProfile) -> str:
    exact = profile.exact
    return f"{exact['outputs']:,} outputs, {exact['simultaneous']:,} of them simultaneous"


def _length(ticks: int, unit: str) -> str:
    if unit == "tick":
        return f"{ticks:,}"
    scale, name = time_scale(max(1, ticks), unit)
    return f"{ticks * scale:.4g} {name}"


def _rows(profile: ArrivalProfile) -> list[tuple[str, list[str]]]:
    """Return the lines of the table: name, and the values of left and right."""
    streams, unit = profile.streams, profile.unit
    rows = [
        ("tuples", [f"{own.rows:,}" for own in streams]),
        ("window", [_length(window, unit) for window in profile.windows]),
        ("held on average", [f"{own.mean_window:,.1f}" for own in streams]),
        ("held at the peak", [f"{own.peak:,}" for own in streams]),
        ("distinct keys", [f"{own.distinct_keys:,}" for own in streams]),
        ("share of the top key", [f"{100 * own.top_share['1']:.2f} %" for own in streams]),
        (
            "Zipf exponent",
            ["-" if o.zipf_exponent is None else f"{o.zipf_exponent:.2f}" for o in streams],
        ),
        ("matches a stored tuple", [f"{own.age.matches:.3f}" for own in streams]),
        ("best held for (k_opt)", [_length(own.age.k_opt, unit) for own in streams]),
    ]
    rows += [
        (f"window that keeps {percent} %", [
            _length(profile.advice["window"][side][percent], unit) for side in SIDES
        ])
        for percent in ("95", "99")
    ]  # fmt: skip
    return rows


def _memories(points: list[dict[str, Any]]) -> Table:
    headings = ["memory", "tuples"]
    for model in MODELS:
        headings += [model, "best split"]
    table = table_of(headings, title="expected recall in % (split over left and right)", texts=())
    for one in points:
        cells = []
        for model in MODELS:
            own = one[model]
            split = f"{own['split']['left']:,}+{own['split']['right']:,}"
            cells += [f"{100 * own['even']:.1f}", f"{100 * own['best']:.1f} ({split})"]
        table.add_row(f"{one['percent']}%", f"{sum(one['tuples'].values()):,}", *cells)
    return table


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
