"""Results of tasks on their partitions, brought to the driver as text, which GPUs support."""

from __future__ import annotations

import base64
import pickle
import uuid
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame

from engine.runtime.errors import WinnowError
from engine.runtime.host import keep_freed_memory
from spark_plugin.gpu import GpuTerms, bind_task
from spark_plugin.outcome import OtherwiseError, Outcome
from spark_plugin.session import ArrowFunction, map_in_arrow
from spark_plugin.settle import settle

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
    context: Any = mapped_frame.sparkSession.sparkContext
    tag = f"winnow-{uuid.uuid4().hex}"
    context.addJobTag(tag)
    try:
        rows = sorted(mapped_frame.collect(), key=lambda row: row.place)
    except BaseException:
        context.cancelJobsWithTag(tag)
        raise
    finally:
        context.removeJobTag(tag)
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
