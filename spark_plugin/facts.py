"""A fact relation between two DataFrames: read by the driver, and its attributes by the streams.

Each stream's join attributes are replaced by numbers: the places of their values among F's, by an
outer join in Spark's own SQL. The facts, in these numbers, go to every task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import and_, or_

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.types import LongType, StructField, StructType

from engine.archives.canonical import canonical
from engine.archives.roles import JoinColumns, check_streams
from engine.archives.source import FRAME, Archive
from engine.facts.index import FactIndex, fact_index
from engine.facts.read import FactTable, read_facts
from engine.facts.relation import Facts, lanes_of, parts_of
from engine.facts.roles import FactColumns, FactRoles, check_fact_roles
from engine.runtime.errors import SpecError
from spark_plugin.columns import (
    Side,
    arrow_schema,
    as_archives,
    attributes,
    check_collation,
    check_digits,
    named,
)
from spark_plugin.hashing import lane_of, spark_type, travelled, travelling
from spark_plugin.lanes import without_number
from spark_plugin.naming import jobs_named
from spark_plugin.rows import check_spark, with_rows
from spark_plugin.session import broadcast_limit
from spark_plugin.versions import collected, frame_of

_ATTRIBUTE, _LANE, _VALUE = "__winnow_attribute", "__winnow_lane", "__winnow_value"
_ABSENT = -1


@dataclass(frozen=True)
class SharedFacts:
    """The facts as every task gets them."""

    facts: Facts
    """Its attributes are places among the values that F has."""
    access: str
    """{"scan", "index", "hash", "binary"}."""
    rows: NDArray[np.int64]
    """(n,) int64. The number of each fact's row."""
    payload: pa.Table | None
    """Payload columns, by the facts' positions."""

    @cached_property
    def index(self) -> FactIndex:
        """The facts made ready."""
        return fact_index(self.facts, self.access)


@dataclass(frozen=True)
class FactJoin:
    """Two streams and what joins them, ready to be united."""

    sides: tuple[Side, Side]
    """With numbers in place of their join attributes."""
    columns: JoinColumns
    shared: SharedFacts
    fields: tuple[StructField, ...]
    """What the result has of the facts besides the numbers of their rows."""


def join_through(
    sides: tuple[Side, Side],
    fact: DataFrame,
    roles: FactRoles,
    *,
    access: str,
    lanes: int,
    row: str | None,
    whole: bool,
) -> FactJoin:
    """Read F and prepare both streams.

    Parameters
    ----------
    sides : (Side, Side)
    fact : DataFrame
        Static; collected by the driver.
    roles : FactRoles
    access : {"scan", "index", "hash", "binary"}
    lanes : int
    row : str or None
        Integer column that numbers its rows, for one that does not come from Parquet files.
    whole : bool
        Whether to output its columns.

    Raises
    ------
    WinnowError
        If columns cannot play their part, or a row of F is no fact.
    """
    check_spark(fact, "fact")
    if fact.isStreaming:
        raise SpecError("the fact DataFrame is a stream: give a static one, such as its last state")
    common, found = _checked(sides, fact, roles)
    numbered, number = with_rows(fact, "fact", row, "fact_row")
    table, rows = _collected(numbered, fact.columns, number)
    read = read_facts(table, roles, found, numbers=rows)
    facts = read.facts
    left, a = np.unique(facts.a, return_inverse=True)
    right, b = np.unique(facts.b, return_inverse=True)
    dense = Facts(a.astype(np.int64), b.astype(np.int64), *facts[2:])
    parts = parts_of(dense)
    lane = lanes_of(parts, lanes)
    firsts = [np.unique(column, return_index=True)[1] for column in (facts.a, facts.b)]
    del left, right
    kinds, names = (found.left, found.right), (roles.left, roles.right)
    placed = [
        _placed(side, _attributes(table, read, *attribute), kind, own, lanes)
        for side, attribute, kind, own in zip(
            sides, zip(firsts, names, kinds, strict=True), kinds, lane, strict=True
        )
    ]
    payload = None
    if whole:
        taken = table.take(pa.array(facts.row))
        payload = taken.rename_columns([f"fact_{name}" for name in taken.column_names])
    fields = [
        StructField(f"fact_{field.name}", field.dataType) for field in fact.schema.fields if whole
    ]
    return FactJoin(
        (placed[0], placed[1]),
        replace(common, keys=(pa.int64(),)),
        SharedFacts(dense, access, rows[facts.row], payload),
        tuple(fields),
    )


