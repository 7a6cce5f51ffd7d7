"""`winnow.replay` and `winnow.lookup` of Spark DataFrames, which stay in Spark."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import DateType, TimestampNTZType, TimestampType
from rich.console import Console

from engine.api.result import Result
from engine.report.shown import Shown
from engine.runtime.errors import SpecError
from spark_plugin import dataframe
from spark_plugin import lookup as lookups

_SECONDS = "cast(cast(ts as decimal(20)) / 1000000 as decimal(18, 6))"
_NO_ZONE = f"timestamp_ntz'1970-01-01' + make_dt_interval(0, 0, 0, {_SECONDS})"


class InSpark(Result):
    """A query of Spark: `frame` is a DataFrame, computed when its rows are asked for.

    Spark counts no exact join beside it, so `report` is empty and there is nothing to draw.
    """

    def __init__(self, frame: DataFrame) -> None:
        super().__init__(pa.table({}), Shown("replay", {}, self._print), _no_plot)
        self.frame = frame

    @cached_property
    def _collected(self) -> pa.Table:
        return self.frame.toArrow()

    @property
    def outputs(self) -> pa.Table:
        """The rows, collected on the driver."""
        return self._collected

    def _print(self, console: Console) -> None:
        console.print(f"a query of Spark: {self.frame}", soft_wrap=True)

    def _first(self, rows: int) -> pa.Table:
        return self.frame.limit(rows).toArrow()


def _no_plot(*_: str) -> Any:  # noqa: ANN401 - it returns nothing
    raise SpecError(
        "a query of Spark counts no losses, so there is nothing to draw: write the frames to "
        "Parquet and give the paths"
    )


def replay(left: DataFrame, right: DataFrame, **options: Any) -> InSpark:  # noqa: ANN401 - checked there
    """Replay two DataFrames; see `spark_plugin.dataframe.replay`."""
    time = options.get("left_time") or options.get("time")
    return InSpark(_timed(dataframe.replay(left, right, **options), left, time))


def lookup(stream: DataFrame, fact: DataFrame, **options: Any) -> InSpark:  # noqa: ANN401 - as above
    """Look a DataFrame up; see `spark_plugin.lookup.lookup`."""
    return InSpark(_timed(lookups.lookup(stream, fact, **options), stream, options.get("time")))


def _timed(found: DataFrame, source: DataFrame, time: str | None) -> DataFrame:
    """Return a query whose ``ts``, in ticks, has the type of a stream's times."""
    kind = source.schema[time].dataType if time in source.columns else None
    if isinstance(kind, TimestampType):
        return found.withColumn("ts", F.timestamp_micros("ts"))
    if isinstance(kind, TimestampNTZType):
        return found.withColumn("ts", F.expr(_NO_ZONE))
    return (
        found.withColumn("ts", F.date_from_unix_date(F.col("ts").cast("int")))
        if (isinstance(kind, DateType))
        else found
    )
