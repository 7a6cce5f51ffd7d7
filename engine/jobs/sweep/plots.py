"""Plots of a sweep: each measure against memory by policy, a panel a pair of windows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from engine.jobs.sweep.advice import Advice, by_window
from engine.jobs.sweep.rows import Row
from engine.policies import POLICIES, SAMPLING

FORMATS = ("png", "svg")
WIDE = 12.0
"""From this ratio of the greatest memory to the least on, memory is drawn on a log scale."""
ACROSS = 3
"""Panels in a row."""

# Okabe and Ito's colours, which all kinds of colour vision tell apart; then darker shades.
_COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A",
    "#5E4FA2", "#999999", "#B2182B", "#01665E",
)  # fmt: skip
_MARKERS = "osD^vP*X<>ph"
_LINES = ("-", "--", "-.", ":")


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
    Measure("peak_memory", "most tuples held at once (both streams)", "Peak memory"),
    Measure("seconds", "seconds of one core", "Time of the replay"),
)


class Point(NamedTuple):
    """A policy's mean at one memory, with the least and greatest over the seeds."""

    memory: float
    mean: float
    least: float
    greatest: float


def draw(
    rows: Sequence[Row], advice: Sequence[Advice], grid: Mapping[str, Any], folder: Path
) -> list[Path]:
    """Draw every measure as PNG and SVG.

    Parameters
    ----------
    rows : sequence of Row
    advice : sequence of Advice
        Whose targets and best choices are marked on the plot of their measure.
    grid : mapping
        As the report has it.
    folder : Path

    Returns
    -------
    list of Path
    """
    files = []
    for measure in MEASURES:
        figure = _figure(rows, advice, grid, measure)
        for kind in FORMATS:
            path = folder / f"{measure.name}.{kind}"
            metadata = {"Date": None} if kind == "svg" else {}
            figure.savefig(path, dpi=150, metadata=metadata)
            files.append(path)
    return files


def _figure(
    rows: Sequence[Row], advice: Sequence[Advice], grid: Mapping[str, Any], measure: Measure
) -> Any:  # noqa: ANN401 - matplotlib's, which is loaded late
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - half a second
    from matplotlib.figure import Figure  # noqa: PLC0415 - the same

    panels = by_window(rows)
    across = min(ACROSS, max(1, math.ceil(math.sqrt(len(panels)))))
    down = max(1, -(-len(panels) // across))
    figure = Figure(figsize=(2.2 + 5.2 * across, 0.8 + 3.7 * down), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(down, across, squeeze=False, sharey=measure.percent).ravel()
    for axis in axes[len(panels) :]:
        axis.set_axis_off()
    lines: dict[str, Any] = {}
    for axis, (windows, mine) in zip(axes, panels.items(), strict=False):
        marked = [
            one
            for one in advice
            if (one.window_left, one.window_right) == windows and one.target.measure == measure.name
        ]
        lines |= _panel(axis, mine, marked, measure)
        if len(panels) > 1:
            axis.set_title(_window(windows, grid["tick"]), fontsize=10)
    for axis in axes[: len(panels) : across]:
        axis.set_ylabel(measure.label)
    one = next(iter(panels), None)
    over = "" if len(panels) > 1 or one is None else f", {_window(one, grid['tick'])}"
    title = f"{measure.title} by memory and policy{over}"
    figure.suptitle(title, fontsize=12, x=0.01, horizontalalignment="left")
    if lines:
        figure.legend(
            lines.values(), lines.keys(), loc="outside right center", frameon=False, fontsize=9
        )
    return figure


def _window(windows: tuple[int, int], tick: str) -> str:
    unit = "ticks" if tick == "tick" else tick
    if windows[0] == windows[1]:
        return f"window {windows[0]:,} {unit}"
    return f"windows {windows[0]:,} and {windows[1]:,} {unit}"


def _panel(
    axis: Any,  # noqa: ANN401 - matplotlib's
    rows: Sequence[Row],
    advice: Sequence[Advice],
    measure: Measure,
) -> dict[str, Any]:
    percent = all(row.memory.endswith("%") for row in rows)
    scale = 100.0 if measure.percent else 1.0
    lines = {}
    policies = list(dict.fromkeys(row.policy for row in rows))
    for place, policy in enumerate(policies):
        over = 1 - place / len(policies)  # what lies below is drawn larger and still seen
        number = [*POLICIES, *SAMPLING].index(policy)
        curve = curve_of([row for row in rows if row.policy == policy], measure.name, percent)
        style = {
            "color": _COLOURS[number % len(_COLOURS)],
            "linestyle": _LINES[number % len(_LINES)],
        }
        xs = [point.memory for point in curve]
        (lines[policy],) = axis.plot(
            xs,
            [scale * point.mean for point in curve],
            marker=_MARKERS[number % len(_MARKERS)],
            markersize=4.5 + 3.5 * over,
            linewidth=1.2 + 1.3 * over,
            **style,
        )
        if any(point.least < point.greatest for point in curve):
            low, high = ([scale * point[i] for point in curve] for i in (2, 3))
            axis.fill_between(xs, low, high, color=style["color"], alpha=0.2, linewidth=0)
    if measure.name == "importance_recall":
        lines |= _best(axis, rows, percent=percent)
    _axes(axis, rows, percent=percent)
    return lines | _targets(axis, advice, measure, percent=percent)


def _best(
    axis: Any,  # noqa: ANN401 - matplotlib's
    rows: Sequence[Row],
    *,
    percent: bool,
) -> dict[str, Any]:
    """Draw the best possible importance, as a band where its bounds differ."""
    found = sorted(
        {
            (_memory(row.memory, row.tuples, percent), row.best_lower, row.best_upper)
            for row in rows
            if row.best_lower is not None and row.best_upper is not None and row.exact_importance
        }
    )
    if not found:
        return {}
    whole = rows[0].exact_importance
    xs = [memory for memory, _, _ in found]
    lower, upper = ([100 * one[i] / whole for one in found] for i in (1, 2))
    (line,) = axis.plot(xs, upper, color="#222222", linewidth=1.4, linestyle=(0, (5, 2)), zorder=1)
    axis.fill_between(xs, lower, upper, color="#222222", alpha=0.25, linewidth=0, zorder=1)
    return {"best possible": line}


def curve_of(rows: Sequence[Row], measure: str, percent: bool) -> list[Point]:
    """Return one policy's means over the seeds, by memory, least first."""
    found: dict[float, list[float]] = {}
    for row in rows:
        found.setdefault(_memory(row.memory, row.tuples, percent), []).append(getattr(row, measure))
    return [
        Point(memory, math.fsum(values) / len(values), min(values), max(values))
        for memory, values in sorted(found.items())
    ]


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
    unit = "% of what the exact join needs" if percent else "tuples, both streams"
    axis.set_xlabel(f"memory ({unit})")
    if min(memories) > 0 and max(memories) / min(memories) > WIDE:
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_minor_formatter(NullFormatter())
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_ylim(bottom=0)
    axis.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def _targets(
    axis: Any,  # noqa: ANN401 - matplotlib's
    advice: Sequence[Advice],
    measure: Measure,
    *,
    percent: bool,
) -> dict[str, Any]:
    """Draw the targets of a measure and ring what meets them most cheaply."""
    drawn = {}
    for one in advice:
        name = f"target {100 * one.target.value:g} %"
        drawn[name] = axis.axhline(
            100 * one.target.value, color="#444444", linestyle=(0, (1, 1.5)), linewidth=1.2
        )
        if one.best is not None:
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
            )
    return drawn
