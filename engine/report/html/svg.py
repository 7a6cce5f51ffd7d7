"""Draws plots as SVG, with what a pointer reads out of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from engine.report.charts import Bars, Chart, Lines, Series, Values
from engine.report.html.axes import Axis, numbers, short, times
from engine.report.texts import escape, shortened, visible

WIDTH, HEIGHT = 480, 262
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 466, 10, 214
_BAR, _BESIDE, _NAME = 15, 3, 19
_LETTERS = 14
"""Height of a line of letters."""
LOOKS = 16
"""Series of different looks (`style.css`); further ones begin anew."""
_FEW = 160
"""Up to so many points have markers."""
_MARKERS = (
    "M{x},{y}m-3,0a3,3 0 1,0 6,0a3,3 0 1,0-6,0z", "M{x},{y}m-3-3h6v6h-6z",
    "M{x},{y}m0-4l4,7h-8z", "M{x},{y}m0-4l4,4l-4,4l-4-4z",
)  # fmt: skip
Place = Callable[[float], float]


class Drawing(NamedTuple):
    """A plot as markup, and what is read out of it."""

    svg: str
    data: dict[str, Any]
    looks: list[tuple[str, bool]]
    """Names of the series, and whether each is shown at first."""


def draw(chart: Chart) -> Drawing:
    """Draw a plot; the same for the same data."""
    return _bars(chart) if isinstance(chart, Bars) else _lines(chart.thinned())


def _lines(chart: Lines) -> Drawing:
    x, y = _axes(chart)
    across, up = x.place(_LEFT, _RIGHT), y.place(_BOTTOM, _TOP)
    parts = [_grid(x, y, across, up)]
    below = [0.0] * chart.points
    marked = chart.points * len(chart.series) <= _FEW and not chart.steps
    for at, own in enumerate(chart.series):
        look = at % LOOKS
        base = list(below)
        drawn = own.values
        if chart.stacked:
            drawn = [value + (more or 0.0) for value, more in zip(below, own.values, strict=True)]
            below = [float(value or 0.0) for value in drawn]
        inside = []
        if own.low and own.high:
            inside.append(_area(chart, across, up, own.low, own.high, "band"))
        if chart.stacked:
            inside.append(_area(chart, across, up, base, drawn, "fill"))
        else:
            inside.append(f'<path class="line" d="{_path(chart, across, up, drawn)}"/>')
        if marked:
            inside.append(f'<path class="dots" d="{_dots(chart, across, up, drawn, look)}"/>')
        parts.append(_group(at, own, "".join(inside)))
    parts += _marks(chart, up)
    parts.append(f'<path class="cursor" d="M0,{_TOP}V{_BOTTOM}"/>')
    labels = list(chart.labels) or [short(own) for own in chart.xs[: chart.points]]
    data = {
        "kind": "steps" if chart.steps else "points",
        "at": [round(across(own), 1) for own in chart.xs],
        "labels": [*map(visible, labels)],
        "series": [_read(own) for own in chart.series],
    }
    return Drawing(_svg(chart, HEIGHT, parts), data, _looks(chart.series))


def _marks(chart: Lines, up: Place) -> list[str]:
    """Return lines across with their names, those of lines near each other at different ends."""
    parts, before, right = [], -math.inf, True
    for name, value in sorted(chart.marks, key=lambda own: own[1]):
        height = up(value)
        right = not (right and abs(height - before) < _LETTERS)
        before = height
        at, anchor = (_RIGHT, "end") if right else (_LEFT + 4, "start")
        parts.append(
            f'<g class="mark"><path d="M{_LEFT},{_text(height)}H{_RIGHT}"/>'
            f'<text x="{at}" y="{_text(height - 4)}" text-anchor="{anchor}">{escape(name)}'
            "</text></g>"
        )
    return parts


def _axes(chart: Lines) -> tuple[Axis, Axis]:
    tops = [own for one in chart.series for own in (*one.values, *one.high) if own is not None]
    bottoms = [own for one in chart.series for own in (*one.values, *one.low) if own is not None]
    if chart.stacked:
        tops = [sum(own or 0.0 for own in column)
                for column in zip(*(one.values for one in chart.series), strict=True)]  # fmt: skip
    high = max([*tops, *(value for _, value in chart.marks)], default=1.0)
    low = min([*bottoms, 0.0]) if not chart.log_y else min(
        (own for own in bottoms if own > 0), default=1.0
    )  # fmt: skip
    high = 100.0 if chart.percent else high if chart.log_y else low + 1.04 * (high - low)
    first, last = (chart.xs[0], chart.xs[-1]) if chart.xs else (0.0, 1.0)
    if chart.clock is None:
        x = numbers(first, last, chart.x, log=chart.log_x)
    else:
        x = times(first, max(last, first + 1), chart.x, *chart.clock)
    return x, numbers(low, high, chart.y, log=chart.log_y)


def _grid(x: Axis, y: Axis, across: Place, up: Place) -> str:
    """Return both axes with their ticks and labels."""
    lines, texts = [f"M{_LEFT},{_BOTTOM}H{_RIGHT}"], []
    for value, text in y.ticks:
        lines.append(f"M{_LEFT},{_text(up(value))}H{_RIGHT}")
        texts.append(
            f'<text x="{_LEFT - 6}" y="{_text(up(value) + 4)}" text-anchor="end">{text}</text>'
        )
    taken = -1000.0
    for value, text in x.ticks:
        at, half = across(value), 3.6 * len(text)
        lines.append(f"M{_text(at)},{_BOTTOM}v5")
        if at - half < taken:
            continue
        taken = at + half
        middle = min(max(at, half), WIDTH - half)
        texts.append(
            f'<text x="{_text(middle)}" y="{_BOTTOM + 19}" text-anchor="middle">{text}</text>'
        )
    texts.append(
        f'<text x="{(_LEFT + _RIGHT) / 2:g}" y="{_BOTTOM + 40}" text-anchor="middle">'
        f"{escape(x.label)}</text>"
    )
    return f'<path class="grid" d="{"".join(lines)}"/>{"".join(texts)}'


def _path(chart: Lines, across: Place, up: Place, values: Values) -> str:
    """Return the line through values; it goes on over those that are missing between points."""
    found: list[str] = []
    there = False
    if not chart.steps:
        for x, value in zip(chart.xs, values, strict=True):
            if value is not None:
                found.append(f"{'L' if found else 'M'}{_text(across(x))},{_text(up(value))}")
        return "".join(found)
    for (begin, end), value in zip(pairwise(chart.xs), values, strict=True):
        if value is None:
            there = False
            continue
        joins = f"V{_text(up(value))}" if there else f"M{_text(across(begin))},{_text(up(value))}"
        found.append(f"{joins}H{_text(across(end))}")
        there = True
    return "".join(found)


def _area(chart: Lines, across: Place, up: Place, low: Values, high: Values, name: str) -> str:
    """Return the area between two lines, in parts where values are missing."""
    parts: list[str] = []
    run: list[tuple[float, float, float]] = []

    def close() -> None:
        if run:
            upper = "".join(
                f"{'L' if i else 'M'}{_text(x)},{_text(top)}" for i, (x, _, top) in enumerate(run)
            )
            lower = "".join(f"L{_text(x)},{_text(bottom)}" for x, bottom, _ in reversed(run))
            parts.append(f"{upper}{lower}Z")
            run.clear()

    ends = list(pairwise(chart.xs)) if chart.steps else [(own,) for own in chart.xs]
    for xs, bottom, top in zip(ends, low, high, strict=True):
        if bottom is None or top is None:
            close()
            continue
        run.extend((across(x), up(bottom), up(top)) for x in xs)
    close()
    return f'<path class="{name}" d="{"".join(parts)}"/>'


def _dots(chart: Lines, across: Place, up: Place, values: Values, look: int) -> str:
    return "".join(
        marker(look, across(x), up(value))
        for x, value in zip(chart.xs, values, strict=True)
        if value is not None
    )


def marker(look: int, x: float, y: float) -> str:
    """Return the marker of a look, whose line and marker together no other look has."""
    form = _MARKERS[(look + look // len(_MARKERS)) % len(_MARKERS)]
    return form.format(x=_text(x), y=_text(y))


def _bars(chart: Bars) -> Drawing:
    every = [*chart.series, *chart.marks]
    sums = (
        [sum(own.values[i] or 0.0 for own in chart.series) for i in range(len(chart.names))]
        if chart.stacked
        else []
    )
    highest = max([*sums, *(v for own in every for v in own.values if v is not None)], default=1.0)
    axis = numbers(0.0, highest or 1.0, chart.x)
    across = axis.place(8, _RIGHT)
    thick = _BAR if chart.stacked else _BAR * len(chart.series)
    each = _NAME + thick + 8
    bottom = 4 + each * len(chart.names)
    lines = [f"M{_text(across(value))},4V{bottom}" for value, _ in axis.ticks]
    texts = [
        f'<text x="{_text(min(max(across(value), 3.6 * len(text)), WIDTH - 3.6 * len(text)))}" '
        f'y="{bottom + 17}" text-anchor="middle">{text}</text>'
        for value, text in axis.ticks
    ]
    texts.append(
        f'<text x="{WIDTH / 2:g}" y="{bottom + 38}" text-anchor="middle">{escape(chart.x)}</text>'
    )
    tops = [4 + each * i for i in range(len(chart.names))]
    for top, name in zip(tops, chart.names, strict=True):
        cut = escape(shortened(visible(name), 56))
        texts.append(f'<text class="name" x="8" y="{top + 14}">{cut}</text>')
    parts = [f'<path class="grid" d="{"".join(lines)}"/>{"".join(texts)}']
    begin = [0.0] * len(chart.names)
    for at, own in enumerate(chart.series):
        inside = []
        for i, value in enumerate(own.values):
            top = tops[i] + _NAME + (0 if chart.stacked else _BAR * at)
            left, right = across(begin[i]), across(begin[i] + (value or 0.0))
            inside.append(f"M{_text(left)},{top}H{_text(right)}v{_BAR - 2}H{_text(left)}Z")
            if chart.stacked:
                begin[i] += value or 0.0
        parts.append(_group(at, own, f'<path class="fill" d="{"".join(inside)}"/>'))
    for own in chart.marks:
        ticks = [
            f"M{_text(across(value))},{top + _NAME - _BESIDE}v{thick + 2 * _BESIDE - 2}"
            for top, value in zip(tops, own.values, strict=True)
            if value is not None
        ]
        parts.append(f'<path class="tick" d="{"".join(ticks)}"/>')
    parts.append(f'<rect class="cursor" x="2" y="0" width="{WIDTH - 4}" height="{each}"/>')
    data = {
        "kind": "bars",
        "at": [*tops, bottom],
        "labels": [*map(visible, chart.names)],
        "series": [_read(own) for own in every],
    }
    return Drawing(_svg(chart, bottom + 46, parts), data, _looks(chart.series))


def _group(at: int, own: Series, inside: str) -> str:
    off = "" if own.shown else " off"
    return f'<g class="s s{at % LOOKS}{off}" data-s="{at}">{inside}</g>'


def _svg(chart: Chart, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {height:g}" role="img" tabindex="0" '
        f'aria-label="{escape(chart.title)}">{"".join(parts)}</svg>'
    )


def _read(own: Series) -> dict[str, Any]:
    """Return what is read out of a series."""
    found: dict[str, Any] = {"name": visible(own.name), "values": _rounded(own.values)}
    if own.low and own.high:
        found |= {"low": _rounded(own.low), "high": _rounded(own.high)}
    return found


def _rounded(values: Values) -> list[float | None]:
    return [own if own is None or isinstance(own, int) else float(f"{own:.9g}") for own in values]


def _looks(series: Sequence[Series]) -> list[tuple[str, bool]]:
    return [(own.name, own.shown) for own in series]


def _text(value: float) -> str:
    """Return a coordinate."""
    return f"{value:.1f}".removesuffix(".0")
