"""Plots of a sweep: each measure against memory by policy, a panel for all else that varies."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any, NamedTuple

from engine.jobs.sweep.advice import Advice, kind_of
from engine.jobs.sweep.panels import Panels
from engine.jobs.sweep.rows import Row
from engine.policies import POLICIES, SAMPLING
from engine.report.figure_files import save_each
from engine.report.figures import COLOURS, STYLES, blank, plain
from engine.runtime.storage.uris import Place

FEW_LINES = 6
"""Up to so many lines have a marker at every point."""
WIDE = 12.0
"""From this ratio of the greatest memory to the least on, memory is drawn on a log scale."""

_COLOURS = (
    *COLOURS, "#5E4FA2", "#999999", "#B2182B", "#01665E", "#F46D43", "#7FBC41", "#35978F",
    "#C51B7D",
)  # fmt: skip
_MARKERS = ("o", "s", "D", "^", "v", "P", "*", "X", "<", ">", "p", "h", "d", "8", "H", "|")
_NAMES = (*POLICIES, *SAMPLING)


class Measure(NamedTuple):
    """One plot."""

    name: str
    """Column of the table, and name of the files."""
    label: str
    """Of its axis, with the unit."""
    title: str
    percent: bool = False
    """A share of 1, drawn as percentages."""


MEASURES = (
    Measure("recall", "outputs found (% of the exact join's)", "Recall", percent=True),
    Measure(
        "importance_recall",
        "importance found (% of the exact join's)",
        "Importance recall",
        percent=True,
    ),
    Measure(
        "peak_memory",
        "tuples, both streams (peaks added up unless pooled)",
        "Peak memory",
    ),
    Measure("seconds", "seconds of one core", "Time of the replay"),
)


class Point(NamedTuple):
    """A policy's mean at one memory, with the least and greatest over the seeds."""

    memory: float
    mean: float
    least: float
    greatest: float


def draw(
    rows: Sequence[Row], advice: Sequence[Advice], grid: Mapping[str, Any], folder: Place
) -> list[Place]:
    """Draw every measure as PNG and SVG.

    Parameters
    ----------
    advice : sequence of Advice
        Whose targets and best choices are marked on the plot of their measure.
    grid : mapping
        As the report has it.
    """
    figures = ((own.name, figure_of(rows, advice, grid, own)) for own in MEASURES)
    return save_each(figures, folder)


