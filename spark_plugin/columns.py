"""The columns of both sides for the workers: checked, canonical, tagged with their side, united."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody has it
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from engine.archives.roles import JoinColumns, Roles, check_roles
from engine.archives.source import FRAME, Archive
from engine.archives.ticks import FAULTS
from engine.jobs.output import IDS
from engine.runtime.errors import InputError, SpecError
from engine.runtime.streams import SIDES
from engine.runtime.time_units import FARTHEST
from spark_plugin.hashing import as_double, attribute, lane_of, travelling
from spark_plugin.lanes import GROUP, KEY, Layout
from spark_plugin.rows import OURS
from spark_plugin.versions import arrow_type

_FAULT = {(fault.role, fault.words): code for code, fault in enumerate(FAULTS)}
_LIMIT = float(2**63)


@dataclass(frozen=True)
class Side:
    """One stream as a DataFrame."""

    frame: DataFrame
    roles: Roles
    row: Column
    """Its row numbers."""
    payload: tuple[str, ...]
    """Payload columns."""
    lane: Column | None = None
    """Lane of each row within its group; by default the hash of its join attributes."""


def named(name: str) -> Column:
    """Return the top-level column of exactly this name."""
    return F.col("`" + name.replace("`", "``") + "`")


def _reading(frame: DataFrame) -> Callable[[str], str]:
    """Return what gives names that the session does not tell apart one spelling."""
    told = frame.sparkSession.conf.get("spark.sql.caseSensitive")  # as it was set: perhaps TRUE
    return str if str(told).lower() == "true" else str.lower


def check_told_apart(frame: DataFrame, names: Iterable[str]) -> None:
    """Raise `SpecError` if Spark does not tell two columns of an output apart."""
    read, first = _reading(frame), dict[str, str]()
    for name in names:
        if (other := first.setdefault(read(name), name)) != name:
            raise SpecError(
                f"columns of the output would be called {other} and {name}, which Spark does not "
                "tell apart: rename a column or a stream"
            )


def check_alone(frame: DataFrame, side: str, wanted: tuple[str, ...]) -> None:
    """Raise `SpecError` if a wanted column shares its name with another."""
    read = _reading(frame)
    spelt: dict[str, list[str]] = {}
    for name in frame.columns:
        spelt.setdefault(read(name), []).append(name)
    for name in frame.columns:
        alike = spelt[read(name)]
        if len(alike) > 1 and name in wanted:
            own = " or ".join(dict.fromkeys(alike))
            raise SpecError(f"the {side} DataFrame has more than one column {own}: rename one")


def arrow_schema(frame: DataFrame, side: str, wanted: tuple[str, ...]) -> pa.Schema:
    """Return the schema of a DataFrame in Arrow types, as archives have it.

    Raises
    ------
    SpecError
        If a wanted column has no such type, does not compare by its bytes, or shares its name with
        another.
    """
    check_alone(frame, side, wanted)
    fields = []
    for field in frame.schema:
        if field.name in OURS:
            continue
        try:
            fields.append((field.name, arrow_type(field.dataType)))
        except Exception as error:  # pyspark raises several for a type that Arrow lacks
            if field.name in wanted:
                raise SpecError(
                    f"column {field.name} of the {side} DataFrame has type "
                    f"{field.dataType.simpleString()}, which Arrow lacks: cast or drop it"
                ) from error
    return pa.schema(fields)


def as_archives(sides: tuple[Side, Side]) -> list[Archive]:
    """Return both sides as archives, their columns' names, types and collations checked."""
    archives = []
    for side, name in zip(sides, SIDES, strict=True):
        schema = arrow_schema(side.frame, name, side.roles.columns + side.payload)
        archives.append(Archive(FRAME, name, "parquet", (), schema))
        for column in (*side.roles.on, *side.roles.partition_by):
            check_collation(side.frame, name, column)
    return archives


def check_columns(sides: tuple[Side, Side]) -> JoinColumns:
    """Check the columns of all roles as for archives; return what both sides have in common."""
    left, right = as_archives(sides)
    columns = check_roles(left, sides[0].roles, right, sides[1].roles)
    check_digits(
        columns.keys + columns.groups,
        sides[0].roles.on + sides[0].roles.partition_by,
        sides[1].roles.on + sides[1].roles.partition_by,
    )
    return columns


def check_digits(kinds: Sequence[pa.DataType], left: Sequence[str], right: Sequence[str]) -> None:
    """Raise `InputError` if Spark lacks the common type of two columns."""
    for kind, one, other in zip(kinds, left, right, strict=True):
        if pt.is_decimal256(kind):
            raise InputError(
                f"columns {one} and {other} together need {kind.precision} digits, and Spark has "
                "38: cast both to one decimal"
            )


def check_collation(frame: DataFrame, side: str, name: str) -> None:
    """Raise `InputError` if a column does not compare by its bytes."""
    for field in frame.schema:
        kind = field.dataType
        if field.name == name and isinstance(kind, StringType) and kind != StringType():
            text = kind.simpleString()
            if "collate" in text:
                raise InputError(
                    f"column {name} of the {side} DataFrame has type {text}: the join compares "
                    "bytes; cast the column to STRING"
                )


def unite(sides: tuple[Side, Side], columns: JoinColumns, lanes: int) -> DataFrame:
    """Return both streams as one, in the columns of `layout_of`, without null join attributes.

    A row with an invalid time or importance keeps its fault, and stays whatever its keys are.
    """
    whole = tuple(_projected(code, sides, columns, lanes) for code in (0, 1))
    united: DataFrame = whole[0].unionAll(whole[1])
    return united


