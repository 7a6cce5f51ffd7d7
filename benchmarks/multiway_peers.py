"""Exact multi-way window joins against DuckDB and Polars.

W3: three streams of lagged ramps (P4 6.2), 200 tuples a second each, 60 s, counting outputs whose
values are at most 1 apart. W4: two such streams, 5000 a second, 120 s, counted and produced as
pairs of rows. E3: three streams of one tuple an instant, keys Zipf(1.0) in the first and uniform
in the others, counted with the sum of the least importance. Windows are 20 s (W3, W4) and 20,000
instants (E3). Windows and bands are closed.

Peers run their plain query, their inequality joins, and every rewrite with buckets of value, of
time, or of both: one stream stays as it is and the others are copied into every bucket that holds
partners. All use the same number of threads. Pairs are read once and their row numbers summed;
storing 5 GB of them would measure the memory. Counts and sums are compared first; the fastest
rewrites then run in turn with ours; pairs are requested from those that counted fastest. Medians
are printed.

    python benchmarks/multiway_peers.py --workload W3,W4 --repeat 3 --json multiway.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

THREADS = os.environ.setdefault("POLARS_MAX_THREADS", "2")  # read when Polars is imported

import duckdb  # noqa: E402
import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
import pyarrow as pa  # noqa: E402

from engine.generate.lagged_gaussian import (  # noqa: E402
    LaggedGaussianSpec,
    lagged_gaussian_sources,
)
from engine.generate.source import in_memory  # noqa: E402
from engine.multiway.exact import ExactJoin  # noqa: E402
from engine.multiway.predicate import Predicate  # noqa: E402
from engine.multiway.streams import MultiStreams, no_attributes, windows_of  # noqa: E402

SECOND = 10**6
SPECS = {
    "W3": LaggedGaussianSpec(60, (200.0,), lags=(0, 5, 15), deviations=(2, 2, 50)),
    "W4": LaggedGaussianSpec(120, (5000.0,), lags=(0, 5), deviations=(2, 2)),
}
_TRIED = 3  # queries of a peer that were fastest at counting, tried for pairs
E3 = (2_000_000, 20_000, 20_000)  # instants, keys, window
SLOW = {
    ("duckdb plain", "W4"): "3.6e11 comparisons",
    ("duckdb ranges", "W4"): "8 s on an idle machine, three times its rewrites",
    ("polars in-memory join_where", "W4"): "25 s on an idle machine, ten times its rewrites",
    ("polars streaming join_where", "W4"): "25 s on an idle machine, ten times its rewrites",
    ("duckdb plain", "E3"): "1e9 candidate pairs",
    ("polars plain", "E3"): "1e9 candidate pairs",
}


class Data(NamedTuple):
    """A workload in every engine's own form.

    Attributes
    ----------
    reach : dict
        By column, how far apart partners can be.
    widths : list of dict
        Of buckets, by column: the rewrites.
    """

    name: str
    streams: MultiStreams
    predicate: Predicate
    reach: dict[str, float]
    widths: list[dict[str, float]]
    frames: list[pl.LazyFrame]
    base: duckdb.DuckDBPyConnection


def zipf(rng: np.random.Generator, size: int, keys: int) -> np.ndarray:
    """Draw keys with P(k) proportional to 1 / (k + 1)."""
    upto = np.cumsum(1 / np.arange(1, keys + 1))
    return np.searchsorted(upto, rng.random(size) * upto[-1]).astype(np.int64)


def columns_of(name: str, scale: float) -> list[dict[str, np.ndarray]]:
    """Generate a workload, always the same for one name and scale."""
    if name in SPECS:
        spec = SPECS[name]
        tables = in_memory(lagged_gaussian_sources(spec._replace(seconds=spec.seconds * scale)))
        return [{c: table[c].to_numpy() for c in ("ts", "value", "importance")} for table in tables]
    size, keys, _ = E3
    size = int(size * scale)
    rng = np.random.default_rng(20240607)
    every = [zipf(rng, size, keys), rng.integers(0, keys, size), rng.integers(0, keys, size)]
    return [
        {"ts": np.arange(size), "key": key, "importance": rng.random(size, dtype=np.float32)}
        for key in every
    ]


def make(name: str, scale: float) -> Data:
    """Generate a workload."""
    columns = columns_of(name, scale)
    base = duckdb.connect(config={"threads": int(THREADS)})
    frames = []
    for side, own in enumerate(columns):
        size = len(own["ts"])
        table = pa.table(own | {"row": np.arange(size, dtype=np.int32)})
        base.register("given", table)
        base.execute(f"CREATE TABLE s{side} AS FROM given")
        base.unregister("given")
        frames.append(pl.from_arrow(table).rechunk().lazy())
    joined = {c: np.concatenate([own[c] for own in columns]) for c in columns[0]}
    first = np.concatenate([[0], np.cumsum([len(own["ts"]) for own in columns])])
    attributes = no_attributes(int(first[-1]))
    if name == "E3":
        w = E3[2]
        attributes = attributes._replace(code=joined["key"])
        predicate, reach = Predicate("equi", ("key",)), {"ts": w}
        widths = [{"ts": w + 1}, {"ts": 2 * w + 1}]
    else:
        w = 20 * SECOND
        attributes = attributes._replace(value=joined["value"][:, None].copy())
        predicate, reach = Predicate("band", ("value",), 1.0), {"ts": w, "value": 1.0}
        times = [{}, {"ts": w + 1}, {"ts": 2 * w + 1}]
        widths = [{"value": v} | t for v, t in product((1.0, 2.0), times)]
    row = np.concatenate([np.arange(len(own["ts"])) for own in columns])
    streams = MultiStreams(first.astype(np.int64), joined["ts"], row,
                           joined["importance"].astype(np.float64), attributes)  # fmt: skip
    return Data(name, streams, predicate, reach, widths, frames, base)


def pairs_of(data: Data) -> list[tuple[int, int]]:
    """Return all pairs of streams."""
    sides = range(data.streams.number)
    return [(a, b) for a in sides for b in sides if a < b]


def bucketed_sql(data: Data, whole: int, widths: dict[str, float]) -> list[str]:
    """Return the streams with bucket columns; all but `whole` are copied."""
    found = []
    for side in range(data.streams.number):
        source = f"s{side}"
        for n, (column, width) in enumerate(widths.items()):
            reach = data.reach[column]
            if side == whole:
                source = f"(SELECT *, floor({column} / {width})::BIGINT AS b{n} FROM {source})"  # noqa: S608
                continue
            low, high = (f"floor(({column} {sign} {reach}) / {width})::BIGINT" for sign in "-+")
            copies = [
                f"SELECT *, {low} + {i} AS b{n} FROM {source} WHERE {high} >= {low} + {i}"  # noqa: S608
                for i in range(int(2 * reach // width) + 2)
            ]
            source = "(" + " UNION ALL ".join(copies) + ")"
        found.append(source)
    return found


def duckdb_query(data: Data, what: str, how: str, whole: int, widths: dict[str, float]) -> str:
    """Return SQL; `how` is plain, ranges (which DuckDB joins by IEJoin) or buckets."""
    buckets = how == "buckets"
    sources = bucketed_sql(data, whole, widths) if buckets else [
        f"s{side}" for side in range(data.streams.number)]  # fmt: skip
    query = f"{sources[0]} t0"
    for side in range(1, len(sources)):
        on = []
        for other in range(side):
            if "value" not in data.reach:
                on.append(f"t{other}.key = t{side}.key")
            for column, reach in data.reach.items():
                a, b = f"t{other}.{column}", f"t{side}.{column}"
                # one pair of inequalities for IEJoin: it is 60 times slower on those of time
                apart = how == "plain" or (column == "ts" and "value" in data.reach)
                on.append(f"abs({a} - {b}) <= {reach}" if apart else
                          f"{b} BETWEEN {a} - {reach} AND {a} + {reach}")  # fmt: skip
            on += [f"t{other}.b{n} = t{side}.b{n}" for n in range(len(widths))]
        query += f" JOIN {sources[side]} t{side} ON {' AND '.join(on)}"
    select = "count(*), sum(t0.row + 3 * t1.row::BIGINT)"
    if what == "count":
        worth = ", ".join(f"t{side}.importance" for side in range(len(sources)))
        select = "count(*)" if "value" in data.reach else f"count(*), sum(least({worth})::DOUBLE)"
    return f"SELECT {select} FROM {query}"  # noqa: S608


def run_duckdb(data: Data, what: str, how: str, whole: int, widths: dict[str, float]) -> Any:  # noqa: ANN401
    """Run one of DuckDB's queries."""
    return data.base.sql(duckdb_query(data, what, how, whole, widths)).fetchall()[0]


