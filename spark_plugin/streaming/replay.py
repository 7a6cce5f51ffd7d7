"""Replays of two archives as a stream: the window join's state in Spark's checkpoint."""

from __future__ import annotations

import dataclasses
import hashlib
import os
from types import CodeType, FunctionType
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from engine.api.keywords import takes
from engine.archives.roles import check_present, zone_of
from engine.archives.source import Archive
from engine.options.command import Given
from engine.options.replay import roles_of
from engine.runtime.device_choice import ON_GPU
from engine.runtime.errors import InputError, SpecError
from spark_plugin.columns import arrow_schema
from spark_plugin.connect import need_no_connect
from spark_plugin.dataframe import FRAMES, Frames, query_of
from spark_plugin.query import Query
from spark_plugin.rows import literal
from spark_plugin.session import get_session, map_in_arrow, parallelism, quietly
from spark_plugin.streaming.feed import Feed, Stream, parquet_archive
from spark_plugin.streaming.options import ROWS_PER_BATCH, packed, parse
from spark_plugin.streaming.reading import packed_schema
from spark_plugin.streaming.source import check_python, register
from spark_plugin.streaming.work import PACK, STATE, Task, stateful, unpacked
from spark_plugin.worker import Plan

_UNSUPPORTED = ("row", "fact")
_RETAINED = "spark.sql.streaming.minBatchesToRetain"
_PACKS = 16
"""Packs in an Arrow batch between the JVM and Python: each has up to 131,072 rows of a lane."""
_STATES = 4
"""Micro-batches whose states are kept; Spark keeps those of 100, and each is a lane's whole."""


@takes(FRAMES)
def replay(
    left: str | os.PathLike[str],
    right: str | os.PathLike[str],
    *,
    session: SparkSession | None = None,
    speed: str = "max",
    ticks_per_batch: int | str | None = None,
    rows_per_batch: int = ROWS_PER_BATCH,
    **options: Unpack[Frames],
) -> DataFrame:
    """Join two archives in event-time order, micro-batch by micro-batch.

    The rows are those of ``winnow replay`` and of `spark_plugin.dataframe.replay`, however the
    stream is divided into micro-batches, and however often it is stopped, killed and resumed from
    its checkpoint.

    Parameters
    ----------
    left, right : path
        Parquet: a file, a folder or a glob, under the same path on every executor.
    session : SparkSession, optional
        By default the active one, or a new one.
    speed : str
        Event time relative to wall time ("60x": an hour in a minute), ticks per second ("1000/s"),
        or "max".
    ticks_per_batch : int or str, optional
        Event time in a micro-batch, in ticks or as a duration ("10min").
    rows_per_batch : int
        Maximum number of rows of both streams in a micro-batch, unless one instant has more.
    **options
        As for `spark_plugin.dataframe.replay`, except `row` and those of facts.

    Returns
    -------
    DataFrame
        A stream with the columns of `spark_plugin.dataframe.replay`. It belongs to a session of its
        own with suitable settings; `frame.sparkSession.streams` lists its queries.

    Raises
    ------
    WinnowError
        If an option is invalid, or the archives cannot be read or joined.

    Notes
    -----
    Before the first micro-batch, one Spark job scans the archives if the replay depends on future
    tuples: a percentage as memory, an exact side, a `memory` shared by several `lanes` or split as
    expected, AGE without its curves, DGL without beta, the history estimator.

    State: the contents of the join memories with payload, and the unexpired keys. A lane's whole
    state is written in every micro-batch in which the lane has rows.

    Examples
    --------
    >>> kept = replay("bids", "clicks", on="item", time="at", window="10min", memory=50_000)
    ... # doctest: +SKIP
    >>> query = kept.writeStream.format("parquet").option("path", "kept").option(
    ...     "checkpointLocation", "kept.checkpoint"
    ... ).trigger(availableNow=True).start()  # doctest: +SKIP
    """
    given = _checked(FRAMES.from_keywords(options))
    archives = tuple(
        parquet_archive(where, side) for where, side in ((left, "left"), (right, "right"))
    )
    started = session or get_session()
    need_no_connect(started, "a streaming replay")
    check_python(started)
    own = _session_of(started)
    query = _query(own, archives, given)
    feed = _feed(query, archives)
    source_options = {"feed": packed(feed), "speed": speed, "rows_per_batch": str(rows_per_batch)}
    source_options["partitions"] = str(parallelism(started))
    if ticks_per_batch is not None:
        source_options["ticks_per_batch"] = str(ticks_per_batch)
    parse(source_options)
    task = _task(query, feed)
    source_options["feed"] = packed(dataclasses.replace(feed, options=task.digest))
    _fit(own, parallelism(started) if query.columns.groups else query.lanes)
    stream = _stream(own, source_options)
    with quietly():
        joined = stream.groupBy("place", "lane").applyInPandasWithState(
            stateful(task), PACK, STATE, "append", "NoTimeout"
        )
    return map_in_arrow(joined, unpacked(task.result), query.schema)


def _stream(session: SparkSession, source_options: dict[str, str]) -> DataFrame:
    """Return the packed rows of both archives; register the source where Spark does not find it."""
    reader = session.readStream.format("winnow").options(**source_options)
    try:
        return reader.load()
    except Exception as error:  # Py4J passes on whatever the JVM throws
        if "DATA_SOURCE_NOT_FOUND" not in str(error):
            raise
        register(session)
        return reader.load()