def _projected(code: int, sides: tuple[Side, Side], columns: JoinColumns, lanes: int) -> DataFrame:
    side = sides[code]
    roles, frame = side.roles, side.frame
    keys = attributes(frame, roles.on, columns.keys)
    groups = attributes(frame, roles.partition_by, columns.groups)
    ts, fault = time_of(named(roles.time), frame.schema[roles.time].dataType, columns.unit)
    weight, own = F.lit(1.0), F.lit(0)
    if roles.importance is not None:
        kind = frame.schema[roles.importance].dataType
        weight = as_double(named(roles.importance), kind)
        own = weight_fault(weight)
    chosen = [column.alias(f"{GROUP}{i}") for i, column in enumerate(groups)]
    chosen += [
        _lane(side, keys, columns, lanes).cast("int").alias("lane"),
        ts.alias("ts"),
        F.lit(code).cast("tinyint").alias("side"),
        side.row.cast("bigint").alias("row"),
        F.when(fault != 0, fault).otherwise(own).cast("tinyint").alias("fault"),
        weight.alias("importance"),
    ]
    chosen += [column.alias(f"{KEY}{i}") for i, column in enumerate(keys)]
    for owner, prefix in zip(sides, SIDES, strict=True):
        for name in owner.payload:
            kind = owner.frame.schema[name].dataType
            column = named(name) if owner is side else F.lit(None).cast(kind)
            chosen.append(column.alias(f"{prefix}_{name}"))
    projected = frame.select(*chosen)
    present = [named(f"{GROUP}{i}").isNotNull() for i in range(len(groups))]
    present += [named(f"{KEY}{i}").isNotNull() for i in range(len(keys))]
    whole: DataFrame = projected.where(reduce(and_, present) | (F.col("fault") != 0))
    return whole


def _lane(side: Side, keys: Sequence[Column], columns: JoinColumns, lanes: int) -> Column:
    if lanes == 1:
        return F.lit(0)
    kinds = [travelling(kind) for kind in columns.keys]
    return lane_of(keys, kinds, lanes) if side.lane is None else side.lane


def attributes(
    frame: DataFrame, names: Sequence[str], kinds: Sequence[pa.DataType]
) -> list[Column]:
    """Return the columns of these names, in the types in which canonical types go through Spark."""
    return [
        attribute(named(name), frame.schema[name].dataType, kind)
        for name, kind in zip(names, kinds, strict=True)
    ]


def time_of(column: Column, kind: DataType, unit: str) -> tuple[Column, Column]:
    """Return a time in its canonical type and the fault of a null, NaN or broken one."""
    null = F.when(column.isNull(), _code("time", "null"))
    if unit == "day":
        return column.cast("date"), null.otherwise(0)
    if unit != "tick":
        zoned = "timestamp_ntz" if kind.typeName() == "timestamp_ntz" else "timestamp_ltz"
        return column.cast(zoned), null.otherwise(0)
    if kind.typeName() not in ("float", "double"):
        ticks = column.cast("bigint")
        return ticks, far_fault(ticks, null.otherwise(0))
    number = column.cast("double")
    whole = F.when((number >= -_LIMIT) & (number < _LIMIT), number).cast("bigint")
    fault = (
        null.when(F.isnan(number), _code("time", "NaN"))
        .when(F.abs(number) == float("inf"), _code("time", "infinite"))
        .when((number >= _LIMIT) | (number < -_LIMIT), _code("time", "out of int64 range"))
        .when(whole.cast("double") != number, _code("time", "not a whole number of ticks"))
        .otherwise(0)
    )
    return whole, far_fault(whole, fault)


def far_fault(ticks: Column, fault: Column) -> Column:
    """Return the fault of a time that may also be too far away."""
    away = (ticks >= FARTHEST) | (ticks < -FARTHEST)
    return F.when(fault != 0, fault).when(away, _code("time", "beyond 2^62 ticks")).otherwise(0)


def weight_fault(weight: Column) -> Column:
    """Return the fault of an importance, 0 for none."""
    infinite = F.abs(weight) == float("inf")
    return (
        F.when(weight.isNull(), _code("importance", "null"))
        .when(F.isnan(weight), _code("importance", "NaN"))
        .when(infinite, _code("importance", "infinite"))
        .when(weight < 0, _code("importance", "negative"))
        .when(weight > 1e100, _code("importance", "greater than 1e100"))
        .otherwise(0)
    )


def _code(role: str, words: str) -> Column:
    return F.lit(_FAULT[role, words])


def layout_of(sides: tuple[Side, Side], columns: JoinColumns) -> Layout:
    """Return the layout of the columns of `unite`, for the workers."""
    return Layout(
        columns.unit,
        columns.zoned,
        tuple(map(travelling, columns.keys)),
        tuple(map(travelling, columns.groups)),
        tuple((side.roles.time, side.roles.importance or "") for side in sides),
    )


def output_schema(
    sides: tuple[Side, Side], facts: Sequence[StructField] | None = None
) -> StructType:
    """Return the columns of the result; `facts` are those of the facts that join the members."""
    fields = [StructField(field.name, from_arrow_type(field.type)) for field in IDS]
    if facts is not None:
        fields.insert(2, StructField("fact_row", LongType()))
    for side, prefix in zip(sides, SIDES, strict=True):
        fields += [
            StructField(f"{prefix}_{name}", side.frame.schema[name].dataType)
            for name in side.payload
        ]
    return StructType([*fields, *(facts or ())])
