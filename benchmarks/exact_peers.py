"""Exact window joins against DuckDB and Polars: workloads W1, W2 and W2z.

R and S have N tuples each, one an instant; keys are Zipf(1.0) in R and uniform in S, or Zipf in
both for W2z; pairs at most W ticks apart match. Peers run their plain query where that is
feasible, and every rewrite that buckets time: each tuple of one side is copied into the buckets
that its window overlaps, then the join is on (key, bucket). All use the same number of threads.
Answers are compared first; the fastest rewrites then run in turn with ours. Medians are printed.

    python benchmarks/exact_peers.py --workload W1,W2 --repeat 3 --json exact.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

THREADS = os.environ.setdefault("POLARS_MAX_THREADS", "2")  # read when Polars is imported

import duckdb  # noqa: E402
import numpy as np  # noqa: E402
import polars as pl  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from engine.exact import all_pairs, count_pairs  # noqa: E402
from engine.runtime.streams import StreamBatch  # noqa: E402

SIZES = {"W1": (10_000_000, 100_000, 100_000), "W2": (1_000_000, 2000, 2000)}
SIZES["W2z"] = SIZES["W2"]
SLOW = {
    ("polars plain", "W1"): "1e9 candidate pairs, about a minute",
    ("polars plain", "W2z"): "2e10 candidate pairs, many minutes",
}
Answer = tuple[int, float]


class Data(NamedTuple):
    """A workload in every engine's own form."""

    name: str
    window: int
    tables: tuple[pa.Table, pa.Table]
    batches: tuple[StreamBatch, StreamBatch]
    frames: tuple[pl.LazyFrame, pl.LazyFrame]
    base: duckdb.DuckDBPyConnection
    relations: tuple[str, str]


def zipf(rng: np.random.Generator, size: int, keys: int) -> np.ndarray:
    """Draw keys with P(k) proportional to 1 / (k + 1)."""
    upto = np.cumsum(1 / np.arange(1, keys + 1))
    return np.searchsorted(upto, rng.random(size) * upto[-1]).astype(np.int64)


def batch_of(table: pa.Table) -> StreamBatch:
    """Return a stream without copying what need not be copied."""
    ts, key, importance = (table[name].combine_chunks().to_numpy() for name in ("ts", "key", "imp"))
    return StreamBatch(ts, ts, key, importance.astype(np.float64))


def make(name: str, scale: float, folder: Path) -> Data:
    """Generate a workload, always the same for one name and scale."""
    size, keys, w = SIZES[name]
    size = int(size * scale)
    rng = np.random.default_rng(20240607)
    columns = (zipf(rng, size, keys), zipf(rng, size, keys) if name == "W2z"
               else rng.integers(0, keys, size))  # fmt: skip
    tables = []
    base = duckdb.connect(config={"threads": int(THREADS)})
    for side, key in zip("rs", columns, strict=True):
        table = pa.table({
            "ts": np.arange(size), "key": key, "imp": rng.random(size, dtype=np.float32),
            "row": np.arange(size, dtype=np.int32),
        })  # fmt: skip
        base.register("given", table)
        base.execute(f"CREATE TABLE {side} AS FROM given")
        base.unregister("given")
        pq.write_table(table, folder / f"{name}-{side}.parquet")
        tables.append(table)
    frames = tuple(pl.from_arrow(table).rechunk().lazy() for table in tables)
    return Data(name, w - 1, tuple(tables), tuple(map(batch_of, tables)), frames, base, ("r", "s"))


def from_parquet(data: Data, folder: Path) -> Data:
    """Return the workload with the peers reading Parquet in their query."""
    paths = [folder / f"{data.name}-{side}.parquet" for side in "rs"]
    return data._replace(
        frames=tuple(pl.scan_parquet(path) for path in paths),
        relations=tuple(f"read_parquet('{path}')" for path in paths),
    )


