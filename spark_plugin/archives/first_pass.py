"""The first pass of preparing lanes by Spark's operators, which RAPIDS runs on a GPU."""

from __future__ import annotations

import base64
import pickle
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.types as pt
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import TaskContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import LongType, StructField, StructType

from engine.lanes.split import Plan, SplitResult, fitting_rows
from engine.lanes.splits import Source
from engine.runtime.errors import WinnowError
from engine.runtime.host import keep_freed_memory
from engine.runtime.streams import SIDES
from engine.runtime.work import stage_here
from spark_plugin.archives.scan import (
    Columns,
    Footers,
    block_name,
    check_read_alike,
    footers_of,
    scanned,
    spelled,
)
from spark_plugin.archives.splitting import Work, split_blocks, split_sorted
from spark_plugin.archives.survey import Cut, Survey, blocks_of, survey_query, surveyed_columns
from spark_plugin.columns import attributes, time_of
from spark_plugin.gpu import GpuTerms, bind_task, gpu_terms
from spark_plugin.hashing import lane_of, travelling
from spark_plugin.naming import described, jobs_named
from spark_plugin.outcome import OtherwiseError, Outcome, settle
from spark_plugin.session import ArrowFunction, map_in_arrow, parallelism
from spark_plugin.spread import by_lane
from spark_plugin.versions import frame_of

T = TypeVar("T")
FOUND = "place int, found string"


def mapped(
    frame: DataFrame, function: Callable[..., Iterator[T]], *arguments: object, terms: GpuTerms
) -> DataFrame:
    """Return what ``function(*arguments, batches)`` yields on every partition, as `FOUND`."""
    work = cloudpickle.dumps((function, arguments))
    return map_in_arrow(frame, _on_partitions(work, terms), FOUND)


def collected(mapped_frame: DataFrame) -> list[Any]:
    """Run a query of `mapped`; return the results in the order of the partitions.

    Raises
    ------
    WinnowError
        The first error that a task raised, in that order.
    OtherwiseError
        The same.
    """
    session = mapped_frame.sparkSession
    tag = f"winnow-{uuid.uuid4().hex}"
    try:
        with jobs_named(session, described(stage_here(), ()), tag):
            rows = sorted(mapped_frame.collect(), key=lambda row: row.place)
    except BaseException:
        session.sparkContext.cancelJobsWithTag(tag)
        raise
    found = []
    for row in rows:
        outcome = pickle.loads(base64.b64decode(row.found))  # noqa: S301 - by our own worker
        if outcome.error is not None:
            raise outcome.error
        found.append(outcome.result)
    return found


def _on_partitions(work: bytes, terms: GpuTerms) -> ArrowFunction:
    """Return what a Spark task runs."""

    def run(source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bind_task(terms)
        keep_freed_memory()
        function, arguments = pickle.loads(work)  # noqa: S301 - written by the driver
        try:
            for found in function(*arguments, source):
                yield _row(Outcome(result=found))
        except (WinnowError, OtherwiseError) as error:
            for _ in source:  # Spark wants to be rid of its rows
                pass
            yield _row(Outcome(error=error))
        settle(function)

    return run


def _row(outcome: Outcome) -> pa.RecordBatch:
    task = TaskContext.get()
    place = 0 if task is None else int(task.partitionId())
    text = base64.b64encode(cloudpickle.dumps(outcome)).decode("ascii")
    columns = [pa.array([place], pa.int32()), pa.array([text], pa.string())]
    return pa.record_batch(columns, ["place", "found"])


_ROUNDS = 4
_RAISED = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit)\b")
_GROUP = "group"
_PLACES = StructType(
    [StructField(name, LongType()) for name in ("block", "first_id", "rows", "base")]
)


