"""Small archives on disk, one way to run `winnow` on them, and what the oracle says of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import naive
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from options_given import line_of

from engine.archives.moments import in_ticks
from engine.archives.roles import Roles
from engine.commands import main
from engine.options.budget import parse_amounts
from engine.options.replay import JobOptions
from engine.runtime.executors import SerialExecutor

T = TypeVar("T")
R = TypeVar("R")
Rows = list[tuple[int, int | None, float]]
Output = tuple[int, int, int, float]
SPAN, WINDOW, MEMORY = 120, 9, 12
ROLES = Roles(("k",), "t", "i")
SMALL: dict[str, Any] = {"policy": "dgl", "memory": parse_amounts(str(MEMORY), None, None)}


def stream(seed: int, rows: int = 150, *, span: int = SPAN, keys: int = 5) -> Rows:
    """Return rows out of order, with ties, null keys and much-tied importances."""
    rng = np.random.default_rng(seed)
    skewed = np.minimum(rng.geometric(0.4, rows) - 1, keys - 1)
    return [
        (
            int(rng.integers(0, span)),
            None if rng.random() < 0.04 else int(key),
            float(rng.choice([0.0, 0.1, 0.25, 1.0, 2.0, 7.0])),
        )
        for key in skewed
    ]


def table(rows: Rows, **columns: Any) -> pa.Table:
    """Return the rows as an archive with columns t, k, i and others."""
    ts, keys, importances = zip(*rows, strict=True) if rows else ((), (), ())
    base = {
        "t": pa.array(ts, pa.int64()),
        "k": pa.array(keys, pa.int64()),
        "i": pa.array(importances, pa.float64()),
    }
    return pa.table(base | columns)


class Streams(NamedTuple):
    """Two streams, and the folder where their archives lie."""

    left: Rows
    right: Rows
    folder: Path


def streams(folder: Path, seed: int = 1, rows: int = 150, **shape: int) -> Streams:
    """Write two random archives with a payload column into `folder`; `shape` is `stream`'s."""
    sides = stream(2 * seed, rows, **shape), stream(2 * seed + 1, rows, **shape)
    for name, own in zip(("left", "right"), sides, strict=True):
        payload = pa.array([f"{name} {i}" for i in range(len(own))])
        pq.write_table(table(own, p=payload), folder / f"{name}.parquet")
    return Streams(*sides, folder)


def options_in(folder: Path) -> dict[str, Any]:
    """Return the options of a command in `folder`."""
    return {
        "engine": "local",
        "left": folder / "left.parquet",
        "right": folder / "right.parquet",
        "on": "k",
        "time": "t",
        "importance": "i",
        "window": WINDOW,
        "memory": MEMORY,
        "out": folder / "out",
        "report": folder / "report.json",
        "cache": folder / "cache",
    }


def arguments(folder: Path, **options: Any) -> list[str]:
    """Return the command line of a replay in `folder`; None leaves an option out."""
    policy = {"policy": None if options.get("plan") else "dgl"}
    return line_of("replay", options_in(folder) | policy | options)


class Result(NamedTuple):
    """What a replay wrote."""

    outputs: list[Output]
    table: pa.Table
    report: dict[str, Any]


def read(folder: Path) -> Result:
    """Read the dataset ``out``, its times in ticks, and the report in `folder`."""
    report = json.loads((folder / "report.json").read_text())
    dataset = in_ticks(pq.read_table(folder / "out"), "ts", report["window"]["tick"])
    return Result(outputs_of(dataset), dataset, report)


def outputs_of(dataset: pa.Table) -> list[Output]:
    """Return outputs in the oracle's order, their times in ticks."""
    columns = [dataset.column(name) for name in ("left_row", "right_row", "ts", "importance")]
    columns[2] = columns[2].cast(pa.int64())
    outputs = zip(*(column.to_pylist() for column in columns), strict=True)
    return sorted(outputs, key=lambda o: (o[2], o[0], o[1]))


def winnow(folder: Path, **options: Any) -> Result:
    """Replay with `options` and read what was written."""
    assert main(arguments(folder, **options)) == 0
    return read(folder)


def oracle(left: Rows, right: Rows, **settings: Any) -> list[Output]:
    """Return the outputs by the naive oracle; defaults as those of `arguments`."""
    settled = {
        "window_left": WINDOW,
        "window_right": WINDOW,
        "budget_left": MEMORY // 2,
        "budget_right": MEMORY // 2,
        "policy": "dgl",
    } | settings
    return [tuple(o) for o in naive.replay(left, right, **settled).outputs]


def peak(rows: Rows, window: int = WINDOW) -> int:
    """Return the most unexpired tuples at any time."""
    times = [ts for ts, key, _ in rows if key is not None]
    return max((sum(0 <= t - ts <= window for ts in times) for t in times), default=0)


def only(rows: Rows, chosen: set[int]) -> Rows:
    """Return the stream in which no row but `chosen` takes part, rows numbered as before."""
    return [(ts, key if i in chosen else None, imp) for i, (ts, key, imp) in enumerate(rows)]


def by_row(outputs: list[Output]) -> list[Output]:
    """Sort outputs as the oracle does."""
    return sorted(outputs, key=lambda o: (o[2], o[0], o[1]))


def job(folder: Path, **options: Any) -> JobOptions:
    """Return the options of a replay of the archives in a folder."""
    settled = {
        "left": str(folder / "left.parquet"),
        "right": str(folder / "right.parquet"),
        "left_roles": ROLES,
        "right_roles": ROLES,
        "window_left": str(WINDOW),
        "window_right": str(WINDOW),
        "cache": folder / "cache",
    }
    return JobOptions(**(settled | SMALL | options))


class Noting(SerialExecutor):
    """Notes which functions ran on how many items."""

    def __init__(self) -> None:
        self.ran: list[tuple[str, int]] = []

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Yield ``function(item)`` for every item, in order."""
        own = list(items)
        if own:
            self.ran.append((function.__name__, len(own)))
        return super().map(function, own)
