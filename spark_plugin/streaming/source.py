"""Two archives as one source of Structured Streaming, paced by event time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, MutableMapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

import spark_plugin
from engine.runtime.errors import InputError, SpecError
from spark_plugin.streaming.feed import OTHER_OPTIONS, TimeIndex
from spark_plugin.streaming.options import Options, Pace, parse
from spark_plugin.streaming.reading import PACKED, row_schema, rows_between

Offset = dict[str, Any]
_AT, _OF, _BY = "ts", "archives", "options"


class Source(DataSource):  # type: ignore[misc] # Spark has no types
    """What ``readStream.format("winnow")`` reads (`pyspark_winnow.DefaultSource`).

    Parameters
    ----------
    options : mapping of str to str
        See docs/streaming.md.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = parse(options)

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "winnow"

    def schema(self) -> StructType:
        """Return the columns of the stream."""
        feed = self._options.feed
        found: StructType = from_arrow_schema(PACKED if feed.lanes else row_schema(feed))
        return found

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's
        """Return the reader of micro-batches."""
        return ArchiveStream(self._options)


class ArchiveStream(DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc] # Spark has no types
    """Emits both archives by event time.

    An offset is the tick before which everything has been read. So a micro-batch consists of whole
    instants, and is the same whenever and however often it is read.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._feed = options.feed
        self._pace = Pace(options.speed)
        self._known: TimeIndex | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Return what tasks need; they receive their row groups."""
        return self.__dict__ | {"_known": None}

    @property
    def _index(self) -> TimeIndex:
        if self._known is None:
            self._known = TimeIndex(self._feed)
        return self._known

    def _offset(self, at: int) -> Offset:
        return {_AT: at, _OF: self._feed.digest, _BY: self._feed.options}

    def _tick(self, offset: Offset) -> int:
        if offset[_OF] != self._feed.digest:
            raise InputError(
                "the archives are not those that the checkpoint is of (by path, size and time of "
                "change): put them back, or begin again with a new checkpoint"
            )
        if offset.get(_BY) not in (None, self._feed.options):  # None of an earlier version
            raise SpecError(OTHER_OPTIONS)
        return int(offset[_AT])

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's
        """Return the offset of the first row."""
        start = self._options.start
        first = self._index.first
        return self._offset(first if start is None else min(max(start, first), self._index.end))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's
        """Return the limit of a micro-batch."""
        return ReadMaxRows(self._options.rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's
        """Make all of the archives available."""
        self._pace = Pace(None)

    def reportLatestOffset(self) -> Offset:  # noqa: N802 - Spark's
        """Return the end of the archives."""
        return self._offset(self._index.end)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's
        """Return where the micro-batch ends that begins at `start`."""
        begin, index = self._tick(start), self._index
        end = index.end
        reached = self._pace.reached(begin, time.monotonic())
        if reached is not None:
            end = min(end, reached)
        following = index.following(begin)
        if following >= end and end < index.end:
            return start  # no row has come yet
        if isinstance(limit, ReadAllAvailable):
            return self._offset(max(begin, end))
        if self._options.ticks is not None:
            runs = (following - begin) // self._options.ticks + 1
            end = min(end, begin + runs * self._options.ticks)
        if isinstance(limit, ReadMaxRows):
            end = index.until(begin, end, limit.max_rows)
        return self._offset(max(begin, end))

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return the row groups of a micro-batch for each task, evenly distributed."""
        begin, until = self._tick(start), self._tick(end)
        chunks = self._index.overlapping(begin, until) if until > begin else []
        tasks = min(len(chunks), self._options.partitions)
        edges = np.linspace(0, len(chunks), tasks + 1).astype(int).tolist() if tasks else [0]
        return [InputPartition((tuple(chunks[a:b]), begin, until)) for a, b in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition."""
        chunks, begin, end = partition.value
        return rows_between(self._feed, chunks, begin, end)


_PATH = "PYTHONPATH"


def check_python(session: SparkSession) -> None:
    """Check that Spark can plan a stream here, on the driver's machine.

    Raises
    ------
    SpecError
        If the workers' Python lies in an archive that Spark unpacks only for executors.
    """
    python = str(session.sparkContext.pythonExec)
    if os.path.dirname(python) and not Path(python).exists():  # noqa: PTH120 - "./python" has one
        raise SpecError(
            f"spark.pyspark.python is {python}, and {Path(python).absolute()} is not there: a "
            "stream is planned beside the driver by the same Python as on the workers; unpack the "
            "archive of packages there too, or give a path that is on all machines"
        )


def register(session: SparkSession) -> None:
    """Register ``format("winnow")`` where Spark does not find it by itself.

    Notes
    -----
    Spark plans a stream in a Python process on the driver's machine, which looks for the files of
    ``--py-files`` in a folder ``streaming_job`` where Spark 4.2.0 has put none. So that process is
    told where the driver found winnow.
    """
    environment = session.sparkContext.environment
    before = environment.get(_PATH)
    own = str(Path(spark_plugin.__file__).absolute().parents[1])
    environment[_PATH] = own if before is None else own + os.pathsep + before
    try:
        session.dataSource.register(Source)
    finally:
        if before is None:
            del environment[_PATH]
        else:
            environment[_PATH] = before
