"""Plots of a profile: age curves, key frequencies, correlation, drift, and recall by memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from engine.models.profile.advice import MODELS
from engine.models.profile.model import ArrivalProfile
from engine.report.figures import COLOURS, blank, plain, save_each, thousands
from engine.report.profile_bins import Ages, ages_of, lags_of, rates_of
from engine.report.tables import time_scale
from engine.runtime.errors import chosen
from engine.runtime.streams import SIDES
from engine.runtime.uris import Place

PLOTS = ("age_curves", "key_frequencies", "correlation", "drift", "recall")
_ONLINE = {"monitor": ("#009E73", "--"), "retain": ("#CC79A7", "-.")}


def draw(profile: ArrivalProfile, folder: Place) -> list[Place]:
    """Draw every plot as PNG and SVG.

    Raises
    ------
    OutputError
        If one cannot be written.
    """
    return save_each(((name, figure_of(profile, name)) for name in PLOTS), folder)


def figure_of(profile: ArrivalProfile, name: str) -> Any:  # noqa: ANN401 - matplotlib's
    """Return one of `PLOTS` as a figure."""
    paint: Mapping[str, Callable[[Any, ArrivalProfile], None]] = {
        "age_curves": _ages,
        "key_frequencies": _frequencies,
        "correlation": _correlation,
        "drift": _drift,
        "recall": _recall,
    }
    figure = blank(8.6, 7.2 if name == "drift" else 4.2)
    paint[chosen("plot", name, PLOTS)](figure, profile)
    return figure


def plain_axis(axis: Any, title: str, x: str, y: str) -> None:  # noqa: ANN401 - matplotlib's
    """Give an axis its title and labels, and take what distracts away."""
    plain(axis, title, x, y)
    if axis.get_xscale() == "linear":
        thousands(axis.xaxis, axis.yaxis)
        axis.locator_params(axis="x", nbins=6)


def _legend(axis: Any, below: float = -0.17) -> None:  # noqa: ANN401 - matplotlib's
    """Explain the lines below the axis, where they cover nothing."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(
            frameon=False, fontsize=8, ncols=2, loc="upper center", bbox_to_anchor=(0.5, below)
        )


def _ages(figure: Any, profile: ArrivalProfile) -> None:  # noqa: ANN401 - matplotlib's
    for side, axis in enumerate(figure.subplots(1, 2)):
        own, window = profile.streams[side].age, profile.windows[side]
        scale, unit = time_scale(window, profile.unit)
        bins = ages_of(profile, side)
        ends, exact = bins.edges * scale, bins.heights(own.buckets)
        axis.stairs(exact, ends, fill=True, color=COLOURS[side], alpha=0.25, linewidth=0)
        axis.stairs(exact, ends, color=COLOURS[side], linewidth=1.4, label="exact")
        for name, (colour, line) in _ONLINE.items():
            found = (profile.online[name] or {}).get(SIDES[side])
            if found and found["buckets"]:
                label = f"{name}: {found['tuples']:,} tuples"
                axis.stairs(
                    bins.heights(found["buckets"]), ends, color=colour, linestyle=line,
                    linewidth=1.1, label=label,
                )  # fmt: skip
        if own.matches:
            axis.axvline(
                own.k_opt * scale, color="#222222", linestyle=":", linewidth=1.4,
                label=f"k_opt: {_number(own.k_opt * scale)} {unit}",
            )  # fmt: skip
        axis.set_ylim(bottom=0)
        axis.set_xlim(0, max(window * scale, scale))
        title = f"{SIDES[side]}: {own.matches:.3g} matches a tuple"
        if not own.matches:
            axis.set_ylim(0, 1)
        plain_axis(axis, title, f"age ({unit})", matches_label(bins, scale, unit))
        _legend(axis)


def matches_label(bins: Ages, scale: float, unit: str) -> str:
    """Return what the height of an age curve is."""
    if bins.even:
        return "matches a tuple in a bucket"
    return f"matches a tuple in {bins.wide * scale:.3g} {unit} of age"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _frequencies(figure: Any, profile: ArrivalProfile) -> None:  # noqa: ANN401 - matplotlib's
    for side, axis in enumerate(figure.subplots(1, 2)):
        own = profile.streams[side]
        ranked = np.sort(profile.counts()[1 + side])[::-1]
        ranked = ranked[ranked > 0]
        if ranked.size:
            ranks = np.arange(1, ranked.size + 1)
            shown = np.unique(np.geomspace(1, ranked.size, 500).astype(np.int64)) - 1
            axis.loglog(
                ranks[shown], ranked[shown], ".", color=COLOURS[side], markersize=4,
                label="counted" if profile.frequencies.kind == "exact" else "sketched",
            )  # fmt: skip
            if own.zipf_exponent is not None:
                weights = ranks.astype(np.float64) ** -own.zipf_exponent
                fitted = ranked.sum() * weights / weights.sum()
                axis.loglog(
                    ranks[shown], fitted[shown], color="#222222", linewidth=1.2, linestyle="--",
                    label=f"Zipf, exponent {own.zipf_exponent:.2f}",
                )  # fmt: skip
            axis.set_ylim(bottom=0.7)
            _log_axes(axis)
        title = f"{SIDES[side]}: {own.distinct_keys:,} keys"
        plain_axis(axis, title, "rank of the key", "tuples of the key")
        _legend(axis)


