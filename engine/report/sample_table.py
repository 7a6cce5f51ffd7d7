"""The report of a sample, and its aggregates, as a person reads them on a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.types as pt
from rich.console import Console
from rich.table import Table

from engine.report.charts import Bars, Chart, Lines, Series, clock_of, memory, over_time, time_label
from engine.report.envelope import Report, instant, spans
from engine.report.shown import Shown
from engine.report.tables import number, percent, print_end, rounded, table_of
from engine.runtime.columns import replaced
from engine.runtime.time_units import instant_text

FIRST = 10
"""Rows of an aggregate that are shown."""
_ALL = "--aggregates-out, or .aggregates in Python"
"""Where all rows of the aggregates are."""
_LARGE = 10_000
"""From here on numbers are shown without decimals."""


def print_sample(report: Report, aggregates: Mapping[str, pa.Table], console: Console) -> None:
    """Print what was estimated, from how much memory, and the first rows of each aggregate."""
    content = report.content
    console.print(_totals(content))
    console.print(_sides(content))
    if content["method"]["on_average"]:
        console.print(f"memory held on average; peak {_peaks(content)}")
    if not content["method"]["unbiased"]:
        console.print(
            f"estimates are right on average only if the streams are as the "
            f"{content['method']['count']} model has them; --count bound needs no model"
        )
    if content["method"]["size"] == "values":
        console.print(
            "sizes go by the values that are added up: sums and averages are estimated more "
            "precisely, numbers of outputs a little less"
        )
    if content["method"]["size"] == "weighted":
        console.print(
            "sizes are weighted by importance: sums of importance are estimated more precisely, "
            "numbers of outputs less"
        )
    print_aggregates(content, aggregates, console)
    speed = f"{content['tuples_per_second']:,.0f} tuples/s; seed {content['seed']}"
    print_end(console, content, speed)


def _title(content: dict[str, Any]) -> str:
    """Return what is sampled, and by which method."""
    method, sample = content["method"], content["sample"]
    own = [f"{name} {method[name]}" for name in ("size", "count") if method[name]]
    if method["profile"] is not None:
        own.append(f"profile {method['profile']}")
    said = f"{', '.join([method['name'], *own])}: {sample['rows']:,} outputs"
    if method["name"] == "uniform":
        return said
    return f"{said} of {sample['clusters']:,} stored tuples"


def _totals(content: dict[str, Any]) -> Table:
    interval = f"{100 * content['confidence']:g} % interval"
    rows = (
        (
            name,
            _number(own["exact"]),
            _number(own["estimate"]),
            _interval(own["low"], own["high"]),
            "" if own["relative_error"] is None else percent(own["relative_error"]),
        )
        for name, own in content["estimates"].items()
    )
    return table_of(("", "exact", "estimate", interval, "relative error"), rows, _title(content))


def _interval(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{_number(low)} to {_number(high)}"


def _sides(content: dict[str, Any]) -> Table:
    """Return what each side has and holds, without columns that its method knows nothing for."""
    memory, sides = content["memory"], list(content["rows"])
    expected, kept = memory["expected"], content["inclusion"]
    columns = {
        "": sides,
        "rows": [number(content["rows"][side]) for side in sides],
        "window": [spans(content)[side] for side in sides],
        "memory": ["" if memory[side] is None else number(memory[side]) for side in sides],
        "expected": ["" if expected[side] is None else f"{expected[side]:,.1f}" for side in sides],
        "mean": [f"{memory['mean'][side]:,.1f}" for side in sides],
        "peak": [number(content["peak_memory"][side]) for side in sides],
        "kept": ["" if kept[side] is None else percent(kept[side]) for side in sides],
    }
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    return table_of([*columns], zip(*columns.values(), strict=True))


def _peaks(content: dict[str, Any]) -> str:
    """Return the most tuples that each side held, and of how many, where that is known."""
    peaks, memory = content["peak_memory"], content["memory"]
    return ", ".join(
        f"{number(peaks[side])}"
        + ("" if memory[side] is None else f" of {number(memory[side])}")
        + f" ({side})"
        for side in peaks
    )


def _pane(content: dict[str, Any], line: Mapping[str, Any]) -> str:
    """Return a window of an aggregate: ticks to the last one, times until the next begins."""
    begin, end = line["window_begin"], line["window_end"]
    if content["window"]["tick"] == "tick":
        return f"{begin} to {end - 1}"
    return f"{instant(content, begin)} until {instant(content, end)}"


def groups_of(found: pa.Table) -> list[str]:
    """Return the columns of an aggregate's table that are groups: STREAM.COLUMN each."""
    return [name for name in found.column_names if "." in name]


