"""A report's plots as a figure of matplotlib, and figures as files."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.report.charts import Bars, Chart, Lines, Series
from engine.report.texts import shortened, visible

COLOURS = (
    "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8C510A",
)  # fmt: skip
"""Okabe and Ito's colours and a brown, which all kinds of colour vision tell apart."""
STYLES = ("-", "--", "-.", ":")
_HATCHES = ("", "////", "....", "xxxx")
_WIDTH, _ACROSS = 8.6, 64
"""Inches of a figure, and about how many digits stand below a plot of it."""
_UNITS = ((1e12, 1e12, "trillion"), (1e9, 1e9, "billion"), (1e7, 1e6, "million"))
"""From which amount on amounts are written by a unit, what it is, and its name."""
_MOST = 1e16
"""From here on amounts are written as powers of 10."""
_STEPS = (1, 2, 2.5, 5, 10)
"""Between marks of an axis, times a power of 10."""
_NAME, _FEW = 36, 24
"""Columns of a bar's name at most, and from how many on it is written smaller."""
Drawn: TypeAlias = Any
"""What matplotlib, which has no types, draws on or with; it is loaded late, for it is slow."""


def blank(width: float, height: float) -> Drawn:
    """Return a figure of that size in inches, drawn without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - half a second
    from matplotlib.figure import Figure  # noqa: PLC0415 - the same

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def label(text: str, most: int = 52, line: int = 26) -> str:
    r"""Return a text as a figure has room for it: at most so many columns, in lines of so many.

    It is written as matplotlib is to be given it, which else takes ``$...$`` for mathematics.

    Examples
    --------
    >>> print(label("US$50_$60"))
    US\$50_\$60
    """
    short = shortened(visible(text).replace("\n", r"\n").replace("\t", r"\t"), most)
    lines = textwrap.wrap(short, line) if len(short) > line else [short]
    return "\n".join(lines).replace("$", r"\$")


def plain(axis: Drawn, title: str, x: str, y: str) -> None:
    """Name an axis, and leave out what shows nothing."""
    axis.set_title(title, fontsize=11, loc="left")
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    axis.grid(visible=True, color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)
    for side in ("top", "right"):
        axis.spines[side].set_visible(False)


def thousands(axis: Drawn) -> None:
    """Write large numbers at an axis with separators."""
    axis.set_major_formatter(lambda value, _: f"{value:,.12g}")


def amounts(axis: Drawn) -> None:
    """Write amounts at an axis from 0, large ones in words."""
    axis.set_major_formatter(
        lambda value, _: _amount(value, max(map(abs, axis.get_view_interval())))
    )


def _amount(value: float, greatest: float) -> str:
    """Return an amount beside others up to the greatest.

    Examples
    --------
    >>> _amount(0.5, 2.0), _amount(2500.0, 9e6), _amount(25e6, 2e8), _amount(1.2e11, 2e11)
    ('0.5', '2,500', '25 million', '120 billion')
    """
    if greatest >= _MOST:
        return f"{value:.4g}"
    for least, unit, name in _UNITS:
        if value and greatest >= least:
            return f"{value / unit:,.12g} {name}"
    return f"{value:,.12g}"


def _are_whole(series: Iterable[Series]) -> bool:
    """Return whether all values of lines or bars are whole numbers."""
    values = (own for each in series for own in (*each.values, *each.low, *each.high))
    return all(own is None or float(own).is_integer() for own in values)


def _only_whole(axis: Drawn) -> None:
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - as above

    axis.set_major_locator(MaxNLocator("auto", integer=True, steps=_STEPS))


def across(axis: Drawn, *, whole: bool = False) -> None:
    """Mark places below a plot, as many as stand beside each other without touching."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415 - as above

    low, high = axis.get_view_interval()
    for most in range(8, 1, -1):
        places = MaxNLocator(most, steps=_STEPS, integer=whole)
        values = [own for own in places.tick_values(low, high) if low <= own <= high]
        if sum(len(own) + 2 for own in axis.major.formatter.format_ticks(values)) <= _ACROSS:
            break
    axis.set_major_locator(places)