def _checked(
    sides: tuple[Side, Side], fact: DataFrame, roles: FactRoles
) -> tuple[JoinColumns, FactColumns]:
    """Check every role's column and return what they have in common."""
    archives = as_archives(sides)
    schema = arrow_schema(fact, "fact", tuple(fact.columns))
    for column in (*roles.left, *roles.right):
        check_collation(fact, "fact", column)
    own = Archive(FRAME, "fact", "parquet", (), schema)
    streams = (archives[0], sides[0].roles), (archives[1], sides[1].roles)
    found = check_fact_roles(streams, own, roles)
    for kinds, side, theirs in zip(
        (found.left, found.right), sides, (roles.left, roles.right), strict=True
    ):
        check_digits(kinds, side.roles.on, theirs)
    common = check_streams(*streams[0], *streams[1])
    check_digits(common.groups, sides[0].roles.partition_by, sides[1].roles.partition_by)
    return common, found


def _collected(
    numbered: DataFrame, names: Sequence[str], number: Column
) -> tuple[pa.Table, NDArray[np.int64]]:
    """Return F's rows, in order of their numbers, and these."""
    chosen = numbered.select(*(named(name) for name in names), number.alias("__winnow_number"))
    with jobs_named(numbered.sparkSession, "winnow reads facts"):
        table: pa.Table = collected(chosen.orderBy("__winnow_number"))
    numbers = table.column("__winnow_number")
    if numbers.null_count:
        raise without_number("fact", "fact_row")
    rows = numbers.cast(pa.int64()).to_numpy()
    return table.drop_columns(["__winnow_number"]), rows


def _attributes(
    table: pa.Table,
    read: FactTable,
    first: NDArray[np.int64],
    names: Sequence[str],
    kinds: Sequence[pa.DataType],
) -> list[pa.Array]:
    """Return the distinct values of an attribute, in the order of their codes."""
    rows = table.take(pa.array(read.facts.row[first]))
    return [canonical(rows.column(name), kind) for name, kind in zip(names, kinds, strict=True)]


def _placed(
    side: Side,
    values: list[pa.Array],
    kinds: Sequence[pa.DataType],
    lane: NDArray[np.int64],
    lanes: int,
) -> Side:
    """Return a side with the places of its attributes among F's values, and their lanes."""
    kept = [travelling(kind) for kind in kinds]
    fields = [StructField(f"{_VALUE}{i}", spark_type(kind)) for i, kind in enumerate(kept)]
    fields += [StructField(_ATTRIBUTE, LongType()), StructField(_LANE, LongType())]
    columns = [*map(_as_spark, values), pa.array(np.arange(lane.size)), pa.array(lane)]
    known = pa.table(columns, names=[field.name for field in fields])
    session = side.frame.sparkSession
    places = frame_of(session, known, StructType(fields))
    if known.nbytes <= broadcast_limit(session):
        places = F.broadcast(places)
    keys = attributes(side.frame, side.roles.on, kinds)
    same = [key == F.col(f"{_VALUE}{i}") for i, key in enumerate(keys)]
    null = reduce(or_, [key.isNull() for key in keys])
    joined = side.frame.join(places, reduce(and_, same), "left")
    place = F.when(~null, F.coalesce(F.col(_ATTRIBUTE), F.lit(_ABSENT)))
    where = F.coalesce(F.col(_LANE), lane_of(keys, kept, lanes).cast("bigint"))
    frame = joined.withColumn(_ATTRIBUTE, place).withColumn(_LANE, where)
    return replace(
        side, frame=frame, roles=replace(side.roles, on=(_ATTRIBUTE,)), lane=F.col(_LANE)
    )


def _as_spark(values: pa.Array) -> pa.Array:
    """Return canonical values as they go through Spark."""
    values = travelled(values)
    if pt.is_large_string(values.type):
        return values.cast(pa.string())
    return values.cast(pa.binary()) if pt.is_large_binary(values.type) else values
