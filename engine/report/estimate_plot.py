"""A plot of an estimate by time, with its intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from engine.report.envelope import check_place
from engine.report.figures import blank
from engine.report.profile_plots import COLOURS, plain_axis, time_scale
from engine.runtime.errors import OutputError


def check_plot(path: Path) -> None:
    """Find out before the work whether a plot could be written.

    Raises
    ------
    OutputError
        If not.
    """
    check_place(path, "plot")


def draw_plot(path: Path, by_time: pa.Table, text: str, unit: str) -> None:
    """Draw the estimates of parts of time to a PNG or SVG file, as `figure_of` has them.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    own = figure_of(by_time, text, unit)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        metadata = {"Date": None} if path.suffix == ".svg" else {}
        own.savefig(path, dpi=150, metadata=metadata)
    except OSError as error:
        raise OutputError(f"plot {path} cannot be written: {error}") from error


def figure_of(by_time: pa.Table, text: str, unit: str) -> Any:  # noqa: ANN401 - matplotlib's
    """Return the estimates of parts of time as steps, and their intervals as a band.

    Parameters
    ----------
    by_time : pyarrow.Table
        begin, end, estimate, low, high.
    text : str
        What was estimated.
    unit : str
        What a tick is.
    """
    columns: dict[str, Any] = {
        name: by_time.column(name).to_numpy()
        for name in ("begin", "end", "estimate", "low", "high")
    }
    origin = columns["begin"][0]
    scale, named = time_scale(int(columns["end"][-1] - origin), unit)
    edges = [*((columns["begin"] - origin) * scale), (columns["end"][-1] - origin) * scale]
    own = blank(8.6, 4.2)
    axis = own.subplots()
    axis.stairs(columns["estimate"], edges, color=COLOURS[0], linewidth=1.4, label="estimate")
    axis.stairs(
        columns["high"], edges, baseline=columns["low"], fill=True, color=COLOURS[0], alpha=0.25,
        linewidth=0, label="interval",
    )  # fmt: skip
    plain_axis(axis, text, f"time since the first tuple ({named})", "of each part of time")
    axis.set_ylim(bottom=min(0.0, axis.get_ylim()[0]))
    axis.legend(frameon=False, fontsize=8)
    return own
