"""Functions that Spark's tasks run on their partitions, each bound to its GPU first."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from engine.options.command import Command
from spark_plugin.gpu import GpuTerms, bind_task
from spark_plugin.outcome import settle
from spark_plugin.session import ArrowFunction, parallelism

_KEYWORDS = Command("", "", ())
"""Names options in tasks' errors as Python's callers write them."""
_ROUNDS = 4


def slots(session: SparkSession) -> int:
    """Return how many partitions keep all tasks of a session busy, though some take longer."""
    return _ROUNDS * parallelism(session)


def on_partitions(
    function: Callable[..., Iterator[pa.RecordBatch]], arguments: tuple[object, ...],
    terms: GpuTerms,
) -> ArrowFunction:  # fmt: skip
    """Return what a Spark task runs: a function of its partition, unpickled there.

    Parameters
    ----------
    function : callable
        Takes the arguments, and then the partition.
    arguments : tuple
    terms : GpuTerms
        Of the session.
    """
    work = cloudpickle.dumps((function, arguments))

    def run(source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        bind_task(terms)
        own, given = pickle.loads(work)  # noqa: S301 - written by the driver
        with _KEYWORDS.as_keywords():
            yield from own(*given, source)
        settle(own)

    return run
