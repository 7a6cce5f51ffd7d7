"""Plots of how a join shed load: over time (P4 figure 2), and what it reads (P4 figures 3, 4)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from engine.report.figures import COLOURS, amounts, blank, label
from engine.report.texts import shortened


def figure_of(content: Mapping[str, Any]) -> Any:  # noqa: ANN401 - matplotlib's
    """Return how load was shed, of the report of a join with a CPU budget, as a figure."""
    names = list(content["rows"])
    setting = content["harvest"]["setting"]
    probes = len(names) * (len(names) - 1) if setting is not None else 0
    heights = [2.2, 2.2, 2.2, *([0.8 + 0.3 * probes] if probes else [])]
    figure = blank(9.0, sum(heights))
    grid = figure.add_gridspec(len(heights), 1, height_ratios=heights)
    axes = [figure.add_subplot(grid[0])]
    axes += [figure.add_subplot(grid[row], sharex=axes[0]) for row in (1, 2)]
    _over_time(axes, content, names)
    if probes:
        _windows_read(figure.add_subplot(grid[3]), content, names)
    return figure


def _over_time(axes: Any, content: Mapping[str, Any], names: list[str]) -> None:  # noqa: ANN401
    """Draw throttle fraction, rates and output rate of every interval."""
    harvest = content["harvest"]
    steps, second = harvest["steps"], harvest["settings"]["per_second"]
    span = harvest["settings"]["adapt_every"]
    begin = min((step["to"] for step in steps), default=0) - span
    ends = [(step["to"] - begin) / second for step in steps]
    edges = [0.0, *ends]
    lengths = [max(to - before, 1e-9) for before, to in pairwise(edges)]

    def stairs(axis: Any, values: list[float], name: str, colour: str, line: str = "-") -> None:  # noqa: ANN401
        axis.stairs(
            values,
            edges,
            label=label(name, 30, 30),
            color=colour,
            linestyle=line,
            linewidth=1.6,
            baseline=None,
        )

    if steps:
        stairs(axes[0], [step["throttle"] for step in steps], "z", "#000000")
        for i, name in enumerate(names):
            colour = COLOURS[i % len(COLOURS)]
            pushed = [step["pushes"][i] / own for step, own in zip(steps, lengths, strict=True)]
            popped = [step["pops"][i] / own for step, own in zip(steps, lengths, strict=True)]
            stairs(axes[1], pushed, f"{shortened(name, 20)}, arrived", colour)
            stairs(axes[1], popped, f"{shortened(name, 20)}, joined", colour, ":")
        made = [step["outputs"] / own for step, own in zip(steps, lengths, strict=True)]
        stairs(axes[2], made, "outputs", "#0072B2")
    axes[0].set_ylim(0, 1.05)
    axes[0].set_ylabel("throttle fraction z")
    axes[1].set_ylabel("tuples a second")
    axes[2].set_ylabel("outputs a second")
    axes[2].set_xlabel("seconds")
    for axis in axes[1:]:
        axis.set_ylim(bottom=0)
        amounts(axis.yaxis)
    if steps:
        axes[1].legend(fontsize="x-small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
    for axis in axes:
        axis.grid(alpha=0.3)


def _windows_read(axis: Any, content: Mapping[str, Any], names: list[str]) -> None:  # noqa: ANN401
    """Draw which logical basic windows each hop reads, darker the better their rank."""
    harvest, orders = content["harvest"], content["method"]["orders"]
    labels: list[str] = []
    for direction, name in enumerate(names):
        for hop, other in enumerate(orders[direction]):
            count = harvest["setting"]["counts"][direction][hop]
            n = harvest["basic_windows"][other]
            colour = COLOURS[names.index(other) % len(COLOURS)]
            for rank, window in enumerate(harvest["setting"]["rankings"][direction][hop]):
                read = rank < count
                axis.barh(
                    len(labels), 0.92, left=window + 0.04, height=0.8,
                    color=colour if read else "none", alpha=1.0 - 0.6 * rank / n if read else 1.0,
                    edgecolor="#999999", linewidth=0.6,
                )  # fmt: skip
            at, to = shortened(name, 20), shortened(other, 20)
            labels.append(label(f"{at}, hop {hop + 1}: {to}, {count} of {n}", 70, 70))
    axis.set_yticks(range(len(labels)), labels, fontsize="small")
    axis.invert_yaxis()
    axis.set_xlim(0, max(harvest["basic_windows"].values()))
    axis.set_xlabel("what is read at the end, by age in basic windows")