def _log_axes(axis: Any) -> None:  # noqa: ANN401 - matplotlib's
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 - late

    for own in (axis.xaxis, axis.yaxis):
        own.set_major_locator(LogLocator(numticks=6))
        own.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        own.set_minor_formatter(NullFormatter())


def _correlation(figure: Any, profile: ArrivalProfile) -> None:  # noqa: ANN401 - matplotlib's
    axis = figure.subplots()
    edges, matches = lags_of(profile)
    scale, unit = time_scale(max(profile.windows), profile.unit)
    heights = matches / (np.diff(edges) * scale)
    later, earlier = edges[:-1] > 0, edges[:-1] < 0
    for kind, colour, label in (
        (earlier, COLOURS[1], "right first"), (later, COLOURS[0], "left first"),
    ):  # fmt: skip
        bounds = edges[np.append(kind, False) | np.append(False, kind)] * scale
        if kind.any() and matches[kind].any():
            axis.stairs(heights[kind], bounds, fill=True, color=colour, alpha=0.75, label=label)
    same = int(profile.exact["simultaneous"])
    if same:
        axis.axvline(0, color="#222222", linestyle=":", label=f"simultaneous: {same:,}")
    axis.set_ylim(bottom=0)
    title = f"Matches by lag: {int(profile.exact['outputs']):,} outputs"
    plain_axis(axis, title, f"right.ts - left.ts ({unit})", f"matches a {one_of(unit)} of lag")
    _legend(axis)


def one_of(unit: str) -> str:
    """Return a unit as it stands behind "a"."""
    return unit if " " in unit or len(unit) < 3 else unit.removesuffix("s")


def _drift(figure: Any, profile: ArrivalProfile) -> None:  # noqa: ANN401 - matplotlib's
    length, unit = time_scale(max(1, profile.ticks), profile.unit)
    scale, of_age = time_scale(max(profile.windows), profile.unit)
    panels = (
        ("rate", 1 / length, "Rate", f"tuples a {one_of(unit)}"),
        ("mean_age", scale, "Age of the stored tuple at matches", f"mean age ({of_age})"),
        ("key_distance", 1.0, "Change of key shares from the bin before", "L1 distance"),
    )
    begin = profile.span[0] if profile.span else 0
    axes = figure.subplots(3, 1, sharex=True)
    for axis, (name, factor, title, label) in zip(axes, panels, strict=True):
        for side, own in enumerate(drift_of(profile, name)):
            drift = profile.streams[side].drift
            at = [((b["from"] + b["to"]) / 2 - begin) * length for b in drift]
            values = [np.nan if one is None else factor * one for one in own]
            axis.plot(
                at, values, color=COLOURS[side], marker="os"[side], markersize=3.2,
                linewidth=1.3, label=SIDES[side],
            )  # fmt: skip
        axis.set_ylim(bottom=0)
        plain_axis(axis, title, "", label)
    axes[2].set_ylim(0, 2.05)
    axes[2].set_xlabel(f"time since the first tuple ({unit})")
    _legend(axes[2], -0.3)


def drift_of(profile: ArrivalProfile, name: str) -> list[list[float | None]]:
    """Return a field of each side's time bins."""
    if name == "rate":
        return [rates_of(profile, side) for side in range(len(SIDES))]
    return [[own[name] for own in stream.drift] for stream in profile.streams]


def _recall(figure: Any, profile: ArrivalProfile) -> None:  # noqa: ANN401 - matplotlib's
    axis = figure.subplots()
    points = profile.advice["memory"]
    for model, colour in zip(MODELS, COLOURS[:2], strict=True):
        for kind, line, marker in (("best", "-", "o"), ("even", "--", "s")):
            label = f"{model} model, {'best split' if kind == 'best' else 'each its share'}"
            axis.plot(
                [*(one["percent"] for one in points), 100],
                [*(100 * one[model][kind] for one in points), 100],
                color=colour, linestyle=line, marker=marker, markersize=4.5, linewidth=1.5,
                label=label,
            )  # fmt: skip
    axis.set_ylim(0, 103)
    axis.set_xlim(0, 103)
    fits = profile.fit["model"]
    title = "Expected recall by memory" + (f": the {fits} model fits better" if fits else "")
    plain_axis(
        axis, title, "memory (% of what the exact join needs at its peak)", "expected recall (%)"
    )
    _legend(axis)
