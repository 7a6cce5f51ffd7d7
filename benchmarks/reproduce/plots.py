"""One plot a figure, which can be read in black and white: markers and dashes tell lines apart."""

from __future__ import annotations

from pathlib import Path

from engine.report.figures import blank, plain
from reproduce.experiment import Data, Experiment, half_width, series

COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#7A7A7A", "#E69F00", "#56B4E9")
MARKERS = "osD^vP*X<>hpd"
DASHES = ("-", "--", "-.", ":")


def draw(experiment: Experiment, data: Data, path: Path) -> bool:
    """Draw the lines of an experiment with their intervals; return whether there is a plot."""
    lines = [line for line in (experiment.drawn or data) if line in data]
    if experiment.drawn == () or len(experiment.points) < 2 or not lines:
        return False
    labels = [label for label in experiment.points if any(label in data[line] for line in lines)]
    try:
        places = {label: float(label) for label in labels}
        names = False
    except ValueError:
        places = {label: float(at) for at, label in enumerate(labels)}
        names = True
    figure = blank(7.6, 3.9)
    axis = figure.subplots()
    for at, line in enumerate(lines):
        values = series(data, line)
        own = [label for label in labels if label in values]
        axis.errorbar(
            [places[label] for label in own], [values[label].mean() for label in own],
            yerr=[half_width(values[label]) for label in own], label=line, capsize=2.5,
            color=COLOURS[at % len(COLOURS)], marker=MARKERS[at % len(MARKERS)],
            linestyle="" if names else DASHES[(at + at // len(COLOURS)) % len(DASHES)],
            markersize=5, linewidth=1.3, markerfacecolor="white" if at % 2 else None,
        )  # fmt: skip
    if names:
        axis.set_xticks(
            list(places.values()), [own.replace(", ", "\n") for own in labels], fontsize=8
        )
    elif len(labels) < 6:
        axis.set_xticks(list(places.values()))
    plain(axis, f"{experiment.name}: {experiment.title}", experiment.x, experiment.y)
    if experiment.logarithmic:
        axis.set_yscale("log")
    elif min(axis.get_ylim()) < max(axis.get_ylim()) / 2:
        axis.set_ylim(bottom=0)
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    figure.savefig(path, dpi=72, metadata={"Software": None})
    return True
