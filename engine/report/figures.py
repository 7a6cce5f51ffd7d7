"""Figures of reports: what plots share, losses over time, and bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine.runtime.errors import SpecError

# Okabe and Ito's colours, which all kinds of colour vision tell apart
BLUE, ORANGE = "#0072B2", "#D55E00"


def blank(width: float, height: float) -> Any:  # noqa: ANN401 - matplotlib's, which is loaded late
    """Return a figure of that size in inches, drawn without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - half a second
    from matplotlib.figure import Figure  # noqa: PLC0415 - the same

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plain(axis: Any, title: str, x: str, y: str) -> None:  # noqa: ANN401 - matplotlib's
    """Name an axis, and leave out what shows nothing."""
    axis.set_title(title, fontsize=11, loc="left")
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def losses(content: Mapping[str, Any], times: Sequence[Any], label: str) -> Any:  # noqa: ANN401
    """Draw what was found and what was lost of the exact join over time.

    Parameters
    ----------
    content : mapping
        The report of a replay.
    times : sequence
        The left edge of every span of ``lost.by_time``, and the last one's right edge.
    label : str
        Of the axis of time.

    Raises
    ------
    SpecError
        If the exact join was not counted.
    """
    if "lost" not in content:
        raise SpecError("the exact join was not counted, so no losses are known: leave reference")
    figure = blank(8.6, 3.8)
    axis = figure.subplots()
    spans = content["lost"]["by_time"]
    exact = [span["exact_outputs"] for span in spans]
    lost = [span["lost_outputs"] for span in spans]
    if spans:
        found = [own - gone for own, gone in zip(exact, lost, strict=True)]
        axis.stairs(exact, times, fill=True, color=ORANGE, alpha=0.55, label="lost")
        axis.stairs(found, times, fill=True, color=BLUE, label="found")
        figure.legend(loc="outside right center", frameon=False, fontsize=9)
    share = 100 * content["recall"]
    title = f"{share:.1f} % of {content['exact']['outputs']:,} outputs were found"
    plain(axis, title, label, "outputs in a span")
    axis.set_ylim(bottom=0)
    axis.tick_params(axis="x", labelrotation=20 if label == "time" else 0)
    return figure


def bars(names: Sequence[str], values: Sequence[float], title: str, label: str) -> Any:  # noqa: ANN401
    """Draw a bar for each value, the first at the top.

    Parameters
    ----------
    names : sequence of str
    values : sequence of float
    title : str
    label : str
        Of the axis of values.
    """
    figure = blank(8.6, 1.4 + 0.32 * len(names))
    axis = figure.subplots()
    axis.barh(range(len(names)), values, color=BLUE, height=0.62)
    axis.set_yticks(range(len(names)), names)
    axis.invert_yaxis()
    plain(axis, title, label, "")
    return figure