class Relational:
    """Splits archives by queries (`engine.lanes.splits.FirstPass`).

    One query surveys an archive. A second one reads it, sorts it by lane and time unless it is in
    time order, and passes it to the engine's own split, which computes lanes, codes and faults
    itself: nothing depends on what Spark hashed or sorted.

    Parameters
    ----------
    session : SparkSession
    tell : callable
        Called with a sentence about what tasks must do, and why.
    """

    def __init__(self, session: SparkSession, tell: Callable[[str], None]) -> None:
        self._session, self._tell = session, tell
        self._terms = gpu_terms(session)
        self._surveys: dict[int, Survey] = {}

    def split(
        self, plan: Plan, sources: Sequence[Source], folder: Path
    ) -> list[SplitResult] | None:
        """Split the files of one side; None if tasks must, after telling the user."""
        try:
            return self._split(plan, sources, folder)
        except OtherwiseError as error:
            why = str(error)
        except (PySparkException, Py4JError) as error:
            why = f"Spark failed: {_telling(error)}"
        self._tell(
            f"the {SIDES[plan.side]} archive is read by tasks, not by Spark's operators: {why}"
        )
        return None

    def _split(self, plan: Plan, sources: Sequence[Source], folder: Path) -> list[SplitResult]:
        footers = footers_of(sources)
        check_read_alike(plan, sources, footers)
        if not sum(footers.rows):
            return []
        if plan.side not in self._surveys:
            self._surveys[plan.side] = self.survey(plan, sources, footers)
        survey = self._surveys[plan.side]
        work = work_of(plan, sources, footers, survey, folder)
        if survey.in_order or survey.rejected or pt.is_string(work.columns.kind(plan.roles.time)):
            return self._by_block(work, sources, survey)
        return self._by_lane(work, sources, survey)

    def survey(self, plan: Plan, sources: Sequence[Source], footers: Footers) -> Survey:
        """Return the survey of an archive."""
        frame, query = self.survey_query(plan, sources, footers)
        return Survey(collected(query), spelled(frame, sources), sources, footers.rows)

    def survey_query(
        self, plan: Plan, sources: Sequence[Source], footers: Footers
    ) -> tuple[DataFrame, DataFrame]:
        """Return the files, and the query that surveys them."""
        roles = plan.roles
        wanted = Columns.of(roles.columns, footers)
        frame = scanned(self._session, sources, wanted)
        looked_at = Columns.of(surveyed_columns(roles), footers)
        query = survey_query(frame, roles, looked_at)
        found = mapped(query, blocks_of, roles, plan.columns, looked_at, terms=self._terms)
        return frame, found

    def _by_block(self, work: Work, sources: Sequence[Source], survey: Survey) -> list[SplitResult]:
        """Split an archive in its own order: it is in time order, or has rows to be set aside."""
        slices = sorted(
            collected(self.block_query(work, sources, survey.cut)), key=lambda own: own.base
        )
        if [own.base for own in slices] != sorted(survey.cut.base.tolist()):
            raise OtherwiseError("Spark did not read every block of its files, each once")
        return [own.found for own in slices]

    def block_query(self, work: Work, sources: Sequence[Source], cut: Cut) -> DataFrame:
        """Return the query that splits an archive in its own order."""
        frame = _numbered(scanned(self._session, sources, work.columns), work.columns)
        return mapped(frame, split_blocks, work, cut, terms=self._terms)

    def _by_lane(self, work: Work, sources: Sequence[Source], survey: Survey) -> list[SplitResult]:
        """Split an archive sorted by lane and time, whose rows are tuples or have a null key."""
        found: list[SplitResult] = collected(self.lane_query(work, sources, survey))
        rows = sum(own.rows for own in found)
        if rows != survey.joined or any(own.null_keys or own.rejected for own in found):
            raise OtherwiseError(f"Spark read {rows} of {survey.joined} tuples the second time")
        nulls = survey.rows - survey.joined
        plan = work.plan
        return [*found, SplitResult(plan.side, "", 0, nulls, nulls, 0, (), (), (), collision=False)]

    def lane_query(self, work: Work, sources: Sequence[Source], survey: Survey) -> DataFrame:
        """Return the query that splits an archive by lane and time."""
        plan, columns = work.plan, work.columns
        frame = _numbered(scanned(self._session, sources, columns), columns)
        cells = {name: columns.cell(name) for name in columns.names}
        keyed = [F.col(cells[name]).isNotNull() for name in _keys(plan)]
        placed = self._placed(frame.where(reduce(and_, keyed)), survey.cut)
        arranged = self._arranged(plan, cells, placed, survey.joined)
        query = arranged.select(*(cells[name] for name in columns.names), "row")
        return mapped(query, split_sorted, work, terms=self._terms)

    def _placed(self, frame: DataFrame, cut: Cut) -> DataFrame:
        """Add every row's position in the archive, -1 if its block has changed."""
        table = pa.table(
            [pa.array(column) for column in (cut.mark, cut.first_id, cut.rows, cut.base)],
            names=_PLACES.names,
        )
        places = frame_of(self._session, table, _PLACES)
        joined = frame.join(F.broadcast(places), "block")
        within = F.col("id") - F.col("first_id")
        there = (within >= 0) & (within < F.col("rows"))
        return joined.withColumn("row", F.when(there, F.col("base") + within).otherwise(-1))

    def _arranged(
        self, plan: Plan, cells: dict[str, str], frame: DataFrame, rows: int
    ) -> DataFrame:
        """Return rows with each lane in one partition, by (group, lane, ts, row)."""
        roles, join = plan.roles, plan.columns
        keys = attributes(frame, [cells[name] for name in roles.on], join.keys)
        groups = attributes(frame, [cells[name] for name in roles.partition_by], join.groups)
        time = cells[roles.time]
        ts, _ = time_of(F.col(time), frame.schema[time].dataType, join.unit)
        lane = lane_of(keys, [travelling(kind) for kind in join.keys], plan.lanes)
        names = [f"{_GROUP}{i}" for i in range(len(groups))]
        wanted = frame.select(
            *cells.values(),
            "row",
            *(column.alias(name) for column, name in zip(groups, names, strict=True)),
            lane.cast("int").alias("lane"),
            ts.alias("ts"),
        )
        slots = _ROUNDS * parallelism(self._session)
        if names:
            spread = wanted.repartition(*names, "lane")
        elif plan.lanes > 1:
            spread = by_lane(wanted, min(plan.lanes, slots))
        else:
            parts = max(1, min(slots, -(-rows // plan.split_rows)))
            spread = wanted.repartitionByRange(parts, "ts")
        arranged: DataFrame = spread.sortWithinPartitions(*names, "lane", "ts", "row")
        return arranged


def work_of(
    plan: Plan, sources: Sequence[Source], footers: Footers, survey: Survey, folder: Path
) -> Work:
    """Return the tasks' work, in tables of as many rows as fit."""
    fitting = fitting_rows(plan.split_rows, sum(footers.rows), footers.size)
    origins = tuple(source.origin for source in sources)
    return Work(
        replace(plan, split_rows=fitting),
        Columns.of(plan.read, footers),
        folder,
        origins,
        tuple(survey.file_firsts),
    )


def _telling(error: Exception) -> str:
    """Return the most informative line of Spark's message: the last of a worker's stack trace."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    if "Python worker" not in lines[0]:
        return lines[0]
    return next((line for line in reversed(lines) if _RAISED.match(line)), lines[0])


def _keys(plan: Plan) -> Sequence[str]:
    return tuple(dict.fromkeys((*plan.roles.on, *plan.roles.partition_by)))


def _numbered(frame: DataFrame, columns: Columns) -> DataFrame:
    """Return columns with the block that each row is of, and Spark's number of the row."""
    return frame.select(
        *columns.selected(),
        F.xxhash64(*block_name()).alias("block"),
        F.monotonically_increasing_id().alias("id"),
    )
