"""Streams of many types for multi-way joins, every way to join them, and what the oracle says."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import naive_multijoin as naive
import naive_vectors as vectors
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from options_given import line_of

from engine.commands import main

NAMES = ("a", "b", "c")
BASE = dt.datetime(2024, 3, 31, 0, 30)  # noqa: DTZ001 - a column without time zone
WINDOWS = (9, 6, 12)
Row = dict[str, Any]
Value = Callable[[Row], Any]


class Case(NamedTuple):
    """A predicate as users write it, and as the oracle has it.

    `value` gives a row's attribute for the oracle, None for a row that has none.
    """

    predicate: str
    value: Value
    meets: naive.Meets
    columns: Mapping[str, str] = {}


def rises(x: Any, y: Any) -> bool:
    """Tell whether the first attribute of the later stream is not much less; of theta."""
    return bool(x[0] < y[0] + 1.0)


def nearby(x: Any, y: Any) -> bool:
    """Tell whether two pairs of numbers are near by their sums; of theta."""
    return bool(abs(x[0] + x[1] - y[0] - y[1]) <= 1.0)


def plain(*columns: str) -> Value:
    """Return the value that is a cell, or a tuple of cells."""

    def value(row: Row) -> Any:
        cells = tuple(row[name] for name in columns)
        if any(cell is None or cell != cell for cell in cells):  # noqa: PLR0124 - NaN
            return None
        return cells if len(cells) > 1 else cells[0]

    return value


def floats(*columns: str) -> Value:
    """Return the value that is a tuple of numbers."""

    def value(row: Row) -> Any:
        cells = tuple(math.nan if row[name] is None else float(row[name]) for name in columns)
        return None if any(cell != cell for cell in cells) else cells  # noqa: PLR0124 - NaN

    return value


def vector(column: str) -> Value:
    """Return the value {item: weight} of sets and maps."""

    def value(row: Row) -> Any:
        cell = row[column]
        if cell is None:
            return None
        pairs = [item if isinstance(item, tuple) else (item, 1.0) for item in cell]
        good = {k: w for k, w in pairs if k is not None and w is not None and w == w}  # noqa: PLR0124
        return {k: float(w) for k, w in good.items()}

    return value


def dense(kind: str, *beside: str) -> Value:
    """Return the value that is a vector, behind the cells of the columns beside it, if any."""

    def value(row: Row) -> Any:
        found = vectors.vector_of(kind, row["f32"])
        keys = tuple(row[name] for name in beside)
        if found is None or None in keys:
            return None
        return (keys, found) if keys else found

    return value


EQUI = naive.equi()
CASES = {
    "int": Case("equi:k", plain("k"), EQUI),
    "mixed widths": Case("equi:k", plain("k"), EQUI, {"b.k": "small", "c.k": "unsigned"}),
    "int and decimal": Case("equi:k", plain("k"), EQUI, {"b.k": "money", "c.k": "wide"}),
    "text": Case("equi:word", plain("word"), EQUI, {"b.word": "coded"}),
    "bytes": Case("equi:bits", plain("bits"), EQUI),
    "boolean": Case("equi:yes,k", plain("yes", "k"), EQUI),
    "date": Case("equi:day", plain("day"), EQUI),
    "timestamp": Case("equi:moment", plain("moment"), EQUI, {"b.moment": "second"}),
    "zoned": Case("equi:zoned", plain("zoned"), EQUI),
    "decimal": Case("equi:money", plain("money"), EQUI, {"c.money": "wide"}),
    "several": Case("equi:word,k", plain("word", "k"), EQUI, {"b.word": "coded"}),
    "band": Case("band:v:0.5", plain("v"), naive.band(0.5)),
    "band of ints": Case("band:k:1", plain("k"), naive.band(1.0), {"b.k": "money"}),
    "distance": Case("distance:x,y:1.5", floats("x", "y"), naive.distance(1.5)),
    "distance of one": Case("distance:v:1", floats("v"), naive.distance(1.0)),
    "sets": Case("inner:tags:2", vector("tags"), naive.inner(2.0)),
    "weights": Case("inner:vec:1.5", vector("vec"), naive.inner(1.5)),
    "large lists": Case("inner:ids:2", vector("ids"), naive.inner(2.0), {"b.ids": "ids8"}),
    "dictionaries": Case("inner:tags:1", vector("tags"), naive.inner(1.0), {"c.tags": "terms"}),
    "sets and weights": Case("inner:tags:1", vector("tags"), naive.inner(1.0), {"b.tags": "vec"}),
    "cosine": Case("cosine:f32:0.7", dense("cosine"), vectors.meets("cosine", 0.7)),
    "cosine of lists": Case(
        "cosine:f32:0.7",
        dense("cosine"),
        vectors.meets("cosine", 0.7),
        {"b.f32": "f16", "c.f32": "f64"},
    ),
    "dense": Case("inner:f32:1", dense("inner"), vectors.meets("inner", 1.0), {"a.f32": "f64"}),
    "distance of vectors": Case(
        "distance:f32:2", dense("distance"), vectors.meets("distance", 2.0), {"c.f32": "f16"}
    ),
    "equi and cosine": Case(
        "equi:word,yes,cosine:f32:0.1",
        dense("cosine", "word", "yes"),
        vectors.keyed(vectors.meets("cosine", 0.1)),
        {"b.word": "coded"},
    ),
    "theta": Case("theta:rises:v", floats("v"), rises),
    "theta of a module": Case("theta:multijoin_cases:nearby:x,y", floats("x", "y"), nearby),
}


def drawn(seed: int, rows: int = 16, span: int = 40) -> pa.Table:
    """Return a stream out of order, with ties, nulls and NaN, and attributes of many types."""
    rng = np.random.default_rng([seed, 7])
    ts = rng.integers(0, span, rows).tolist()
    keys: list[Any] = [None if rng.random() < 0.06 else int(k) for k in rng.integers(0, 4, rows)]
    words = ("", "a", "αβ" * 8, "null")

    def by_key(make: Callable[[int], Any], kind: pa.DataType) -> pa.Array:
        return pa.array([None if k is None else make(k) for k in keys], kind)

    def some(values: Sequence[Any]) -> list[Any]:
        return [values[int(i)] for i in rng.integers(0, len(values), rows)]

    def sets(items: Sequence[Any]) -> list[Any]:
        found: list[Any] = []
        for _ in range(rows):
            which = rng.choice(len(items), int(rng.integers(0, len(items) + 1)), replace=True)
            found.append(None if rng.random() < 0.1 else [items[int(i)] for i in which])
        return found

    terms = sets(("u", "v", "w", "z"))
    flat = pa.array([t for own in terms for t in own or ()], pa.string()).dictionary_encode()
    ends = np.cumsum([0, *(len(own or ()) for own in terms)]).tolist()
    starts = [None if own is None else at for own, at in zip(terms, ends[:-1], strict=True)]
    maps = [
        None
        if own is None
        else [(t, w) for t, w in zip(dict.fromkeys(own), (0.5, 2.0, None), strict=False)]
        for own in sets(("u", "v", "w"))
    ]
    numbers = [0.0, 0.5, 1.0, 1.5, -0.5]
    own_rng = np.random.default_rng([seed, 8])
    flaws = own_rng.random(rows)
    dense_rows: list[Any] = [[float(x) for x in own] for own in own_rng.choice(numbers, (rows, 3))]
    for at, flaw in enumerate(flaws):
        if flaw < 0.1:
            dense_rows[at] = None
        elif flaw < 0.25:
            dense_rows[at][at % 3] = (None, math.nan, math.inf)[at % 3]
    quarters = [None, math.nan, *(q / 4 for q in range(8))]
    return pa.table({
        "t": pa.array(ts, pa.int64()),
        "at": pa.array([BASE + dt.timedelta(seconds=t) for t in ts], pa.timestamp("us")),
        "i": pa.array(some((0.0, 0.1, 0.25, 1.0, 7.0)), pa.float64()),
        "p": pa.array([f"{seed} {at}" for at in range(rows)]),
        "k": by_key(int, pa.int64()),
        "small": by_key(int, pa.int8()),
        "unsigned": by_key(int, pa.uint64()),
        "word": by_key(lambda k: words[k], pa.string()),
        "coded": by_key(lambda k: words[k], pa.large_string()).dictionary_encode(),
        "bits": by_key(lambda k: bytes([k] * k), pa.binary()),
        "yes": by_key(lambda k: k < 2, pa.bool_()),
        "day": by_key(lambda k: dt.date(1970, 1, 1) + dt.timedelta(k - 2), pa.date32()),
        "moment": by_key(lambda k: BASE + dt.timedelta(seconds=k), pa.timestamp("us")),
        "second": by_key(lambda k: BASE + dt.timedelta(seconds=k), pa.timestamp("s")),
        "zoned": by_key(lambda k: BASE.replace(tzinfo=dt.UTC) + dt.timedelta(days=k),
                        pa.timestamp("us", "UTC")),
        "money": by_key(Decimal, pa.decimal128(9, 2)),
        "wide": by_key(Decimal, pa.decimal128(30, 3)),
        "v": pa.array(some(quarters), pa.float64()),
        "x": pa.array(some(quarters), pa.float64()),
        "y": pa.array(some((0, 1, 2)), pa.int16()),
        "tags": pa.array(sets(("u", "v", "w")), pa.list_(pa.string())),
        "terms": pa.ListArray.from_arrays(pa.array([*starts, ends[-1]], pa.int32()), flat),
        "ids": pa.array(sets((1, 5, 9, None)), pa.large_list(pa.int64())),
        "ids8": pa.array(sets((1, 5, 9)), pa.list_(pa.int8())),
        "vec": pa.array(maps, pa.map_(pa.string(), pa.float64())),
        "f16": pa.array([own and [None if x is None else np.float16(x) for x in own]
                         for own in dense_rows], pa.list_(pa.float16(), 3)),
        "f32": pa.array(dense_rows, pa.list_(pa.float32(), 3)),
        "f64": pa.array(dense_rows, pa.large_list(pa.float64())),
    })  # fmt: skip


def streams(seed: int, rows: int = 16) -> dict[str, pa.Table]:
    """Return three streams."""
    return {name: drawn(3 * seed + at, rows) for at, name in enumerate(NAMES)}


def tuples(
    tables: Mapping[str, pa.Table], case: Case, importance: str | None = "i"
) -> list[list[naive.Tuple]]:
    """Return the streams as the oracle takes them."""
    found = []
    for name, table in tables.items():
        renamed = {
            own.partition(".")[2]: its
            for own, its in case.columns.items()
            if own.startswith(name + ".")
        }
        own_rows = []
        for at, row in enumerate(table.to_pylist()):
            seen = row | {column: row[its] for column, its in renamed.items()}
            value = case.value(seen)
            weight = 1.0 if importance is None else row[importance]
            if value is not None:
                own_rows.append(naive.Tuple(row["t"], at, value, weight))
        found.append(own_rows)
    return found


def expected(
    tables: Mapping[str, pa.Table], case: Case, graph: str = "clique", *,
    windows: Sequence[Any] = WINDOWS, importance: str | None = "i", **options: Any,
) -> list[naive.Output]:  # fmt: skip
    """Return the oracle's outputs; windows are ticks, or ("rows", C)."""
    given = [own if isinstance(own, tuple) else ("ticks", own) for own in windows]
    return naive.exact(tuples(tables, case, importance), given, case.meets, graph, **options)