def figure_of(charts: Sequence[Chart]) -> Drawn:
    """Return the plots of a report, one below the other, readable without colours too."""
    if not charts:
        figure = blank(_WIDTH, 1.0)
        figure.text(0.5, 0.5, "There is nothing to show.", ha="center", va="center")
        return figure
    heights = [_height(own) for own in charts]
    figure = blank(_WIDTH, sum(heights))
    axes = figure.subplots(len(charts), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axis, chart in zip(axes, charts, strict=True):
        up = "" if isinstance(chart, Bars) else chart.y
        plain(axis, label(chart.title, 120, 60), label(_across(chart), 72, 72), label(up, 60, 30))
        if isinstance(chart, Bars):
            _bars(axis, chart)
        else:
            _lines(axis, chart)
        if len(axis.get_legend_handles_labels()[0]) > 1:
            axis.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _across(chart: Chart) -> str:
    """Return what the axis across shows, with the time zone of its times."""
    if not isinstance(chart, Lines) or chart.clock is None:
        return chart.x
    unit, zone = chart.clock
    said = f"{unit} since 1970" if _clock(chart) is None else zone
    return f"{chart.x} ({said})" if said else chart.x


def _clock(chart: Lines) -> tuple[str, str | None] | None:
    """Return the clock of a plot, if matplotlib, which has the years 1 to 9999, has its dates."""
    if chart.clock is None:
        return None
    unit = "D" if chart.clock[0] == "day" else chart.clock[0]
    moments = np.array([int(own) for own in chart.xs], np.int64).astype(f"datetime64[{unit}]")
    years = moments.astype("datetime64[Y]").astype(np.int64) + 1970
    return chart.clock if ((years >= 500) & (years <= 9500)).all() else None


def _height(chart: Chart) -> float:
    if isinstance(chart, Lines):
        return 3.2
    beside = 1 if chart.stacked else len(chart.series)
    return 1.3 + 0.28 * len(chart.names) * max(1.0, 0.6 * beside)


def _numbers(values: Sequence[float | None]) -> np.ndarray[Any, Any]:
    return np.array([np.nan if own is None else own for own in values], np.float64)


def _places(chart: Lines) -> np.ndarray[Any, Any]:
    """Return the places on the axis, as times of the clock where there is one."""
    clock = _clock(chart)
    if clock is None:
        return np.asarray(chart.xs, np.float64)
    unit, zone = clock
    ticks = [int(own) for own in chart.xs]
    if unit == "day":
        return np.array(ticks, "datetime64[D]")
    times = pa.array(ticks, pa.timestamp(unit, zone))
    local = times if zone is None else pc.local_timestamp(times)
    return np.asarray(local.to_numpy(zero_copy_only=False))


def _lines(axis: Drawn, chart: Lines) -> None:
    xs, below = _places(chart), np.zeros(chart.points)
    for number, own in enumerate(own for own in chart.series if own.shown):
        values = _numbers(own.values)
        colour, line = COLOURS[number % len(COLOURS)], STYLES[number % len(STYLES)]
        if own.low and own.high:
            _band(axis, chart, xs, (_numbers(own.low), _numbers(own.high)), colour)
        if chart.stacked:
            top = below + np.nan_to_num(values)
            hatch = _HATCHES[number % len(_HATCHES)]
            _area(axis, chart, xs, (below, top)).set(
                label=label(own.name), facecolor=colour, hatch=hatch, edgecolor="white", linewidth=0
            )
            below = top
        elif chart.steps:
            axis.stairs(
                values, xs, color=colour, linestyle=line, linewidth=1.4, label=label(own.name),
                baseline=None,
            )  # fmt: skip
        else:
            there = ~np.isnan(values)
            axis.plot(
                xs[there], values[there], color=colour, linestyle=line, linewidth=1.4,
                marker="os^D"[number % 4], markersize=3.5, label=label(own.name),
            )  # fmt: skip
    for name, value in chart.marks:
        axis.axhline(value, color="#222222", linestyle=":", linewidth=1.2, label=label(name))
    if chart.log_x:
        axis.set_xscale("log")
    if chart.log_y:
        axis.set_yscale("log")
    else:
        if axis.dataLim.ymin == axis.dataLim.ymax == 0:  # else the line lies under the axis
            axis.set_ylim(-0.05, 1.0)
        else:
            axis.set_ylim(axis.get_ylim()[0] if axis.dataLim.ymin < 0 else 0.0)
        if chart.percent:
            axis.set_ylim(top=103)
        amounts(axis.yaxis)
        if _are_whole(own for own in chart.series if own.shown):
            _only_whole(axis.yaxis)
    if _clock(chart) is not None:
        _dates(axis.xaxis)
    elif not chart.log_x:
        thousands(axis.xaxis)
        across(axis.xaxis)


def _dates(axis: Drawn) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter  # noqa: PLC0415 - as above

    places = AutoDateLocator(minticks=4, maxticks=9)
    axis.set_major_locator(places)
    axis.set_major_formatter(ConciseDateFormatter(places))


def _area(axis: Drawn, chart: Lines, xs: Drawn, edges: tuple[Drawn, Drawn]) -> Drawn:
    """Return what fills the space between two lines."""
    low, high = edges
    if not chart.steps:
        return axis.fill_between(xs, low, high)
    low, high = (np.append(own, own[-1:]) for own in edges)
    return axis.fill_between(xs, low, high, step="post")


def _band(axis: Drawn, chart: Lines, xs: Drawn, edges: tuple[Drawn, Drawn], colour: str) -> None:
    _area(axis, chart, xs, edges).set(facecolor=colour, alpha=0.25, linewidth=0, label="interval")


def _bars(axis: Drawn, chart: Bars) -> None:
    rows = np.arange(len(chart.names))
    high = 0.7 if chart.stacked else 0.7 / max(1, len(chart.series))
    below = np.zeros(len(rows))
    for number, own in enumerate(chart.series):
        values = np.nan_to_num(_numbers(own.values))
        beside = 0.0 if chart.stacked else high * (number - (len(chart.series) - 1) / 2)
        axis.barh(
            rows + beside, values, height=high, left=below if chart.stacked else 0,
            label=label(own.name), color=COLOURS[number % len(COLOURS)],
            hatch=_HATCHES[number % len(_HATCHES)], edgecolor="white", linewidth=0,
        )  # fmt: skip
        below = below + values if chart.stacked else below
    for at, mark in enumerate(chart.marks):
        _mark(axis, rows, mark, again=mark.name in [own.name for own in chart.marks[:at]])
    names = [label(own, _NAME, _NAME) for own in chart.names]
    axis.set_yticks(rows, names, fontsize=8 if max(map(len, names), default=0) > _FEW else None)
    axis.invert_yaxis()
    axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
    amounts(axis.xaxis)
    across(axis.xaxis, whole=_are_whole((*chart.series, *chart.marks)))


def _mark(axis: Drawn, rows: Drawn, mark: Series, *, again: bool) -> None:
    axis.plot(
        _numbers(mark.values), rows, linestyle="none", marker="|", markersize=16,
        markeredgewidth=2, color="#222222", label=None if again else label(mark.name),
    )  # fmt: skip
