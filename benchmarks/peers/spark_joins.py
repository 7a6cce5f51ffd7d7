"""Spark: SQL's interval join, plain and on buckets, and the join of two streams that it reads.

The session runs in the worker's own JVM. The stream-stream join reads the same Parquet files, cut
into parts in order of time, with `availableNow`, a part of each stream a batch. A tick is told to
Spark as a millisecond, the unit of its watermarks.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from peers.workloads import Workload

PLAIN = 1e10
"""Candidates beyond which the plain join is left out: it takes minutes, then hours."""
BATCHES = 4
DAY = 86_400_000
"""By which streams are later: a tuple at 0, where watermarks begin, would be late."""
Answer = tuple[int, float]


def session(threads: int, home: Path) -> Any:  # noqa: ANN401 - pyspark has no types here
    """Return a session on so many threads."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - other engines' workers need none

    os.environ.pop("PYSPARK_SUBMIT_ARGS", None)
    return (
        SparkSession.builder.master(f"local[{threads}]")
        .appName("winnow peers")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", str(4 * threads))
        .config("spark.sql.warehouse.dir", str(home / "warehouse"))
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )


def wanted(work: Workload, what: str) -> list[str]:
    """Return the columns that a query reads."""
    return [*work.columns, *(["row"] if what == "pairs" else [])]


def text_of(work: Workload, what: str, hint: str, widths: Mapping[str, float]) -> str:
    """Return SQL; with `widths` all streams but the first are copied into their buckets."""
    sources = []
    for side in range(len(work.files)):
        columns = wanted(work, what)
        for n, (column, width) in enumerate(widths.items()):
            reach = work.reach[column]
            low, high = (f"bigint(floor(({column} {sign} {reach}) / {width}))" for sign in "-+")
            own = f"bigint(floor({column} / {width}))"
            columns.append(f"{own} b{n}" if side == 0 else f"explode(sequence({low}, {high})) b{n}")
            if side and n:  # a generator a select
                columns.pop()
                inner = f"SELECT {', '.join(columns)} FROM s{side}"  # noqa: S608
                columns = ["*", f"explode(sequence({low}, {high})) b{n}"]
                sources.append(f"(SELECT {', '.join(columns)} FROM ({inner}))")  # noqa: S608
                break
        else:
            sources.append(f"(SELECT {', '.join(columns)} FROM s{side})")  # noqa: S608
    text = f"{sources[0]} t0"
    for side in range(1, len(sources)):
        on = []
        for other in range(side):
            if work.band is None:
                on.append(f"t{other}.key = t{side}.key")
            on += [f"t{other}.b{n} = t{side}.b{n}" for n in range(len(widths))]
            for column, reach in work.reach.items():
                a, b = f"t{other}.{column}", f"t{side}.{column}"
                on.append(f"{b} BETWEEN {a} - {reach} AND {a} + {reach}")
        text += f" JOIN {sources[side]} t{side} ON {' AND '.join(on)}"
    every = ", ".join(f"t{side}.importance" for side in range(len(sources)))
    valued = f", sum(double(least({every})))" if work.band is None else ""
    valued = ", double(sum(t0.row + 3 * t1.row))" if what == "pairs" else valued
    return f"SELECT {hint} count(*){valued} FROM {text}"  # noqa: S608


def streamed(spark: Any, work: Workload, home: Path) -> Answer:  # noqa: ANN401
    """Join the streams as Structured Streaming reads them, until there is nothing more."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as its users write it

    sides = []
    for side, name in enumerate("lr"):
        schema = spark.read.parquet(str(home / f"parts-{side}")).schema
        rows = (
            spark.readStream.schema(schema)
            .option("maxFilesPerTrigger", 1)
            .parquet(str(home / f"parts-{side}"))
        )
        rows = rows.select(
            F.timestamp_millis(F.col("ts") + DAY).alias("at"),
            "key",
            F.col("importance").alias("own"),
        )
        sides.append(rows.withWatermark("at", "1 second").alias(name))
    away = F.expr(f"interval {work.window} milliseconds")
    met = (F.col("l.key") == F.col("r.key")) & F.col("r.at").between(
        F.col("l.at") - away, F.col("l.at") + away
    )
    joined = sides[0].join(sides[1], met).select(F.least("l.own", "r.own").alias("own"))
    found = [0, 0.0]

    def take(batch: Any, _: int) -> None:  # noqa: ANN401
        outputs, worth = batch.agg(F.count("*"), F.sum(F.col("own").cast("double"))).first()
        found[0] += outputs
        found[1] += worth or 0.0

    place = tempfile.mkdtemp(prefix="checkpoint-", dir=home)
    try:
        query = (
            joined.writeStream.foreachBatch(take)
            .option("checkpointLocation", place)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return int(found[0]), float(found[1])


def cut(work: Workload, home: Path) -> None:
    """Write each stream as files that cover the same spans of time, in the order of their names."""
    tables = [pq.read_table(file) for file in work.files]
    end = max(int(table["ts"][-1].as_py()) for table in tables) + 1
    edges = [end * n // BATCHES for n in range(BATCHES + 1)]
    for side, table in enumerate(tables):
        folder = home / f"parts-{side}"
        folder.mkdir()
        ts = table["ts"].to_numpy()
        places = ts.searchsorted(edges)
        for n in range(BATCHES):
            part = table.slice(int(places[n]), int(places[n + 1] - places[n]))
            file = folder / f"{n:03}.parquet"
            pq.write_table(part, file)
            os.utime(file, (1_000_000_000 + n, 1_000_000_000 + n))  # the order in which they come


def sql(work: Workload, threads: int, what: str) -> dict[str, Callable[[], Answer]]:
    """Return SQL's ways to count a workload; streams are cached but where Parquet is asked for."""
    home = Path(tempfile.mkdtemp(prefix="spark-", dir=Path(work.files[0]).parent))
    spark = session(threads, home)
    for side, file in enumerate(work.files):
        rows = spark.read.parquet(file)
        if what != "parquet":
            rows = rows.select(wanted(work, what)).cache()
            rows.count()
        rows.createOrReplaceTempView(f"s{side}")

    def ask(text: str) -> Answer:
        row = spark.sql(text).first()
        return int(row[0]), float(row[1] or 0.0) if len(row) > 1 else 0.0

    found: dict[str, Callable[[], Answer]] = {}
    hints = {"sort-merge": "/*+ MERGE(t1) */", "hash": "/*+ SHUFFLE_HASH(t1) */"}
    if what == "count" and work.candidates <= PLAIN:
        for name, hint in hints.items() if work.band is None else [("nested loops", "")]:
            found[f"plain, {name}"] = partial(ask, text_of(work, what, hint, {}))
    widths = work.widths[-1:] if work.band is None else work.widths[1:2]
    for own in widths:
        note = ", ".join(f"{column} by {width:g}" for column, width in own.items())
        found[f"buckets, {note}"] = partial(ask, text_of(work, what, hints["hash"], own))
    return found


def streams(work: Workload, threads: int, what: str) -> dict[str, Callable[[], Answer]]:
    """Return the stream-stream join of a workload that it can be asked for."""
    if refused(work, what):
        return {}
    home = Path(tempfile.mkdtemp(prefix="spark-", dir=Path(work.files[0]).parent))
    cut(work, home)
    return {"availableNow": partial(streamed, session(threads, home), work, home)}


def refused(work: Workload, what: str) -> str:
    """Return why a workload is not joined as streams; nothing if it is."""
    if what != "count":
        return "only counts are asked for"
    if work.band is not None or len(work.files) > 2:
        return "a join of two streams needs equal keys, and there is none of three at once"
    return ""
