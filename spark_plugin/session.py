"""The Spark session: the one there is, else a quiet one of our own."""

from __future__ import annotations

import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from engine.errors import DeviceError
from spark_plugin.java import REMEDY, provide_java

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
}

_OPTIONS = "SPARK_SUBMIT_OPTS"
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def broadcast_limit(session: SparkSession) -> int:
    """Return the bytes up to which Spark broadcasts a table unasked; negative for none."""
    conf = session._jsparkSession.sessionState().conf()  # noqa: SLF001 - Spark tells it nowhere else
    return int(conf.autoBroadcastJoinThreshold())


def get_session(app_name: str = "winnow", *, light: bool = False) -> SparkSession:
    """Return the active Spark session, or start one.

    A session that exists (spark-submit's, a notebook's) is used as it is. A new one runs where the
    Spark configuration says (``spark-defaults.conf``, ``PYSPARK_SUBMIT_ARGS``, spark-submit), on
    ``local[*]`` if it says nothing; its workers run this Python, and nothing that Spark logs
    reaches the terminal.

    Parameters
    ----------
    app_name : str
        Name of a new application.
    light : bool
        Whether Spark is to schedule tasks alone: a JVM of ours then compiles for a quick start, in
        half the time, not for long queries.

    Raises
    ------
    DeviceError
        If there is no Java, or Spark does not start.
    """
    with quietly():
        return _session(app_name, light=light)


def _session(app_name: str, *, light: bool) -> SparkSession:
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - there is no other way to ask
        session: SparkSession = (
            SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        )
        return session
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    _start_java(light=light)
    conf = SparkConf()
    for name, value in _DEFAULTS.items():
        conf.setIfMissing(name, value)
    conf.setIfMissing("spark.app.name", app_name)
    try:
        SparkContext(conf=conf)
    except Exception as error:  # Py4J passes on whatever the JVM throws
        raise DeviceError(f"Spark does not start: {_first_line(error)}") from error
    started: SparkSession = SparkSession.builder.getOrCreate()
    return started


def _start_java(*, light: bool) -> None:
    """Start Spark's JVM with its standard error, and its workers', kept off the terminal."""
    if SparkContext._gateway is not None:  # noqa: SLF001 - as above
        return
    if "PYSPARK_GATEWAY_PORT" in os.environ:  # spark-submit's JVM
        SparkContext._ensure_initialized()  # noqa: SLF001 - as above
        return
    provide_java()
    with tempfile.TemporaryFile() as log, _java_options(_LIGHT if light else ""):
        try:
            gateway = launch_gateway(popen_kwargs={"stderr": log, "stdout": log})
        except (PySparkException, OSError) as error:
            raise DeviceError(
                f"Spark does not start ({_reason(log)}): correct its configuration, or {REMEDY}"
            ) from error
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as above


@contextmanager
def _java_options(options: str) -> Iterator[None]:
    """Give Spark's launcher JVM options beside those of the user, whose own come later and win."""
    before = os.environ.get(_OPTIONS)
    os.environ[_OPTIONS] = f"{options} {before or ''}".strip()
    try:
        yield
    finally:
        if before is None:
            del os.environ[_OPTIONS]
        else:
            os.environ[_OPTIONS] = before


def _reason(log: IO[bytes]) -> str:
    """Return the line of a log that tells most."""
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    told = [line for line in lines if line and not line.startswith("at ")]  # no stack frames
    telling = [line for line in told if "rror" in line or "xception" in line]
    return (telling or told or ["it says nothing"])[-1]


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]


def map_in_arrow(frame: DataFrame, function: ArrowFunction, schema: StructType | str) -> DataFrame:
    """Return ``frame.mapInArrow(function, schema)``, quietly."""
    with quietly():
        mapped: DataFrame = frame.mapInArrow(function, schema)
    return mapped


@contextmanager
def quietly() -> Iterator[None]:
    """Leave out Spark's warning of pandas 3: no column here goes through pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "PySpark does not yet fully support pandas", FutureWarning
        )
        yield


def parallelism(session: SparkSession) -> int:
    """Return how many tasks the session runs at once, as far as it knows."""
    context: Any = session.sparkContext
    return max(1, int(context.defaultParallelism))
