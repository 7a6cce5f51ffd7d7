"""DuckDB: plain SQL, its inequality join, and joins on buckets of time and value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any

import duckdb

from peers.workloads import Workload

Answer = tuple[int, float]


def connected(work: Workload, threads: int) -> duckdb.DuckDBPyConnection:
    """Return a database that holds the streams as tables s0, s1, ..."""
    base = duckdb.connect(config={"threads": threads})
    for side, file in enumerate(work.files):
        base.execute(f"CREATE TABLE s{side} AS FROM read_parquet('{file}')")
    return base


def bucketed(
    work: Workload, sources: list[str], whole: int, widths: Mapping[str, float]
) -> list[str]:  # fmt: skip
    """Return streams with columns of buckets; all but `whole` are copied into those they reach."""
    found = []
    for side, stream in enumerate(sources):
        source = stream
        for n, (column, width) in enumerate(widths.items()):
            reach = work.reach[column]
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


def query(
    work: Workload, how: str, whole: int, widths: Mapping[str, float], *, pairs: bool, source: str
) -> str:
    """Return SQL; `how` is plain, ranges (which DuckDB joins by IEJoin) or buckets."""
    sources = [source.format(side=side, file=file) for side, file in enumerate(work.files)]
    if how == "buckets":
        sources = bucketed(work, sources, whole, widths)
    text = f"{sources[0]} t0"
    for side in range(1, len(sources)):
        on = []
        for other in range(side):
            if work.band is None:
                on.append(f"t{other}.key = t{side}.key")
            for column, reach in work.reach.items():
                a, b = f"t{other}.{column}", f"t{side}.{column}"
                # one pair of inequalities for IEJoin: it is 60 times slower on those of time
                apart = work.band is not None and (how == "plain" or column == "ts")
                on.append(f"abs({a} - {b}) <= {reach}" if apart else
                          f"{b} BETWEEN {a} - {reach} AND {a} + {reach}")  # fmt: skip
            if how == "buckets":
                on += [f"t{other}.b{n} = t{side}.b{n}" for n in range(len(widths))]
        text += f" JOIN {sources[side]} t{side} ON {' AND '.join(on)}"
    every = ", ".join(f"t{side}.importance" for side in range(len(sources)))
    valued = "" if work.band is not None else f", sum(least({every})::DOUBLE)"
    select = "sum(t0.row + 3 * t1.row)::DOUBLE" if pairs else ""
    return f"SELECT count(*){f', {select}' if pairs else valued} FROM {text}"  # noqa: S608


def queries(work: Workload, threads: int, what: str) -> dict[str, Callable[[], Answer]]:
    """Return ways to count a workload; `what` is count, pairs, or parquet (count from files)."""
    base = connected(work, threads) if what != "parquet" else duckdb.connect(
        config={"threads": threads})  # fmt: skip
    base.execute("SET enable_progress_bar = false")
    source = "read_parquet('{file}')" if what == "parquet" else "s{side}"

    def ask(how: str, whole: int, widths: Mapping[str, float]) -> Answer:
        text = query(work, how, whole, widths, pairs=what == "pairs", source=source)
        found: tuple[Any, ...] = base.sql(text).fetchall()[0]
        return int(found[0]), float(found[1] or 0.0) if len(found) > 1 else 0.0

    found: dict[str, Callable[[], Answer]] = {}
    if what == "count":
        found["plain"] = partial(ask, "plain", 0, {})
    if what == "count" and work.band is not None:
        found["inequality join"] = partial(ask, "ranges", 0, {})
    for whole, widths in product(range(len(work.files)), work.widths):
        note = ", ".join(f"{column} by {width:g}" for column, width in widths.items())
        found[f"buckets, {note}, stream {whole} whole"] = partial(ask, "buckets", whole, widths)
    return found
