"""Sessions of Spark Connect, which have neither a `SparkContext` nor access to the JVM."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from engine.runtime.errors import SpecError
from spark_plugin.versions import refuse_connect

MODULE = "pyspark.sql.connect."
"""Begins the modules of Spark Connect."""
_SPLITS = re.compile(r"splits=Some\((\d+)\)")
_NODE = re.compile(r"[\s:|+-]*([A-Za-z]+)\b(.*)")
_PLAIN = {
    "Relation", "Project", "Filter", "SubqueryAlias", "Sort", "Repartition",
    "RepartitionByExpression", "GlobalLimit", "LocalLimit", "ResolvedHint",
}  # fmt: skip
"""Nodes of a plan's text that neither repeat rows nor make new ones."""


def of_connect(thing: object) -> bool:
    """Return whether a session or a DataFrame is of Spark Connect."""
    return type(thing).__module__.startswith(MODULE)


def chosen_session() -> SparkSession | None:
    """Return the session of Spark Connect that is active, or that ``SPARK_REMOTE`` names.

    Raises
    ------
    SpecError
        If this Spark's Connect lacks what winnow needs.
    """
    session: SparkSession | None = None
    if "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        refuse_connect()
        from pyspark.sql.connect.session import (  # noqa: PLC0415 - it needs gRPC
            SparkSession as Remote,
        )

        session = Remote.getActiveSession() or Remote._get_default_session()  # noqa: SLF001 - of another thread
    if session is None and "SPARK_REMOTE" in os.environ:
        refuse_connect()
        session = SparkSession.builder.getOrCreate()
    return session


def need_no_connect(session: SparkSession, task: str) -> None:
    """Raise `SpecError` for a session of Spark Connect, where a task does not run."""
    if of_connect(session):
        raise SpecError(
            f"{task} needs a session with access to the JVM, and this one is of Spark Connect: "
            "begin one without Connect (SparkSession.builder.master)"
        )


@lru_cache(maxsize=4)
def parallelism(session: SparkSession) -> int:
    """Return how many tasks the server runs at once: the partitions that it plans for a range."""
    found = _SPLITS.search(_analysed(session.range(1))[0])
    return max(1, int(found.group(1))) if found else 1


def is_plain(frame: DataFrame) -> bool:
    """Return whether each row is one row of a Parquet file."""
    nodes = [_NODE.match(line) for line in _analysed(frame)]
    return all(
        node is not None
        and node.group(1) in _PLAIN
        and (node.group(1) != "Relation" or node.group(2).rstrip().endswith("] parquet"))
        for node in nodes
    )


def _analysed(frame: DataFrame) -> list[str]:
    """Return the text of a DataFrame's analysed plan, a node a line; nothing runs."""
    text: str = frame._explain_string(extended=True)  # noqa: SLF001 - explain() only prints it
    analysed = text.split("== Analyzed Logical Plan ==\n")[1].split("\n== Optimized", maxsplit=1)[0]
    return [line for line in analysed.splitlines()[1:] if line.strip()]  # after the schema


def run(
    session: SparkSession,
    work: Callable[[Iterable[int]], Iterator[tuple[int, bytes]]],
    tasks: int,
) -> list[Any]:
    """Run a function on the number of each task; return the rows of them all."""

    def mapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for item, found in work(batch.column(0).to_pylist()):
                columns = [pa.array([item], pa.int64()), pa.array([found], pa.binary())]
                yield pa.RecordBatch.from_arrays(columns, ["item", "found"])

    numbers = session.range(0, tasks, 1, tasks)
    rows: list[Any] = numbers.mapInArrow(mapped, "item bigint, found binary").collect()
    return rows
