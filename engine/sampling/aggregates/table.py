"""Aggregates as a person reads them on a terminal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from engine.sampling.aggregates.spec import AggregateSpec

MOST_ROWS = 20
_CODES = {"s": "s", "ms": "ms", "us": "us", "ns": "ns", "day": "D"}


def print_aggregate(
    spec: AggregateSpec,
    found: pa.Table,
    confidence: float,
    console: Console | None = None,
    *,
    most: int = MOST_ROWS,
) -> None:
    """Print an aggregate's first rows.

    Parameters
    ----------
    spec : AggregateSpec
        Resolved.
    found : pyarrow.Table
        From `engine.sampling.aggregates.estimate.combine`.
    confidence : float
        Of its intervals.
    most : int
        Rows to print.

    Examples
    --------
    >>> from engine.sampling.aggregates.spec import parse_aggregate
    >>> spec = parse_aggregate("count(*)").resolve("tick", pa.schema([]), pa.schema([]))
    >>> found = pa.table({"window_begin": [None], "window_end": [None], "estimate": [120.0],
    ...                   "low": [96.5], "high": [151.0], "rows": [12], "clusters": [9]})
    >>> print_aggregate(spec, found, 0.95, Console(width=60))  # doctest: +NORMALIZE_WHITESPACE
    count(*)
    ┏━━━━━━━━━━┳━━━━━━━━━━━━━━━┳━━━━━━┳━━━━━━━━━━┓
    ┃ estimate ┃ 95 % interval ┃ rows ┃ clusters ┃
    ┡━━━━━━━━━━╇━━━━━━━━━━━━━━━╇━━━━━━╇━━━━━━━━━━┩
    │      120 │   96.5 to 151 │   12 │        9 │
    └──────────┴───────────────┴──────┴──────────┘
    """
    groups = [column.name for column in spec.by]
    windows = ["window"] if spec.windows.every else []
    table = Table(title=spec.text, title_justify="left")
    for name in (*windows, *groups):
        table.add_column(name, overflow="fold")
    exact = "exact" in found.column_names
    interval = f"{100 * confidence:g} % interval"
    for name in ("estimate", interval, "rows", "clusters", *(["exact"] if exact else [])):
        table.add_column(name, justify="right", overflow="fold")
    for row in found.slice(0, most).to_pylist():
        cells = [_window(row, spec.unit)] if windows else []
        cells += ["null" if row[name] is None else str(row[name]) for name in groups]
        cells += [_number(row["estimate"]), _interval(row)]
        cells += [f"{row['rows']:,}", f"{row['clusters']:,}"]
        table.add_row(*cells, *([_number(row["exact"])] if exact else []))
    console = console or Console()
    console.print(table)
    if found.num_rows > most:
        console.print(f"{found.num_rows - most:,} more rows")


def _number(value: float | None) -> str:
    """Return a number with six digits that count."""
    if value is None:
        return "none"
    return f"{value:,.0f}" if abs(value) >= 1e5 else f"{value:.6g}"


def _interval(row: dict[str, Any]) -> str:
    if row["low"] is None:
        return "none"
    return f"{_number(row['low'])} to {_number(row['high'])}"


def _window(row: dict[str, Any], unit: str) -> str:
    return f"{moment(row['window_begin'], unit)} to {moment(row['window_end'], unit)}"


def moment(ticks: int, unit: str) -> str:
    """Return a point in time as people read it: ticks, or a date and time without a last :00.

    Examples
    --------
    >>> moment(40, "tick"), moment(86_400, "s"), moment(90_000_500, "ms"), moment(3, "day")
    ('40', '1970-01-02 00:00', '1970-01-02 01:00:00.500', '1970-01-04')
    """
    if unit == "tick":
        return str(ticks)
    text = str(np.int64(ticks).astype(f"datetime64[{_CODES[unit]}]")).replace("T", " ")
    whole, _, part = text.partition(".")
    if part.strip("0"):
        return text
    return whole.removesuffix(":00") if whole.count(":") == 2 else whole