def _with_moments(found: pa.Table, groups: Sequence[str]) -> pa.Table:
    """Return the table with times and dates as text: Python has no nanoseconds, nor year 0."""
    shown = {}
    for name in groups:
        kind, column = found.schema.field(name).type, found.column(name)
        if not (pt.is_timestamp(kind) or pt.is_date(kind)):
            continue
        unit, zone = (kind.unit, kind.tz) if pt.is_timestamp(kind) else ("day", None)
        whole = column.cast(pa.int64()) if unit != "day" else _days(column)
        texts = [
            None if one is None else instant_text(one, unit, zone) for one in whole.to_pylist()
        ]
        shown[found.column_names.index(name)] = pa.array(texts, pa.string())
    return replaced(found, shown)


def _days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.date32()).cast(pa.int32())


def print_aggregates(
    content: dict[str, Any], aggregates: Mapping[str, pa.Table], console: Console
) -> None:
    """Print the first rows of each aggregate, and where the others are."""
    for text, table in aggregates.items():
        console.print(_table(text, table, content))
        if table.num_rows > FIRST:
            console.print(f"the first {FIRST} of {table.num_rows:,} rows; all: {_ALL}")


def _table(text: str, found: pa.Table, content: dict[str, Any]) -> Table:
    """Draw the first rows: window, groups, estimate, interval and, where known, what is true."""
    groups = groups_of(found)
    windows = found.column("window_begin").null_count < found.num_rows
    exact = "covered" in found.column_names
    texts = [*(["window"] if windows else []), *groups]
    numbers = ("estimate", "interval", *(("exact", "covered") if exact else ()))
    table = table_of((*texts, *numbers), title=text, texts=range(len(texts)))
    for column in table.columns[: len(texts)]:
        column.overflow = "fold"
    for line in _with_moments(found.slice(0, FIRST), groups).to_pylist():
        cells = [_pane(content, line)] if windows else []
        cells += ["" if line[name] is None else str(line[name]) for name in groups]
        interval = _interval(line["low"], line["high"])
        cells += [_number(line["estimate"]), interval or f"none: {line['no_interval']}"]
        if exact:
            cells += [_number(line["exact"]), {True: "yes", False: "no"}.get(line["covered"], "")]
        table.add_row(*cells)
    return table


def _number(value: float | None) -> str:
    """Return a number of about five digits or more, of three if small; nothing where there is none.

    Examples
    --------
    >>> [_number(own) for own in (12345.6, 3, 1.5, 0.0, 0.05, -0.00289)]
    ['12,346', '3', '1.50', '0.00', '0.05', '-0.00289']
    """
    return "" if value is None else rounded(value, whole=abs(value) >= _LARGE)


def sample_shown(report: Report, aggregates: Mapping[str, pa.Table]) -> Shown:
    """Return what is shown of a sample."""
    printed = partial(print_sample, report, aggregates)
    drawn = partial(_plots, report.content, aggregates)
    return Shown("sample", report.content, printed, drawn)


def _plots(content: Mapping[str, Any], aggregates: Mapping[str, pa.Table]) -> list[Chart]:
    """Return the totals beside what is true, aggregates by window, and the memory."""
    charts: list[Chart] = []
    for name, own in content["estimates"].items():
        bars = Series(name, [own["exact"], own["estimate"]])
        ends = [Series("ends of the interval", [None, own[end]]) for end in ("low", "high")]
        marks = [one for one in ends if one.values[1] is not None]
        charts.append(Bars(f"Estimate of {name}", name, ["exact", "estimate"], [bars], marks=marks))
    charts += [
        chart for text, own in aggregates.items() for chart in _over_time(content, text, own)
    ]
    return [*charts, *memory(content)]


def _over_time(content: Mapping[str, Any], text: str, found: pa.Table) -> list[Chart]:
    """Return an aggregate by its windows, if it has such and no groups."""
    grouped = bool(groups_of(found))
    begins = found.column("window_begin")
    if grouped or found.num_rows < 2 or begins.null_count:
        return []
    columns = {name: found.column(name).to_pylist() for name in found.column_names}
    own = Series(text, columns["estimate"], columns["low"], columns["high"])
    exact = [Series("exact", columns["exact"])] if "exact" in columns else []
    begins, ends = columns["window_begin"], columns["window_end"]
    if begins[1:] == ends[:-1]:
        edges = [*begins, ends[-1]]
        return [over_time(content, text, "of each window", edges, [own, *exact])]
    labels = [_pane(dict(content), line) for line in found.to_pylist()]  # some have no outputs
    return [
        Lines(text, time_label(content), "of each window", begins, [own, *exact], labels,
              clock=clock_of(content))
    ]  # fmt: skip
