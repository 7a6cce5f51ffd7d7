"""Look-ups of a DataFrame in a fact relation, lazily, in Spark's own SQL: streaming ones too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_
from typing import Annotated, Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import DataType, LongType, StructField, StructType

from engine.api.keywords import takes
from engine.archives.roles import Roles, check_importance
from engine.archives.source import FRAME, Archive
from engine.archives.ticks import FAULTS
from engine.facts.faults import FACT_FAULTS, OVERLAPS
from engine.facts.read import read_facts
from engine.facts.relation import BEFORE, NEVER
from engine.facts.roles import FactColumns, FactRoles, check_fact_roles
from engine.options.command import Command, Group
from engine.options.facts import FactAccess, FactChanges
from engine.options.lookup import FactOn, LookedUp, lookup_of, with_identity
from engine.options.option import Option
from engine.options.where import Payload
from engine.runtime.errors import SpecError
from spark_plugin.columns import (
    arrow_schema,
    attributes,
    check_alone,
    check_collation,
    check_digits,
    far_fault,
    named,
    time_of,
    weight_fault,
)
from spark_plugin.connect import of_connect
from spark_plugin.hashing import as_double, micros
from spark_plugin.lanes import without_number
from spark_plugin.naming import jobs_named
from spark_plugin.rows import OF_ARCHIVES, FactRows, check_spark, with_rows
from spark_plugin.session import broadcast_limit
from spark_plugin.versions import collected, frame_of

BROADCASTS = ("auto", "always", "never")
_BEGIN, _END, _TS, _KEY = "__winnow_begin", "__winnow_end", "ts", "__winnow_key"


class Planned(FactRows, total=False):
    """How rows are numbered, and how Spark joins."""

    row: Annotated[
        str | None,
        Option(
            "integer column that numbers the rows, unique within the stream; DataFrames read from "
            "Parquet need none, their rows are numbered by their position in the files; a "
            "streaming one without it has null rows"
        ),
    ]
    broadcast: Annotated[
        str,
        Option(
            "always: F goes to every task whole; never: both sides are shuffled by the attribute; "
            "auto: as Spark's threshold has it, with a hint where F is known to be below it",
            default=BROADCASTS[0],
            choices=BROADCASTS,
        ),
    ]


class LookupFrames(LookedUp, FactOn, FactChanges, Payload, Planned, total=False):
    """The keywords of a look-up of a DataFrame."""


FRAMES = Command(
    "lookup", "look a DataFrame up", (Group("", (LookupFrames, FactAccess)),),
    OF_ARCHIVES | {"fact_access": "Spark finds facts by joins of its own: leave it out, or give "
                   "broadcast"},
)  # fmt: skip


@takes(FRAMES)
def lookup(stream: DataFrame, fact: DataFrame, **options: Unpack[LookupFrames]) -> DataFrame:
    """Join a stream with the facts that are active when its tuples arrive.

    The rows are those of ``winnow lookup`` on the same archives.

    Parameters
    ----------
    stream : DataFrame
        Static or streaming; a streaming one is joined batch by batch, without any state.
    fact : DataFrame
        The fact relation, static.
    **options
        As ``winnow lookup`` has them. Times may be floats that are whole numbers.

    Returns
    -------
    DataFrame
        Columns row, fact_row, ts (ticks), importance, and those of both.

    Raises
    ------
    WinnowError
        If an option or a column is invalid. An invalid time or importance, and an invalid row of
        F, fail the query that needs them: not one that counts rows, of the importance, nor of
        tuples without a fact.

    Notes
    -----
    Lazy: an action computes it; only a change log is read by this call, on the driver. A streaming
    query plans F anew for every batch: ``fact.cache()``, with `fact_row`, reads it once.

    Examples
    --------
    >>> paid = lookup(trips, leases, on="car", time="at", fact_begin="from", fact_end="to")
    ... # doctest: +SKIP
    """
    given = FRAMES.from_keywords(options)
    check_spark(stream, "stream")
    check_spark(fact, "fact")
    if fact.isStreaming:
        raise SpecError("the fact DataFrame is a stream: give a static one, such as its last state")
    job = lookup_of(given)
    own, roles, whole = job.stream_roles, job.fact_roles, job.columns == "all"
    roles, found = _checked(stream, own, fact, roles)
    check_alone(stream, "stream", tuple(stream.columns) if whole else ())
    tuples = _tuples(stream, own, found, given["row"], whole=whole)
    facts, small = _facts(fact, roles, found, given["fact_row"], whole=whole)
    if given["broadcast"] == "always" or (given["broadcast"] == "auto" and small):
        facts = F.broadcast(facts)
    elif given["broadcast"] == "never":
        facts = facts.hint("merge")
    same = [F.col(f"{_KEY}_s{i}") == F.col(f"{_KEY}_f{i}") for i in range(len(own.on))]
    active = (F.col(_BEGIN) <= F.col(_TS)) & (F.col(_TS) < F.col(_END))
    joined = tuples.join(facts, reduce(and_, same) & active)
    names = [name for name in joined.columns if not name.startswith("__winnow_")]
    ids = ["row", "fact_row", _TS, "importance"]
    return joined.select(*ids, *(named(name) for name in names if name not in ids))


def _checked(
    stream: DataFrame, own: Roles, fact: DataFrame, roles: FactRoles
) -> tuple[FactRoles, FactColumns]:
    """Return the other columns that identify facts, and the types that both have in common."""
    archives = [
        Archive(FRAME, side, "parquet", (), arrow_schema(frame, side, wanted))
        for side, frame, wanted in (
            ("stream", stream, own.columns), ("fact", fact, tuple(fact.columns)),
        )
    ]  # fmt: skip
    roles = with_identity(roles, archives[1])
    found = check_fact_roles([(archives[0], own)], archives[1], roles)
    check_digits(found.left, own.on, roles.left)
    if own.importance is not None:
        check_importance(archives[0], own.importance)
    for side, frame, names in (("stream", stream, own.on), ("fact", fact, roles.left)):
        for name in names:
            check_collation(frame, side, name)
    return roles, found


def _tuples(
    frame: DataFrame, roles: Roles, found: FactColumns, row: str | None, *, whole: bool
) -> DataFrame:
    """Return the stream with its keys, ticks and importance."""
    number = F.lit(None)
    payload = frame.columns
    if row is not None or not frame.isStreaming:
        frame, number = with_rows(frame, "stream", row)
    if row is not None:
        number = _not_null(number, "stream", "row")
    weight = F.lit(1.0)
    if roles.importance is not None:
        weight = as_double(named(roles.importance), frame.schema[roles.importance].dataType)
        weight = _or_fail(weight, weight_fault(weight), roles.importance, "stream")
    chosen = [*_keys(frame, roles.on, found, "s"), number.cast("bigint").alias("row")]
    ts = _ticks(frame, roles.time, found.unit, "stream", required=True)
    chosen += [ts.alias(_TS), weight.alias("importance")]
    chosen += [named(name).alias(f"stream_{name}") for name in payload if whole]
    return frame.select(*chosen)


def _keys(frame: DataFrame, names: Sequence[str], found: FactColumns, side: str) -> list[Column]:
    keys = attributes(frame, names, found.left)
    return [key.alias(f"{_KEY}_{side}{i}") for i, key in enumerate(keys)]


def _or_fail(value: Column, fault: Column, name: str, side: str) -> Column:
    """Return a value, or fail the query if it has a fault."""
    words = F.array(*(F.lit(known.words) for known in FAULTS))[fault]
    said = F.concat(
        F.lit(f"column {name} of the {side} DataFrame: a row is "),
        words,
        F.lit(": correct it or filter it out"),
    )
    return F.when(fault == 0, value).otherwise(F.raise_error(said))


def _not_null(number: Column, side: str, option: str) -> Column:
    """Return a column of row numbers that fails the query where it is null."""
    said = F.lit(str(without_number(side, option)))
    return F.when(number.isNull(), F.raise_error(said)).otherwise(number)


def _ticks(frame: DataFrame, name: str, unit: str, side: str, *, required: bool) -> Column:
    """Return a time in ticks, null where it may be."""
    kind: DataType = frame.schema[name].dataType
    moment, fault = time_of(named(name), kind, unit)
    if unit == "day":
        ticks = F.unix_date(moment)
    elif unit == "tick":
        ticks = moment
    else:
        ticks = micros(moment, kind)
    ticks = ticks.cast("bigint")
    fault = far_fault(ticks, fault)
    if not required:
        fault = F.when(named(name).isNull(), 0).otherwise(fault)
    return _or_fail(ticks, fault, name, side)


def _facts(
    frame: DataFrame, roles: FactRoles, found: FactColumns, row: str | None, *, whole: bool
) -> tuple[DataFrame, bool]:
    """Return F with its keys and intervals, and whether it is known to be small."""
    payload = frame.columns if whole else []
    for name in payload:
        if name.lower() == "row":
            raise SpecError(
                f"column {name} of the fact DataFrame would be handed on as fact_{name}, beside "
                "fact_row, the row's number: rename it or ask for columns='ids'"
            )
    numbered, number = with_rows(frame, "fact", row, "fact_row")
    taken = [named(name).alias(f"fact_{name}") for name in payload]
    if roles.is_log:
        read, small = _from_log(numbered, number, frame, roles, found)
        keys = _keys(frame, roles.left, found, "f")
        return read.select(*keys, "fact_row", _BEGIN, _END, *taken), small
    if row is not None:
        number = _not_null(number, "fact", "fact_row")
    begin, end = F.lit(BEFORE), F.lit(NEVER)
    if roles.begin is not None:
        own = _ticks(numbered, roles.begin, found.unit, "fact", required=False)
        begin = F.coalesce(own, begin)
    if roles.end is not None:
        end = F.coalesce(_ticks(numbered, roles.end, found.unit, "fact", required=False), end)
    identity = [name for name in roles.identity if name not in roles.left]
    read = numbered.select(
        *_keys(frame, roles.left, found, "f"),
        number.cast("bigint").alias("fact_row"),
        begin.alias(_BEGIN),
        end.alias(_END),
        *(named(name).alias(f"__winnow_id{i}") for i, name in enumerate(identity)),
        *taken,
    )
    return _as_set(read, roles, len(roles.left), len(identity)), _is_small(frame)


def _is_small(frame: DataFrame) -> bool:
    """Return whether a DataFrame is known to be small: by its files, as numbering hides its size.

    Of one of Spark Connect nothing is known before it runs.
    """
    if of_connect(frame):
        return False
    size = frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()  # noqa: SLF001 - Spark tells it nowhere else
    return int(str(size)) <= broadcast_limit(frame.sparkSession)


def _as_set(facts: DataFrame, roles: FactRoles, keys: int, identity: int) -> DataFrame:
    """Drop rows that repeat a fact, and fail on invalid ones."""
    own = [f"{_KEY}_f{i}" for i in range(keys)] + [f"__winnow_id{i}" for i in range(identity)]
    before = Window.partitionBy(*own).orderBy(_BEGIN, "fact_row")
    begin, end = F.col(_BEGIN), F.col(_END)
    again = (begin == F.lag(_BEGIN).over(before)) & (end == F.lag(_END).over(before))
    until = F.max(_END).over(before.rowsBetween(Window.unboundedPreceding, -1))
    where = f"column {roles.begin or roles.end} of the fact DataFrame: a row is "
    remedy = ": correct it or filter it out"
    fault = (
        F.when(begin >= end, F.raise_error(F.lit(f"{where}not before the end{remedy}")))
        .when(again, F.lit(True))
        .when(begin < until, F.raise_error(F.lit(
            f"{where}{FACT_FAULTS[OVERLAPS].words}{remedy}, or name columns that tell facts of one "
            "attribute apart with fact_id")))
        .otherwise(F.lit(False))
    )  # fmt: skip
    present = [F.col(f"{_KEY}_f{i}").isNotNull() for i in range(keys)]
    kept = facts.where(reduce(and_, present))
    return kept.withColumn("__winnow_again", fault).where(~F.col("__winnow_again"))


def _from_log(
    numbered: DataFrame, number: Column, frame: DataFrame, roles: FactRoles, found: FactColumns
) -> tuple[DataFrame, bool]:
    """Read a change log on the driver; return its facts, and whether they may be broadcast."""
    session = frame.sparkSession
    ordered = numbered.select(*(named(n) for n in frame.columns), number.alias("__winnow_row"))
    with jobs_named(session, "winnow reads a log of facts"):
        table: pa.Table = collected(ordered.orderBy("__winnow_row"))
    rows = table.column("__winnow_row").cast(pa.int64())
    if rows.null_count:
        raise without_number("fact", "fact_row")
    table = table.drop_columns(["__winnow_row"])
    facts = read_facts(table, roles, found, numbers=rows.to_numpy()).facts
    order = np.argsort(facts.row, kind="stable")
    at = pa.array(facts.row[order])
    columns = [*table.take(at).columns, rows.take(at)]
    columns += [pa.chunked_array([facts.begin[order]]), pa.chunked_array([facts.end[order]])]
    own = [StructField(name, LongType()) for name in ("fact_row", _BEGIN, _END)]
    schema = StructType([*frame.schema.fields, *own])
    whole = pa.table(columns, names=schema.names)
    small = whole.nbytes <= broadcast_limit(session)
    return frame_of(session, whole, schema), small
