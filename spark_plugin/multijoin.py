"""Multi-way joins of DataFrames, lazily: united, arranged by lane, and joined lane by lane."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Unpack

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import DoubleType, LongType, StructField, StructType

from engine.api.frames import by_name
from engine.api.keywords import takes
from engine.jobs.multijoin.join_task import MultiJoinTask, open_join
from engine.jobs.multijoin.lanes import capacities_by_lane, lane_profiles
from engine.jobs.streams import check_output
from engine.lanes.split import MAX_LANES
from engine.options import deciding, several, where
from engine.options import streams as shared
from engine.options.command import Command, Group
from engine.options.multijoin import AUTO
from engine.options.multijoin_given import multijoin_of
from engine.options.multijoin_options import MULTIJOIN, Best, Harvest, Loop, On, Parts, Streams
from engine.options.shedding import MEASURED
from engine.runtime.errors import SpecError
from engine.runtime.short_windows import warn_of_windows_below_a_second
from engine.runtime.time_units import parse_instant
from spark_plugin.columns import (
    arrow_schema,
    attributes,
    check_collation,
    check_digits,
    check_told_apart,
    named,
)
from spark_plugin.gpu import gpu_terms
from spark_plugin.hashing import lane_of, travelling
from spark_plugin.lanes import GROUP
from spark_plugin.multijoin_worker import Arranged, join_lanes, measure_lanes
from spark_plugin.naming import jobs_named
from spark_plugin.outcome import told
from spark_plugin.partitions import on_partitions, slots
from spark_plugin.rows import OF_ARCHIVES, Numbered, check_static, session_zone, with_rows
from spark_plugin.session import map_in_arrow
from spark_plugin.spread import by_lane


class MultiJoinFrames(
    Streams, On, Best, Loop, Parts, several.Memory, several.Split, several.Deciding,
    deciding.OfPolicy, shared.Estimator, Harvest, shared.TimeUnit, shared.Outputs, shared.Seed,
    where.Payload, Numbered, where.Device, total=False,
):  # fmt: skip
    """The keywords of a multi-way join of DataFrames."""


FRAMES = Command("multijoin", "join DataFrames", (Group("", (MultiJoinFrames,)),), OF_ARCHIVES)


@takes(FRAMES)
def multijoin(streams: Mapping[str, DataFrame], **options: Unpack[MultiJoinFrames]) -> DataFrame:
    """Join 2 to 8 streams on any predicate, exactly or within a budget of memory or CPU.

    The rows are those of ``winnow multijoin`` on the same archives, whatever the partitions, the
    order of the rows and the batches of the DataFrames.

    Parameters
    ----------
    streams : mapping of str to DataFrame
        By name, in order: at equal times, tuples of an earlier stream arrive first.
    **options
        As ``winnow multijoin`` has them. Times may be floats that are whole numbers; one tick of a
        timestamp is a microsecond, of a date a day.

    Returns
    -------
    DataFrame
        Columns ``NAME_row`` of every stream, ts (ticks), importance, weight, of two streams of
        vectors score, and the columns of all as ``NAME_<column>``.

    Raises
    ------
    WinnowError
        If an option or a column is invalid. A row with an invalid time or importance fails the
        query that reads it; the error names the column. A row without an attribute joins nothing.

    Notes
    -----
    Lazy: an action computes it. A capacity that lanes share takes one Spark job before, which
    measures what each yields.

    An exact join on equal attributes runs as many tasks as there are cores, one of lanes one for
    each, any other join one task: give `partition_by` or `lanes`. Memory of a worker: the streams
    of a lane.

    Examples
    --------
    >>> near = multijoin({"a": a, "b": b, "c": c}, predicate="band:value:0.5", time="at",
    ...                  window="10min", partition_by="room")  # doctest: +SKIP
    """
    given = FRAMES.from_keywords(options)
    if given["slices"] is not None:
        raise SpecError(
            "--slices are of archives, of which a task reads its time alone: leave them out, or "
            "give --partition-by"
        )
    if given["capacity"] == MEASURED:
        raise SpecError(
            "--capacity auto is measured on archives, before the join begins: give a number"
        )
    return Query(
        by_name(streams), {n: own for n, own in options.items() if n != "row"}, given["row"]
    ).joined


@dataclass(frozen=True)
class _Stream:
    """One stream as a DataFrame."""

    frame: DataFrame
    row: Column
    columns: tuple[str, ...]
    """Those that travel."""


class Query:
    """A join that is ready to run.

    Parameters
    ----------
    streams : mapping of str to DataFrame
    keywords : mapping
        Of `multijoin`, without `row`.
    row : str or None
        Column that numbers the rows.
    """

    def __init__(
        self, streams: Mapping[str, DataFrame], keywords: Mapping[str, Any], row: str | None
    ) -> None:
        for name, frame in streams.items():
            check_static(frame, name)
        given = MULTIJOIN.from_keywords(keywords)
        options = multijoin_of(dict.fromkeys(streams, pa.table({})), given)
        if options.approximate:
            options = replace(options, reference="none")
        frames = [streams[name] for name in options.names]
        wanted = [
            tuple(frame.columns)
            if options.columns == "all"
            else tuple(filter(None, (*own.columns, own.time, own.importance, *own.partition_by)))
            for own, frame in zip(options.streams, frames, strict=True)
        ]
        schemas = [
            arrow_schema(frame, own.name, names)
            for own, frame, names in zip(options.streams, frames, wanted, strict=True)
        ]
        tables = [
            replace(own, source=schema.empty_table())
            for own, schema in zip(options.streams, schemas, strict=True)
        ]
        task = open_join(replace(options, streams=tuple(tables)))
        windows = {own.name: own.window for own in options.streams}
        warn_of_windows_below_a_second(windows, (task.unit, options.time_unit))
        if options.start_ts is not None and task.columns.zoned:
            zone = session_zone(frames[0])
            start = parse_instant(options.start_ts, task.unit, "start_ts", zone)
            task = replace(task, start_ts=start)
        self._check(task, frames)
        self._terms = gpu_terms(frames[0].sparkSession)
        self._streams = list[_Stream]()
        sources = []
        for source, frame, names in zip(task.sources, frames, wanted, strict=True):
            archive = source.archive
            columns = tuple(own for own in frame.columns if own in names)
            schema = pa.schema([archive.schema.field(own) for own in columns])
            sources.append(source._replace(archive=replace(archive, schema=schema), table=None))
            numbered, number = with_rows(frame, archive.side, row)
            self._streams.append(_Stream(numbered, number, columns))
        self._task = replace(task, sources=tuple(sources), threads=1, tried=False)

    @staticmethod
    def _check(task: MultiJoinTask, frames: Sequence[DataFrame]) -> None:
        """Check what archives need not: collations, and digits that Spark lacks."""
        equal = len(task.options.predicate.equal) or len(task.columns.keys)
        for source, frame in zip(task.sources, frames, strict=True):
            for name in (*source.columns[:equal], *source.roles.partition_by):
                check_collation(frame, source.archive.side, name)
        first, *others = task.sources
        for other in others:
            groups = (own.roles.partition_by for own in (first, other))
            check_digits(task.columns.groups, *groups)
            if task.options.predicate.kind != "inner":
                keys = (own.columns[: len(task.columns.keys)] for own in (first, other))
                check_digits(task.columns.keys, *keys)

    @property
    def joined(self) -> DataFrame:
        """The outputs."""
        plan = Arranged(replace(self._task, edges=(-(2**62), 2**62)), self._widths, self.capacities)
        return map_in_arrow(
            self._arranged, on_partitions(join_lanes, (plan,), self._terms), self._schema
        )

    @property
    def _widths(self) -> int:
        """How many columns say which lane a row is in."""
        return len(self._task.columns.groups) + 1

    @property
    def _lanes(self) -> int:
        """Parts that equal attributes are hashed into."""
        options = self._task.options
        if options.lanes is not None:
            return options.lanes
        single = options.approximate or options.loops.method != AUTO or options.partition_by
        if single or self._task.windows.by_rows.any() or not self._hashable:
            return 1
        return min(slots(self._streams[0].frame.sparkSession), MAX_LANES)

    @property
    def _hashable(self) -> bool:
        predicate = self._task.options.predicate
        return predicate.transitive or bool(predicate.equal)

    @property
    def _arranged(self) -> DataFrame:
        """All streams, each lane in one partition, by lane, stream and row."""
        parts = [self._projected(at) for at in range(len(self._streams))]
        united = reduce(DataFrame.unionAll, parts)
        groups = [f"{GROUP}{i}" for i in range(self._widths - 1)]
        if groups:
            spread = united.repartition(*groups, "lane")
        elif self._lanes == 1:
            spread = united.repartition(1)
        else:
            spread = by_lane(united, min(self._lanes, slots(united.sparkSession)))
        arranged: DataFrame = spread.sortWithinPartitions(*groups, "lane", "stream", "row")
        return arranged

    def _projected(self, at: int) -> DataFrame:
        """Return one stream, its columns in a structure of its own beside those of the others."""
        own, source, kinds = self._streams[at], self._task.sources[at], self._task.columns
        chosen = [
            column.alias(f"{GROUP}{i}")
            for i, column in enumerate(
                attributes(own.frame, source.roles.partition_by, kinds.groups)
            )
        ]
        lane = F.lit(0)
        if self._lanes > 1:
            names = source.columns[: len(kinds.keys)]
            keys = attributes(own.frame, names, kinds.keys)
            present = reduce(Column.__and__, (named(name).isNotNull() for name in names))
            lane = F.when(present, lane_of(keys, list(map(travelling, kinds.keys)), self._lanes))
            lane = F.coalesce(lane, F.lit(0))
        chosen += [
            lane.cast("int").alias("lane"),
            F.lit(at).cast("tinyint").alias("stream"),
            own.row.cast("bigint").alias("row"),
        ]
        for other, stream in enumerate(self._streams):
            fields = [named(name).alias(name) for name in stream.columns]
            kind = StructType([_field(stream.frame, name) for name in stream.columns])
            column = F.struct(*fields) if other == at else F.lit(None).cast(kind)
            chosen.append(column.alias(f"s{other}"))
        return own.frame.select(*chosen)

    @property
    def _schema(self) -> StructType:
        """The columns of the result."""
        options = self._task.options
        fields = [StructField(f"{name}_row", LongType()) for name in options.names]
        fields += [StructField("ts", LongType())]
        fields += [StructField(name, DoubleType()) for name in ("importance", "weight")]
        if options.predicate.dense and len(options.names) == 2:
            fields.append(StructField("score", DoubleType()))
        if options.columns == "all":
            for name, stream in zip(options.names, self._streams, strict=True):
                fields += [
                    StructField(f"{name}_{column}", stream.frame.schema[column].dataType)
                    for column in stream.columns
                ]
        check_output(pa.schema([(field.name, pa.null()) for field in fields]))
        check_told_apart(self._streams[0].frame, (field.name for field in fields))
        return StructType(fields)

    @property
    def capacities(self) -> dict[tuple[Any, ...], float]:
        """The capacity of each lane, measured in a job of its own; none where there is one lane."""
        task = self._task
        capacity = None if task.harvest is None else task.harvest.capacity
        if capacity is None or not (task.options.partition_by or task.options.lanes):
            return {}
        work = on_partitions(measure_lanes, (Arranged(task, self._widths, {}),), self._terms)
        frame = map_in_arrow(self._arranged, work, "measured binary")
        with told(), jobs_named(frame.sparkSession, "winnow measures lanes"):
            cells = frame.collect()
        found = dict(pickle.loads(cell) for (cell,) in cells)  # noqa: S301 - our own worker's
        if task.options.lanes:  # those without rows are lanes of the archives' join as well
            (empty,) = lane_profiles(task)
            found = {(lane,): found.get((lane,), empty) for lane in range(task.options.lanes)}
        return capacities_by_lane(found, capacity)


def _field(frame: DataFrame, name: str) -> StructField:
    return StructField(name, frame.schema[name].dataType)