def figure_of(
    rows: Sequence[Row], advice: Sequence[Advice], grid: Mapping[str, Any], measure: Measure
) -> Any:  # noqa: ANN401 - matplotlib's
    """Return the plot of a measure as a figure; arguments as of `draw`."""
    panels = Panels(rows)
    number, across = len(panels.rows), panels.across
    down = -(-number // across)
    wide, high = (6.2, 4.6) if number == 1 else (3.9, 3.0)
    figure = blank(2.2 + wide * across, 0.8 + high * down)
    axes = figure.subplots(down, across, squeeze=False, sharey=measure.percent).ravel()
    for axis in axes[number:]:
        axis.set_axis_off()
    lines: dict[str, Any] = {}
    for axis, (panel, mine) in zip(axes, panels.rows.items(), strict=False):
        marked = [
            (one, panels.holds(one, panel))
            for one in advice
            if one.target.measure == measure.name
            and (one.window_left, one.window_right) == (mine[0].window_left, mine[0].window_right)
        ]
        lines = _panel(axis, mine, marked, measure) | lines
        if number > 1:
            axis.set_title(fill(panels.title(panel, grid["tick"]), int(13 * wide)), fontsize=10)
    for axis in axes[:number]:
        axis.set_ylim(bottom=0)  # last, for it fixes the top of all that share it
    for axis in axes[:number:across]:
        axis.set_ylabel(fill(measure.label, int(10 * high)))
    for axis in axes[max(0, number - across) : number]:
        axis.set_xlabel(f"memory ({unit_of(rows)})")
    title = f"{measure.title} by memory and policy{panels.rest(grid['tick'])}"
    title = fill(title, int(10 * (2.2 + wide * across)))
    figure.suptitle(title, fontsize=12, x=0.01, horizontalalignment="left")
    if lines:
        names = [*ordered(rows, measure), *(name for name in lines if name not in _NAMES)]
        figure.legend(
            [lines[name] for name in names], names, loc="outside right center", frameon=False,
            fontsize=9,
        )  # fmt: skip
    return figure


def ordered(rows: Sequence[Row], measure: Measure) -> list[str]:
    """Return the policies, that with the greatest mean first, as their lines lie."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row.policy, []).append(getattr(row, measure.name))
    return sorted(found, key=lambda name: -math.fsum(found[name]) / len(found[name]))


def look_of(policy: str) -> dict[str, Any]:
    """Return a policy's colour, marker and line; no two have the same colour and marker."""
    number = _NAMES.index(policy)
    again = number // len(_COLOURS)
    return {
        "color": _COLOURS[number % len(_COLOURS)],
        "marker": _MARKERS[(number + again) % len(_MARKERS)],
        "linestyle": STYLES[number % len(STYLES)],
    }


def _panel(
    axis: Any,  # noqa: ANN401 - matplotlib's
    rows: Sequence[Row],
    advice: Sequence[tuple[Advice, bool]],
    measure: Measure,
) -> dict[str, Any]:
    percent = in_percent(rows)
    scale = 100.0 if measure.percent else 1.0
    lines = {}
    policies = ordered(rows, measure)
    for place, policy in enumerate(policies):
        look = look_of(policy)
        curve = curve_of([row for row in rows if row.policy == policy], measure, percent=percent)
        xs = [point.memory for point in curve]
        (lines[policy],) = axis.plot(
            xs,
            [scale * point.mean for point in curve],
            markersize=6.5,
            markeredgewidth=1.5 if look["marker"] == "|" else 0.5,
            markeredgecolor=look["color"] if look["marker"] == "|" else "white",
            linewidth=1.6,
            markevery=_every(place, len(policies), len(curve)),
            zorder=3 - place / 100,
            **look,
        )
        if any(point.least < point.greatest for point in curve):
            low, high = ([scale * point[i] for point in curve] for i in (2, 3))
            axis.fill_between(xs, low, high, color=look["color"], alpha=0.2, linewidth=0)
    if measure.name == "importance_recall":
        lines |= _best(axis, rows, percent=percent)
    _axes(axis, rows, percent=percent)
    return lines | _targets(axis, advice, measure, percent=percent)


def _every(place: int, lines: int, points: int) -> tuple[int, int]:
    """Return the first point of a line with a marker, and the step: many lines take turns."""
    step = 1 if lines <= FEW_LINES else max(1, min(4, points // 2))
    return place % step, step


def _best(
    axis: Any,  # noqa: ANN401 - matplotlib's
    rows: Sequence[Row],
    *,
    percent: bool,
) -> dict[str, Any]:
    """Draw the best possible importance, as a band where its bounds differ."""
    lines = {}
    for name, bounds in bests_of(rows, percent=percent).items():
        xs, low, high = zip(*((x, *own) for x, own in bounds.items()), strict=True)
        (lines[name],) = axis.plot(
            xs, high, color="#222222", linewidth=1.4, linestyle=(0, _DASHES[name]), zorder=1
        )
        axis.fill_between(xs, low, high, color="#222222", alpha=0.25, linewidth=0, zorder=1)
    return lines


def bests_of(rows: Sequence[Row], *, percent: bool) -> dict[str, dict[float, tuple[float, float]]]:
    """Return bounds of the best possible importance, by name and memory, in % of the exact join.

    As the memory is split only where all cells of a memory split it in one way.
    """
    bests = {}
    for name, lower, upper in _BESTS:
        found: dict[float, set[tuple[float, float]]] = {}
        for row in rows:
            bounds = getattr(row, lower), getattr(row, upper)
            if None not in bounds and row.exact_importance:
                at = _memory(row.memory, row.tuples, percent)
                found.setdefault(at, set()).add(bounds)
        if not found or (name == "best possible" and any(len(own) > 1 for own in found.values())):
            continue
        whole = 0.01 * rows[0].exact_importance
        bests[name] = {
            x: (max(low for low, _ in own) / whole, min(high for _, high in own) / whole)
            for x, own in sorted(found.items())
        }
    return bests


_BESTS = (
    ("best possible", "best_lower", "best_upper"),
    ("best of any split", "best_any_lower", "best_any_upper"),
)
_DASHES = {"best possible": (5, 2), "best of any split": (1.5, 1.5)}


def curve_of(rows: Sequence[Row], measure: Measure, *, percent: bool) -> list[Point]:
    """Return one policy's means over the seeds, by memory, least first.

    Of several settings it is the best at each memory: the greatest share, or the least of a cost.
    """
    found: dict[float, dict[Any, list[float]]] = {}
    for row in rows:
        settings = found.setdefault(_memory(row.memory, row.tuples, percent), {})
        settings.setdefault(kind_of(row), []).append(getattr(row, measure.name))
    better = max if measure.percent else min
    points = []
    for memory, settings in sorted(found.items()):
        best = better(settings.values(), key=lambda values: math.fsum(values) / len(values))
        points.append(Point(memory, math.fsum(best) / len(best), min(best), max(best)))
    return points


def in_percent(rows: Sequence[Row]) -> bool:
    """Return whether every memory was asked for in percent."""
    return all(row.memory.endswith("%") for row in rows)


def unit_of(rows: Sequence[Row]) -> str:
    """Return what memories are in."""
    return "% of what the exact join needs" if in_percent(rows) else "tuples, both streams"


def _memory(asked: str, tuples: int, percent: bool) -> float:
    return float(asked.rstrip("%")) if percent else float(tuples)


def _axes(
    axis: Any,  # noqa: ANN401 - matplotlib's
    rows: Sequence[Row],
    *,
    percent: bool,
) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 - late

    memories = [_memory(row.memory, row.tuples, percent) for row in rows]
    if min(memories) > 0 and max(memories) / min(memories) > WIDE:
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    plain(axis, "", "", "")


def _targets(
    axis: Any,  # noqa: ANN401 - matplotlib's
    advice: Sequence[tuple[Advice, bool]],
    measure: Measure,
    *,
    percent: bool,
) -> dict[str, Any]:
    """Draw the targets of a measure, and ring what meets them most cheaply where it is shown."""
    drawn = {}
    for one, shown in advice:
        name = f"target {100 * one.target.value:g} %"
        drawn[name] = axis.axhline(
            100 * one.target.value, color="#444444", linestyle=(0, (1, 1.5)), linewidth=1.2
        )
        if one.best is not None and shown:
            at = _memory(one.best.memory, one.best.tuples, percent)
            (drawn["cheapest that meets it"],) = axis.plot(
                [at],
                [100 * one.best.reached(measure.name)],
                marker="o",
                markersize=13,
                markerfacecolor="none",
                markeredgecolor="#C00000",
                markeredgewidth=2,
                linestyle="none",
                zorder=4,
            )
    return drawn