def wanted(data: Data, what: str) -> list[str]:
    """Return the columns that a query needs."""
    key = [] if "value" in data.reach else ["key"]
    worth = ["importance"] if what == "count" and key else []
    return [*data.reach, *key, *worth, *(["row"] if what == "pairs" else [])]


def near(data: Data, a: int, b: int) -> list[pl.Expr]:
    """Return the conditions on two streams' columns, which end in their numbers."""
    found = []
    for column, reach in data.reach.items():
        left, right = pl.col(f"{column}{a}"), pl.col(f"{column}{b}")
        found += [right >= left - reach, right <= left + reach]
    return found


def run_polars(
    data: Data, what: str, how: str, whole: int, widths: dict[str, float], engine: str
) -> Any:  # noqa: ANN401
    """Run one of Polars' queries: plain (join_where) or buckets, packed into one integer."""
    sides = []
    names = wanted(data, what)
    for side, frame in enumerate(data.frames):
        own = frame.select(pl.col(c).alias(f"{c}{side}") for c in names)
        key = pl.col(f"key{side}") if "key" in names else pl.lit(0, pl.Int64)
        own = own.with_columns(key.alias("packed")) if how == "buckets" else own
        for column, width in widths.items() if how == "buckets" else ():
            reach, value = data.reach[column], pl.col(f"{column}{side}")
            shifts = [0.0] if side == whole else [-reach, reach]
            low, *high = (((value + s) / width).floor().cast(pl.Int64) + 16 for s in shifts)
            packed = pl.col("packed") * (1 << 20)
            if not high:
                own = own.with_columns((packed + low).alias("packed"))
                continue
            own = pl.concat(
                own.filter(high[0] >= low + i).with_columns((packed + low + i).alias("packed"))
                for i in range(int(2 * reach // width) + 2)
            )
        sides.append(own)
    joined = sides[0]
    for side in range(1, len(sides)):
        met = [condition for other in range(side) for condition in near(data, other, side)]
        if how == "plain":
            joined = joined.join_where(sides[side], *met)
        else:
            joined = joined.join(sides[side], on="packed").filter(*met)
    if what == "pairs":
        left, right = (pl.col(f"row{side}").cast(pl.Int64).sum() for side in (0, 1))
        return joined.select(pl.len(), left + 3 * right).collect(engine=engine).row(0)
    if "value" in data.reach:
        return joined.select(pl.len()).collect(engine=engine).row(0)
    least = pl.min_horizontal(f"importance{side}" for side in range(len(sides)))
    return joined.select(pl.len(), least.cast(pl.Float64).sum()).collect(engine=engine).row(0)


def run_ours(data: Data, what: str) -> Any:  # noqa: ANN401
    """Run winnow."""
    window = int(data.reach["ts"])
    join = ExactJoin(data.streams, windows_of([window] * data.streams.number), data.predicate,
                     threads=int(THREADS))  # fmt: skip
    if what == "pairs":
        size, first, both = 0, int(data.streams.first[1]), [0, 0]
        for chunk in join.members():
            size += len(chunk)
            both = [both[side] + int(chunk[:, side].sum()) for side in (0, 1)]
        return size, both[0] + 3 * (both[1] - size * first)
    totals = join.count()
    return totals[:1] if "value" in data.reach else totals[:2]


def contenders(data: Data, what: str) -> dict[str, Callable[[], Any]]:
    """Return the peers' queries by name."""
    found: dict[str, Callable[[], Any]] = {}
    hows = ["plain", "ranges"] if what == "count" and "value" in data.reach else []
    for how in hows:
        found[f"duckdb {how}"] = lambda h=how: run_duckdb(data, what, h, 0, {})
    if "value" in data.reach and what == "count":
        for engine in ("in-memory", "streaming"):
            found[f"polars {engine} join_where"] = (
                lambda e=engine: run_polars(data, what, "plain", 0, {}, e)
            )  # fmt: skip
    wholes = range(data.streams.number if data.name != "W4" else 1)  # its streams are alike
    for whole, widths in product(wholes, data.widths):
        note = f"whole {whole}, " + ", ".join(f"{c} by {w:g}" for c, w in widths.items())
        found[f"duckdb buckets, {note}"] = (
            lambda s=whole, w=widths: run_duckdb(data, what, "buckets", s, w)
        )  # fmt: skip
        # 1e9 candidate pairs of W4 do not fit the memory of the machine
        for engine in ("streaming",) if data.name == "W4" else ("in-memory", "streaming"):
            found[f"polars {engine} buckets, {note}"] = (
                lambda s=whole, w=widths, e=engine: run_polars(data, what, "buckets", s, w, e)
            )  # fmt: skip
    return found


def summary(result: Any) -> tuple[int, float]:  # noqa: ANN401
    """Return (outputs, a sum to compare): importance, or left + 3 * right rows of pairs."""
    return int(result[0]), float(result[1]) if len(result) > 1 else 0.0


def clock(run: Callable[[], Any]) -> tuple[float, float, tuple[int, float]]:
    """Return (seconds, seconds of processors, answer)."""
    begin, work = time.perf_counter(), time.process_time()
    result = run()
    seconds, work = time.perf_counter() - begin, time.process_time() - work
    return seconds, work, summary(result)


def fastest(rows: dict[str, float], number: int) -> list[str]:
    """Return the names of the fastest queries of each peer."""
    found = []
    for peer in ("duckdb", "polars"):
        found += sorted((n for n in rows if n.startswith(peer)), key=rows.__getitem__)[:number]
    return found


def measure(
    data: Data, what: str, repeat: int, best: int, tried: list[str] | None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Check that all agree, then time ours and the fastest of each peer in turn.

    Returns
    -------
    (rows of the table, names of the fastest queries)
    """
    runs = {"winnow": lambda: run_ours(data, what)}
    *_, expected = clock(runs["winnow"])
    first: dict[str, float] = {}
    works: dict[str, float] = {}
    for name, run in contenders(data, what).items():
        if reason := SLOW.get((name, data.name)):
            print(f"  {name} skipped: {reason}")
            continue
        if tried is not None and name not in tried:
            continue
        first[name], works[name], answer = clock(run)
        runs[name] = run
        print(f"  {name:60} {first[name]:9.4f} s", flush=True)
        if answer[0] != expected[0] or abs(answer[1] - expected[1]) > 1e-9 * abs(expected[1]):
            sys.exit(f"{name} on {data.name} {what}: {answer}, but winnow: {expected}")
    timed = ["winnow", *fastest(first, best)]
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(repeat):
        for name in timed:
            taken, works[name], _ = clock(runs[name])
            seconds[name].append(taken)
    seconds |= {name: [first[name]] for name in first if name not in seconds}
    size = data.streams.ts.size
    rows = [
        {"workload": data.name, "what": what, "who": name, "seconds": statistics.median(times),
         "runs": times, "processor_seconds": works[name], "outputs": expected[0],
         "tuples_per_s": size / statistics.median(times)}
        for name, times in seconds.items()
    ]  # fmt: skip
    report(rows)
    return rows, fastest(first, _TRIED)


def report(rows: list[dict[str, Any]]) -> None:
    """Print one table, and ours against the fastest peer."""
    ours = rows[0]["seconds"]
    print(f"\n{rows[0]['workload']} {rows[0]['what']}: {rows[0]['outputs']} outputs; "
          f"load {os.getloadavg()[0]:.2f}")  # fmt: skip
    print("| who | seconds | of processors | million tuples a second | times ours |")
    print("|---|---|---|---|---|")
    for row in sorted(rows, key=lambda row: row["seconds"]):
        print(f"| {row['who']} | {row['seconds']:.4f} | {row['processor_seconds']:.4f} | "
              f"{row['tuples_per_s'] / 1e6:.2f} | "
              f"{row['seconds'] / ours:.1f} |")  # fmt: skip
    peer = min(rows[1:], key=lambda row: row["seconds"])
    print(f"-> {peer['seconds'] / ours:.2f} times the fastest peer ({peer['who']})", flush=True)


def main() -> None:
    """Parse options, run, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", default="W3,W4,E3")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--best", type=int, default=2, help="rewrites of a peer timed in turn")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in options.workload.split(","):
        data = make(name, options.scale)
        tried: list[str] | None = None
        for what in ("count", "pairs") if name == "W4" else ("count",):
            more, tried = measure(data, what, options.repeat, options.best, tried)
            rows += more
    if options.json:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True,  # noqa: S607
                                check=False).stdout.strip()  # fmt: skip
        about = {"commit": commit, "python": platform.python_version(), "threads": int(THREADS),
                 "duckdb": duckdb.__version__, "polars": pl.__version__,
                 "cpus": os.cpu_count(), "load": os.getloadavg()}  # fmt: skip
        options.json.write_text(json.dumps({"about": about, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