def _checked(given: Given) -> Given:
    """Return the options, checked for a stream."""
    for name in given:
        if name.startswith(_UNSUPPORTED):
            raise SpecError(
                f"a stream is not replayed with {name}: rows are numbered by their position in the "
                "archives, and facts need a lane whole; use winnow.replay"
            )
    if given["device"] == ON_GPU:
        raise SpecError(
            "device is 'gpu', and streams are decided on the CPU, batch by batch: leave it out, or "
            "use winnow.replay"
        )
    return given


def _session_of(session: SparkSession) -> SparkSession:
    """Return a session of the same application, whose settings are the stream's own."""
    own: SparkSession = session.newSession()
    for name, value in session.conf.getAll.items():
        if own.conf.isModifiable(name):
            own.conf.set(name, value)
    return own


def _fit(session: SparkSession, lanes: int) -> None:
    """Configure a session for a stream of packed rows, after everything else has run on it."""
    tasks = min(lanes, parallelism(session))
    session.conf.set("spark.sql.shuffle.partitions", str(tasks))
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", str(_PACKS))
    if session.conf.get(_RETAINED) == "100":
        session.conf.set(_RETAINED, str(_STATES))


def _frame(session: SparkSession, archive: Archive) -> DataFrame:
    paths = [literal(file.path) for file in archive.files]
    try:
        return session.read.option("recursiveFileLookup", "true").parquet(*paths)
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"the {archive.side} archive {archive.where} cannot be read by Spark ({reason}): write "
            "columns of types that Spark has"
        ) from error


def _query(session: SparkSession, archives: tuple[Archive, ...], given: Given) -> Query:
    """Return the replay of the archives' rows, whose times are of the archives' zone."""
    time = roles_of(given, "left").time
    check_present(archives[0], time)
    left, right = (_frame(session, archive) for archive in archives)
    return query_of(left, right, given, zone_of(archives[0], time))


def _feed(query: Query, archives: tuple[Archive, ...]) -> Feed:
    streams = []
    for archive, side in zip(archives, query.sides, strict=True):
        names = tuple(dict.fromkeys((*side.roles.columns, *side.payload)))
        types = arrow_schema(side.frame, archive.side, names)
        kinds = pa.schema([types.field(name) for name in names])
        streams.append(Stream(archive, side.roles, kinds, side.payload))
    return Feed((streams[0], streams[1]), query.columns, query.lanes)


def _task(query: Query, feed: Feed) -> Task:
    plan, profiles = query.planned(measure=True)
    packs = packed_schema(feed, 0), packed_schema(feed, 1)
    result = to_arrow_schema(query.schema, timezone="UTC")
    return Task(plan, profiles, packs, result, _digest(plan, feed, result))


def _digest(plan: Plan, feed: Feed, result: pa.Schema) -> str:
    """Return a digest of all that a lane's rows depend on, except the archives themselves."""
    settings = plan.settings
    parameters = [
        (name, fingerprint(value) if callable(value) else value)
        for name, value in sorted(settings.parameters.items())
    ]
    scalars = [
        (field.name, getattr(settings, field.name))
        for field in dataclasses.fields(settings)
        if field.init and field.name != "parameters"
    ]
    roles = [stream.roles for stream in feed.streams]
    whole = repr(
        (scalars, parameters, plan.memory, sorted(plan.budgets.items(), key=repr), plan.curves,
         plan.layout, roles, feed.columns, feed.lanes, str(result))
    )  # fmt: skip
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def fingerprint(function: Any) -> str:  # noqa: ANN401 - whatever can be called
    """Return the name of a function and a digest of its bytecode.

    The digest covers its defaults, its closure, and the functions, numbers, texts and arrays of its
    own module that it names. Comments, docstrings and line numbers do not matter; the version of
    Python does. Of objects without bytecode only the name matters.

    Examples
    --------
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    own = _plain(function)
    text = _text_of(own, getattr(own, "__module__", ""), set())
    return f"{_name(own)} {hashlib.sha256(text.encode()).hexdigest()}"


def _plain(value: Any) -> Any:  # noqa: ANN401 - as above
    return getattr(value, "py_func", value)  # numba keeps there what it was given


def _name(value: Any) -> str:  # noqa: ANN401 - as above
    return str(getattr(value, "__qualname__", type(value).__qualname__))


def _text_of(value: Any, module: str, seen: set[int]) -> str:  # noqa: ANN401 - as above
    value = _plain(value)
    if isinstance(value, FunctionType) and value.__module__ == module and id(value) not in seen:
        seen.add(id(value))
        given = [*(value.__defaults__ or ()), *sorted((value.__kwdefaults__ or {}).items())]
        given += [cell.cell_contents for cell in value.__closure__ or ()]
        known = value.__globals__
        named = [(name, known[name]) for name in _names(value.__code__) if name in known]
        inner = [_text_of(each, module, seen) for each in (*given, *named)]
        return repr((_code(value.__code__, value.__doc__), inner))
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, tuple | list):
        return repr([_text_of(each, module, seen) for each in value])
    if isinstance(value, np.ndarray):
        return repr((value.dtype.str, value.shape, value.tobytes()))
    return _name(value)


def _names(code: CodeType) -> list[str]:
    inner = [
        name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const)
    ]
    return sorted({*code.co_names, *inner})


def _code(code: CodeType, doc: str | None = None) -> str:
    consts = code.co_consts[doc is not None and code.co_consts[:1] == (doc,) :]
    constants = [
        _code(const)
        if isinstance(const, CodeType)
        else repr(sorted(map(repr, const)) if isinstance(const, frozenset) else const)
        for const in consts
    ]
    return repr((code.co_code, constants, code.co_names))
