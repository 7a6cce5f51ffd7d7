"""What `winnow` does with Spark DataFrames, which stay in Spark: replays, look-ups, joins."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType
from rich.console import Console

from engine.api.result import Fields, Result
from engine.options.by_stream import COLUMN_BY_STREAM, by_stream
from engine.options.multijoin_options import Harvest
from engine.options.option import options_of
from engine.report.answers import Answer
from engine.report.charts import Chart, losses_over_time
from engine.report.envelope import time_bins, with_times
from engine.report.joins import lookup_charts
from engine.report.losses import in_a_line, in_figures, losses
from engine.report.shown import Shown
from engine.runtime.errors import SpecError
from spark_plugin import dataframe
from spark_plugin import lookup as lookups
from spark_plugin import multijoin as joins
from spark_plugin.accumulators import leave
from spark_plugin.naming import jobs_named
from spark_plugin.outcome import told
from spark_plugin.partitions import slots
from spark_plugin.rows import session_zone
from spark_plugin.versions import collected

_SECONDS = "cast(cast(ts as decimal(20)) / {} as decimal(18, 6))"
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_NO_ZONE = f"timestamp_ntz'1970-01-01' + make_dt_interval(0, 0, 0, {_SECONDS})"


_OF_MEMORY = {
    "memory", "memory_left", "memory_right", "policy", "params", "estimator", "split", "probe",
}  # fmt: skip
"""The options of a replay that an exact join has not."""
_OF_BUDGETS = {*_OF_MEMORY, *options_of(Harvest), "lanes"}
"""The same of a multi-way join."""


class InSpark(Result):
    """A query of Spark: `frame` is a DataFrame, computed when its rows are asked for.

    `report`, and `plot` and `html` of it, take a job of their own when they are asked for.
    """

    def __init__(
        self,
        frame: DataFrame,
        report: Callable[[], Mapping[str, Any]],
        drawn: Callable[[Mapping[str, Any]], Sequence[Chart]],
        task: str = "replay",
    ) -> None:
        super().__init__(pa.table({}), Shown(task, {}, self._print, lambda: drawn(self.report)))
        self._report = report
        self.frame = frame

    @cached_property
    def report(self) -> Fields:
        """What was found, and of a replay what was lost, in all and over time."""
        self._check_static()
        with told():
            return Fields(with_times(self._report()))

    @cached_property
    def _collected(self) -> pa.Table:
        self._check_static()
        with told():
            return collected(self.frame)

    @property
    def outputs(self) -> pa.Table:
        """The rows, collected on the driver."""
        return self._collected

    def html(self, path: str | os.PathLike[str]) -> Path:
        """Write the report as one HTML file, for which Spark counts it; see `Result.html`."""
        names = self.frame.columns
        rows = Answer(
            "Rows",
            "in Spark",
            f"{len(names)} columns; .frame computes them, .outputs collects them",
        )
        self._shown = self._shown._replace(content=self.report, answers=[rows])
        return super().html(path)

    def _print(self, console: Console) -> None:
        console.print(f"a query of Spark: {self.frame}", soft_wrap=True)
        console.print(
            "its rows stay in Spark: .frame is the DataFrame, .outputs collects its rows, .report "
            "has them counted",
            soft_wrap=True,
        )

    def _check_static(self) -> None:
        if self.frame.isStreaming:
            raise SpecError(
                "the result is a stream of Spark's, of which nothing is there before it is "
                "written: write .frame (.frame.writeStream)"
            )

    def _first(self, rows: int) -> pa.Table:
        frame = self.frame
        if frame.isStreaming:
            return pa.table({name: [] for name in frame.columns})
        with told():
            return collected(frame.limit(rows))


def replay(left: DataFrame, right: DataFrame, **options: Any) -> InSpark:  # noqa: ANN401 - checked there
    """Replay two DataFrames; see `spark_plugin.dataframe.replay`.

    The report has what a local one says of outputs, in all and over time. For it Spark counts the
    exact join, and the replay once more.
    """
    time = options.get("left_time") or options.get("time")
    found = dataframe.replay(left, right, **options)
    exact = {name: own for name, own in options.items() if name not in _OF_MEMORY}

    def report() -> dict[str, Any]:
        every = dataframe.replay(left, right, **(exact | {"columns": "ids"}))
        return {**_against(every, found), "window": _clock(left, time, options)}

    timed = _timed(found, left, time, options.get("time_unit"))
    return InSpark(timed, report, losses_over_time)


_UNITS = {TimestampType: "us", TimestampNTZType: "us", DateType: "day"}


def _clock(frame: DataFrame, time: Any, options: Mapping[str, Any]) -> dict[str, str | None]:  # noqa: ANN401 - checked
    """Return what a tick of a stream is, and the zone in which its session shows times."""
    kind = type(frame.schema[time].dataType) if time in frame.columns else None
    unit = _UNITS.get(kind) or options.get("time_unit") or "tick"
    return {"tick": unit, "zone": session_zone(frame) if kind is TimestampType else None}


class _Tally(NamedTuple):
    outputs: int
    importance: float
    by_bin: NDArray[np.int64]
    importance_by_bin: NDArray[np.float64]


def _against(exact: DataFrame, found: DataFrame) -> dict[str, Any]:
    """Return what a replay lost of its exact join, both counted in one job."""
    parts = [
        own.select("ts", "importance", F.lit(number).alias("of"))
        for number, own in enumerate((exact, found))
    ]
    counted = parts[0].unionAll(parts[1]).groupBy("of", "ts")
    sums = counted.agg(F.count("*").alias("n"), F.sum("importance").alias("v"))
    sums = sums.coalesce(slots(exact.sparkSession)).persist()  # which are read three times
    with ExitStack() as stack:
        stack.callback(sums.unpersist)
        stack.enter_context(jobs_named(exact.sparkSession, "winnow counts what was lost"))
        span: Any = sums.agg(F.min("ts"), F.max("ts")).first()
        first, last = (0, 0) if span is None or span[0] is None else span
        edges = time_bins(first, last)
        width = edges[1] - edges[0] if len(edges) > 1 else 1
        at = F.expr(f"(ts - ({edges[0]})) div {width}").alias("bin")  # quotients of floats round up
        binned = sums.groupBy("of", at).agg(F.sum("n"), F.sum("v")).collect()
    tallies = []
    for number in (0, 1):
        outputs, importance = np.zeros(len(edges), np.int64), np.zeros(len(edges))
        for of, place, n, value in binned:
            if of == number:
                outputs[place], importance[place] = n, value
        total = math.fsum(importance.tolist())
        tallies.append(_Tally(int(outputs.sum()), total, outputs, importance))
    lost = losses([(tallies[0], tallies[1])], edges, last)
    kept = {"outputs": tallies[1].outputs, "importance": tallies[1].importance}
    content = {"result": kept, **lost}
    leave(exact.sparkSession, in_a_line(content), in_figures(content))
    return content


def multijoin(streams: Mapping[str, DataFrame], **options: Any) -> InSpark:  # noqa: ANN401 - as above
    """Join several DataFrames; see `spark_plugin.multijoin.multijoin`.

    For the report of a join within a budget Spark counts the exact join, and the result once more.
    """
    found = joins.multijoin(streams, **options)
    name, first = next(iter(streams.items()))
    time = by_stream("time", COLUMN_BY_STREAM.from_keyword(options["time"]), [*streams])[name]
    exact = {name: own for name, own in options.items() if name not in _OF_BUDGETS}

    def report() -> dict[str, Any]:
        every = joins.multijoin(streams, **(exact | {"columns": "ids"}))
        return {**_against(every, found), "window": _clock(first, time, options)}

    timed = _timed(found, first, time, options.get("time_unit"))
    return InSpark(timed, report, losses_over_time, "multijoin")


def lookup(stream: DataFrame, fact: DataFrame, **options: Any) -> InSpark:  # noqa: ANN401 - as above
    """Look a DataFrame up; see `spark_plugin.lookup.lookup`."""
    found = lookups.lookup(stream, fact, **options)

    def report() -> dict[str, Any]:
        counts = F.count("*"), F.countDistinct("row"), F.sum("importance")
        with jobs_named(found.sparkSession, "winnow counts what was found"):
            outputs, matched, importance = found.agg(*counts).first() or (0, 0, 0.0)
            rows = {"stream": stream.count(), "fact": fact.count()}
        return {
            "rows": rows, "matched": matched, "outputs": outputs, "importance": importance or 0.0
        }  # fmt: skip

    return InSpark(_timed(found, stream, options.get("time")), report, lookup_charts, "lookup")


def _timed(
    found: DataFrame, source: DataFrame, time: str | None, unit: str | None = None
) -> DataFrame:
    """Return a query whose ``ts``, in ticks, has the type of a stream's times.

    Of plain numbers of a unit it has that of timestamps without a zone, where Spark has the unit.
    """
    kind = source.schema[time].dataType if time in source.columns else None
    if isinstance(kind, TimestampType):
        return found.withColumn("ts", F.timestamp_micros("ts"))
    unit = "us" if isinstance(kind, TimestampNTZType) else unit
    if unit in _PER_SECOND:
        return found.withColumn("ts", F.expr(_NO_ZONE.format(_PER_SECOND[unit])))
    return (
        found.withColumn("ts", F.date_from_unix_date(F.col("ts").cast("int")))
        if (isinstance(kind, DateType))
        else found
    )