def duckdb_query(data: Data, what: str, copied: int | None, width: int) -> str:
    """Return SQL; `copied` is the side (0, 1) copied into buckets of `width`, None: plain."""
    w = data.window
    sides = list(data.relations)
    on = f"r.key = s.key AND s.ts BETWEEN r.ts - {w} AND r.ts + {w}"
    if copied is not None:
        one = f"SELECT *, ts // {width} AS b FROM {sides[copied]}"  # noqa: S608
        more = [
            f"SELECT *, ts // {width} + {n} AS b FROM {sides[copied]} "  # noqa: S608
            f"WHERE (ts + {2 * w}) // {width} >= ts // {width} + {n}"
            for n in range(1, 2 * w // width + 2)
        ]
        sides[copied] = "(" + " UNION ALL ".join([one, *more]) + ")"
        sides[1 - copied] = f"(SELECT *, (ts + {w}) // {width} AS b FROM {sides[1 - copied]})"  # noqa: S608
        on += " AND r.b = s.b"
    select = "r.row AS l, s.row AS r" if what == "pairs" else (
        "count(*), sum(least(r.imp, s.imp)::DOUBLE)")  # fmt: skip
    return f"SELECT {select} FROM {sides[0]} r JOIN {sides[1]} s ON {on}"  # noqa: S608


def run_duckdb(data: Data, what: str, copied: int | None, width: int) -> Any:  # noqa: ANN401
    """Run one of DuckDB's queries; pairs come as an Arrow table."""
    answer = data.base.sql(duckdb_query(data, what, copied, width))
    return answer.to_arrow_table() if what == "pairs" else answer.fetchall()[0]


def run_polars(data: Data, what: str, copied: int | None, width: int, engine: str) -> Any:  # noqa: ANN401
    """Run one of Polars' queries; key and bucket are packed into one integer, which is faster."""
    w = data.window
    ts, buckets = pl.col("ts"), 1 << 24
    columns = ["ts", "key", "row"] if what == "pairs" else ["ts", "key", "imp"]
    sides = [frame.select(columns) for frame in data.frames]
    if copied is not None:
        packed = (pl.col("key") * buckets).alias("key")
        low = ts // width
        parts = [sides[copied].with_columns(packed + low)]
        for n in range(1, 2 * w // width + 2):
            met = sides[copied].filter((ts + 2 * w) // width >= low + n)
            parts.append(met.with_columns(packed + low + n))
        sides[copied] = pl.concat(parts)
        sides[1 - copied] = sides[1 - copied].with_columns(packed + (ts + w) // width)
    joined = sides[0].join(sides[1], on="key").filter(
        (ts - pl.col("ts_right")).is_between(-w, w))  # fmt: skip
    if what == "pairs":
        return joined.select("row", "row_right").collect(engine=engine)
    least = pl.min_horizontal("imp", "imp_right").cast(pl.Float64).sum()
    return joined.select(pl.len(), least).collect(engine=engine).row(0)


def run_ours(data: Data, what: str, folder: Path | None) -> Any:  # noqa: ANN401
    """Run winnow, from arrays or from Parquet."""
    batches = data.batches
    if folder is not None:
        batches = tuple(
            batch_of(pq.read_table(folder / f"{data.name}-{side}.parquet",
                                   columns=["ts", "key", "imp"]))
            for side in "rs"
        )  # fmt: skip
    arguments = (*batches, data.window, data.window)
    if what == "pairs":
        return all_pairs(*arguments, threads=int(THREADS), dtype=np.int32)
    return tuple(count_pairs(*arguments, threads=int(THREADS)))


def contenders(data: Data, what: str) -> dict[str, Callable[[], Any]]:
    """Return the peers' queries by name."""
    found: dict[str, Callable[[], Any]] = {}
    if what != "parquet":
        found["duckdb plain"] = lambda: run_duckdb(data, what, None, 0)
        if what == "count":
            found["polars plain"] = lambda: run_polars(data, what, None, 0, "streaming")
    for side in (0, 1):
        for width in (data.window + 1, 2 * data.window + 1):
            note = f"copies {'RS'[side]}, width {width}"
            found[f"duckdb {note}"] = lambda s=side, w=width: run_duckdb(data, what, s, w)
            for engine in ("in-memory", "streaming"):
                found[f"polars {engine} {note}"] = (
                    lambda s=side, w=width, e=engine: run_polars(data, what, s, w, e)
                )  # fmt: skip
    return found


def summary(result: Any) -> Answer:  # noqa: ANN401
    """Return (outputs, a sum to compare): importance, or left - 3 * right positions of pairs."""
    if isinstance(result, list):
        left, right = (sum(c[i].sum(dtype=np.float64) for c in result) for i in (0, 1))
        return sum(len(chunk[0]) for chunk in result), float(left + 3 * right)
    if isinstance(result, pl.DataFrame):
        result = tuple(result[name].to_numpy() for name in result.columns)
    elif isinstance(result, pa.Table):
        result = tuple(result[name].to_numpy() for name in ("l", "r"))
    if isinstance(result[0], np.ndarray):
        left, right = (column.sum(dtype=np.float64) for column in result)
        return len(result[0]), float(left + 3 * right)
    return int(result[0]), float(result[1])


def clock(run: Callable[[], Any]) -> tuple[float, Answer]:
    """Return (seconds, answer)."""
    begin = time.perf_counter()
    result = run()
    seconds = time.perf_counter() - begin
    return seconds, summary(result)


def measure(data: Data, what: str, repeat: int, folder: Path | None) -> list[dict[str, Any]]:
    """Check that all agree, then time ours and the fastest three of each peer in turn."""
    kind = "count" if what == "parquet" else what
    runs = {"winnow": lambda: run_ours(data, kind, folder)}
    _, expected = clock(runs["winnow"])
    first: dict[str, float] = {}
    for name, run in contenders(data, what if what != "parquet" else "count").items():
        plain = name.endswith("plain")
        if plain and folder is not None:
            continue
        if reason := SLOW.get((name, data.name)):
            print(f"  {name} skipped: {reason}")
            continue
        first[name], answer = clock(run)
        runs[name] = run
        if answer[0] != expected[0] or abs(answer[1] - expected[1]) > 1e-9 * abs(expected[1]):
            sys.exit(f"{name} on {data.name} {what}: {answer}, but winnow: {expected}")
    timed = ["winnow"]
    for peer in ("duckdb", "polars"):
        timed += sorted((n for n in first if n.startswith(peer) and not n.endswith("plain")),
                        key=first.__getitem__)[:3]  # fmt: skip
    seconds: dict[str, list[float]] = {name: [] for name in timed}
    for _ in range(repeat):
        for name in timed:
            seconds[name].append(clock(runs[name])[0])
    seconds |= {name: [first[name]] for name in first if name not in seconds}
    size = 2 * data.tables[0].num_rows
    rows = [
        {"workload": data.name, "what": what, "who": name, "seconds": statistics.median(times),
         "runs": times, "tuples_per_s": size / statistics.median(times), "outputs": expected[0]}
        for name, times in seconds.items()
    ]  # fmt: skip
    report(rows)
    return rows


def report(rows: list[dict[str, Any]]) -> None:
    """Print one table, and ours against the fastest peer and DuckDB's plain SQL."""
    ours = rows[0]["seconds"]
    print(f"\n{rows[0]['workload']} {rows[0]['what']}: {rows[0]['outputs']} outputs; "
          f"load {os.getloadavg()[0]:.2f}")  # fmt: skip
    for row in sorted(rows, key=lambda row: row["seconds"]):
        print(f"  {row['who']:44} {row['seconds']:9.4f} s {row['tuples_per_s'] / 1e6:8.2f} M/s "
              f"{row['seconds'] / ours:8.2f} x")  # fmt: skip
    peer = min(rows[1:], key=lambda row: row["seconds"])
    print(f"  -> {peer['seconds'] / ours:.2f} times the fastest peer ({peer['who']})", flush=True)


def main() -> None:
    """Parse options, run, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workload", default="W1,W2")
    parser.add_argument("--what", default="count,pairs,parquet")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in options.workload.split(","):
            data = make(name, options.scale, folder)
            for what in options.what.split(","):
                if what == "parquet":
                    rows += measure(from_parquet(data, folder), what, options.repeat, folder)
                else:
                    rows += measure(data, what, options.repeat, None)
    if options.json:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True,  # noqa: S607
                                check=False).stdout.strip()  # fmt: skip
        about = {"commit": commit, "python": platform.python_version(), "threads": int(THREADS),
                 "duckdb": duckdb.__version__, "polars": pl.__version__,
                 "cpus": os.cpu_count(), "load": os.getloadavg()}  # fmt: skip
        options.json.write_text(json.dumps({"about": about, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