def found(outputs: pa.Table, names: Sequence[str] = NAMES) -> list[naive.Output]:
    """Return outputs in the oracle's form and order."""
    rows = zip(*(outputs.column(f"{name}_row").to_pylist() for name in names), strict=True)
    rest = (outputs.column(name).to_pylist() for name in ("ts", "importance"))
    return sorted(zip(rows, *rest, strict=True), key=lambda output: (output[1], output[0]))


def write(folder: Path, tables: Mapping[str, pa.Table], **options: Any) -> Path:
    """Write the streams as archives."""
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet", **options)
    return folder


def per_stream(values: Sequence[Any], names: Sequence[str] = NAMES) -> str:
    """Return NAME=VALUE of every stream."""
    return ",".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


def words(folder: Path, case: Case = CASES["int"], **options: Any) -> list[str]:
    """Return the command line of a join of the archives in `folder`; None leaves an option out."""
    settled = {
        "engine": "local",
        "stream": [f"{name}={folder}/{name}.parquet" for name in NAMES],
        "predicate": case.predicate,
        "column": [f"{own}={its}" for own, its in case.columns.items()],
        "time": "t",
        "importance": "i",
        "window": per_stream(WINDOWS),
        "out": folder / "out",
        "report": folder / "report.json",
    } | options
    return line_of("multijoin", settled)


class Joined(NamedTuple):
    """What the command line has written."""

    outputs: pa.Table
    report: dict[str, Any]

    @property
    def rows(self) -> list[naive.Output]:
        """The outputs in the oracle's form."""
        return found(self.outputs)


def joined(folder: Path, case: Case = CASES["int"], **options: Any) -> Joined:
    """Join the archives in `folder` by the command line, each time to a folder of its own."""
    run = folder / f"run-{sum(1 for _ in folder.glob('run-*'))}"
    command = words(folder, case, **({"out": run / "out", "report": run / "report.json"} | options))
    assert main(command) == 0
    outputs = pq.read_table(run / "out") if options.get("out", run) is not None else pa.table({})
    return Joined(outputs, json.loads((run / "report.json").read_text()))


def without_runs(report: Mapping[str, Any]) -> Any:
    """Return a report without what differs from run to run, sums without their last digits."""
    own = ("seconds", "tuples_per_second", "out", "slices")
    kept = {name: value for name, value in report.items() if name not in own}
    return json.loads(json.dumps(kept), parse_float=lambda text: round(float(text), 9))
