"""What is shown of a sweep: its tables, and each measure against memory by policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from engine.jobs.sweep.advice import by_window, choices_of
from engine.jobs.sweep.panels import Panels
from engine.jobs.sweep.plots import (
    MEASURES,
    WIDE,
    Measure,
    bests_of,
    curve_of,
    in_percent,
    ordered,
    unit_of,
)
from engine.jobs.sweep.rows import Row, rows_in
from engine.jobs.sweep.run import SweepResult
from engine.jobs.sweep.table import measures_asked, print_sweep
from engine.report.answers import Answer
from engine.report.charts import Chart, Lines, Series, Values
from engine.report.shown import Shown
from engine.report.tables import percent
from engine.runtime.time_units import span_text

FEW = 6
"""Policies that are drawn before the reader asks for more."""


def sweep_shown(result: SweepResult) -> Shown:
    """Return what is shown of a sweep."""
    printed, drawn = partial(print_sweep, result), partial(_charts, result)
    answers = [] if result.advice else list(_bests(result))
    return Shown("sweep", result.report, printed, drawn, answers=answers)


def _bests(result: SweepResult) -> Iterator[Answer]:
    """Yield the best setting in the least memory and in the most, of the first windows."""
    rows = rows_in(result.table)
    if not rows:
        return
    windows, mine = next(iter(by_window(rows).items()))
    choices = choices_of(mine)
    many = len(result.report["grid"]["windows"]) > 1
    where = f", window {span_text(windows[0], result.report['grid']['tick'])}" if many else ""
    sizes = {one.memory: one.tuples for one in choices}
    by_size = sorted(sizes, key=lambda memory: sizes[memory])
    for memory in dict.fromkeys((by_size[0], by_size[-1])):
        best = max((o for o in choices if o.memory == memory), key=lambda o: o.importance_recall)
        note = f"importance recall {percent(best.importance_recall)}, split {best.split}"
        yield Answer(f"Best in {memory}{where}", best.policy, note)


def _charts(result: SweepResult) -> list[Chart]:
    rows = rows_in(result.table)
    if not rows:
        return []
    panels, tick = Panels(rows), result.report["grid"]["tick"]
    alike = all(row.importance == row.outputs for row in rows)
    measures = [own for own in MEASURES if not (alike and own.name == "importance_recall")]
    asked = measures_asked(result)
    measures.sort(key=lambda own: own.name not in asked)
    policies = ordered(rows, measures[0])
    charts: list[Chart] = []
    for measure in measures:
        marks = [
            (f"target {100 * value:g} %", 100.0 * value)
            for value in dict.fromkeys(
                own.target.value for own in result.advice if own.target.measure == measure.name
            )
        ]
        for panel, mine in panels.rows.items():
            title = f"{measure.title}{panels.rest(tick)}"
            if panel:
                title = f"{measure.title}, {panels.title(panel, tick)}"
            charts.append(_chart(mine, measure, title, marks, policies))
    return charts


def _chart(
    rows: Sequence[Row],
    measure: Measure,
    title: str,
    marks: Sequence[tuple[str, float]],
    policies: Sequence[str],
) -> Chart:
    """Return a measure against memory; where seeds differ, with a band from least to greatest."""
    scale = 100.0 if measure.percent else 1.0
    percent = in_percent(rows)
    curves = {}
    for policy in policies:
        own = [row for row in rows if row.policy == policy]
        curves[policy] = {point.memory: point for point in curve_of(own, measure, percent=percent)}
    xs = sorted({memory for curve in curves.values() for memory in curve})
    series = []
    for place, (policy, curve) in enumerate(curves.items()):
        points = [curve.get(x) for x in xs]
        means, low, high = (
            [None if own is None else scale * float(own[at]) for own in points] for at in (1, 2, 3)
        )
        series.append(_banded(policy, means, low, high)._replace(shown=place < FEW))
    bests = bests_of(rows, percent=percent) if measure.name == "importance_recall" else {}
    for name, bounds in bests.items():
        lower, upper = ([bounds[x][at] if x in bounds else None for x in xs] for at in (0, 1))
        series.append(_banded(name, upper, lower, upper))
    wide = xs[0] > 0 and xs[-1] / xs[0] > WIDE
    return Lines(
        title, f"memory ({unit_of(rows)})", measure.label, xs, series,
        [f"{x:,g}{' %' if percent else ' tuples'}" for x in xs],
        percent=measure.percent, log_x=wide, marks=marks,
    )  # fmt: skip


def _banded(name: str, values: Values, low: Values, high: Values) -> Series:
    """Return a series with a band, if that is wider than the line."""
    return Series(name, values, low, high) if low != high else Series(name, values)
