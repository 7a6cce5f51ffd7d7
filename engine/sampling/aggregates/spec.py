"""Aggregates of a join's outputs (P5 4.3, 6.2.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from engine.archives import families
from engine.runtime.errors import InputError, SpecError, did_you_mean
from engine.runtime.jit import Ints
from engine.runtime.time_units import parse_ticks
from engine.sampling.aggregates.literals import NotComparedError
from engine.sampling.aggregates.where import Column, Condition


class Panes(NamedTuple):
    """Windows ``[k * every, k * every + over)``, in ticks, for every whole k.

    As `over` is a multiple of `every`, a pane is `every` ticks long, and window k is the panes
    k to k + `a_window` - 1.

    Examples
    --------
    >>> sliding = Panes(10, 30)
    >>> sliding.of(np.array([-1, 0, 9, 25])).tolist()
    [-1, 0, 0, 2]
    >>> list(sliding.windows(5, 25))
    [-2, -1, 0, 1, 2]
    >>> sliding.begin(2), sliding.end(2)
    (20, 50)
    """

    every: int
    """0: one window over everything."""
    over: int

    @property
    def a_window(self) -> int:
        """Panes of a window."""
        return self.over // self.every if self.every else 1

    def of(self, ts: Ints) -> Ints:
        """Return the pane of each time: (n,) int64."""
        return ts // self.every if self.every else np.zeros(ts.size, np.int64)

    def windows(self, first: int, last: int) -> range:
        """Return the windows that meet the times `first` to `last`."""
        if not self.every:
            return range(1)
        return range(first // self.every - self.a_window + 1, last // self.every + 1)

    def begin(self, window: int) -> int:
        """Return the first tick of a window."""
        return window * self.every

    def end(self, window: int) -> int:
        """Return the tick at which a window is over."""
        return window * self.every + self.over


FUNCTIONS = ("sum", "count", "avg")


@dataclass(frozen=True)
class AggregateSpec:
    """An aggregate of the join's outputs.

    Attributes
    ----------
    text : str
        As it was written.
    function : {"sum", "count", "avg"}
    value : Column or {"importance", "*"}
        "*" only of a count.
    by : tuple of Column
        Groups; a null is a group of its own.
    where : tuple of Condition
        All of which hold for the outputs that count.
    every, over : str or None
        Windows as they were written; None for one window over everything.
    panes : Panes or None
        Windows in ticks, once resolved.
    unit : {"tick", "s", "ms", "us", "ns", "day"}
        What one tick is, once resolved.
    """

    text: str
    function: str
    value: Column | str
    by: tuple[Column, ...] = ()
    every: str | None = None
    over: str | None = None
    panes: Panes | None = None
    unit: str = "tick"
    where: tuple[Condition, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """Every column that it reads."""
        value = (self.value,) if isinstance(self.value, Column) else ()
        return (*value, *self.by, *(own.column for own in self.where))

    @property
    def windows(self) -> Panes:
        """Windows in ticks of a resolved aggregate."""
        if self.panes is None:
            raise SpecError(f"--aggregate {self.text!r} is not resolved: call resolve first")
        return self.panes

    def resolve(self, unit: str, *schemas: pa.Schema) -> AggregateSpec:
        """Return the aggregate with its columns checked and its windows in ticks.

        Parameters
        ----------
        unit : {"tick", "s", "ms", "us", "ns", "day"}
            What one tick is.
        schemas : pyarrow.Schema
            Columns of the archives, by stream.

        Raises
        ------
        InputError
            If a column is missing, a value is no number, or a group's type cannot be grouped by.
        SpecError
            If a duration is none, or `over` is no multiple of `every`.

        Examples
        --------
        >>> from engine.sampling.aggregates import parse_aggregate
        >>> schema = pa.schema([("price", pa.float64())])
        >>> parse_aggregate("sum(left.price) every 1min").resolve("s", schema, schema).panes
        Panes(every=60, over=60)
        """
        if isinstance(self.value, Column):
            kind = self._type_of(self.value, schemas)
            if self.function != "count":
                self._check_value(self.value, kind)
        for column in self.by:
            kind = self._type_of(column, schemas)
            if pt.is_nested(kind) or not _known(kind):
                raise InputError(
                    f"--aggregate {self.text!r}: column {column.name} has type {kind}, by which "
                    "nothing can be grouped: name numbers, strings, times, booleans or decimals"
                )
        for own in self.where:
            self._check_condition(own, self._type_of(own.column, schemas))
        return replace(self, panes=self._in_ticks(unit), unit=unit)

    def _type_of(self, column: Column, schemas: Sequence[pa.Schema]) -> pa.DataType:
        schema = schemas[column.side]
        if column.column not in schema.names:
            raise InputError(
                f"--aggregate {self.text!r}: stream {column.stream} has no column "
                f"{column.column!r}: it has {', '.join(schema.names) or 'none'}."
                f"{did_you_mean(column.column, schema.names)}"
            )
        return families.plain_type(schema.field(column.column).type)

    def _check_value(self, column: Column, kind: pa.DataType) -> None:
        if families.family(kind) not in ("integer", "float", "decimal", "boolean", "null"):
            raise InputError(
                f"--aggregate {self.text!r}: column {column.name} has type {kind}, of which there "
                f"is no {self.function}: name a column of numbers, or cast it; count takes any"
            )

    def _check_condition(self, own: Condition, kind: pa.DataType) -> None:
        try:
            own.check(kind)
        except NotComparedError as why:
            raise InputError(
                f"--aggregate {self.text!r}: column {own.column.name} has type {kind}, which does "
                f"not compare with {own.written_value}: {why}"
            ) from None

    def _in_ticks(self, unit: str) -> Panes:
        if self.every is None:
            return Panes(0, 0)
        every = parse_ticks(self.every, unit, f"--aggregate {self.text!r}: every {{}}", least=1)
        if self.over is None:
            return Panes(every, every)
        over = parse_ticks(self.over, unit, f"--aggregate {self.text!r}: over {{}}", least=1)
        if over < every or over % every:
            raise SpecError(
                f"--aggregate {self.text!r}: over {self.over} ({over} ticks) is no multiple of "
                f"every {self.every} ({every} ticks): make it one"
            )
        return Panes(every, over)


def added_up(
    specs: Sequence[AggregateSpec], importance: Sequence[str | None]
) -> list[tuple[tuple[int, str], ...]]:
    """Return what aggregates add up or average, each once: a stream and its column.

    Or the importances of all streams, which `importance` names, where it is that of outputs.
    """
    columns = tuple((at, name) for at, name in enumerate(importance) if name is not None)
    found = [
        ((own.value.side, own.value.column),) if isinstance(own.value, Column) else columns
        for own in specs
        if own.function != "count"
    ]
    return [own for own in dict.fromkeys(found) if own]


def _known(kind: pa.DataType) -> bool:
    """Return whether values of a type can be compared and ordered."""
    name = families.family(kind)
    return name.startswith("timestamp") or name in (
        "null", "integer", "decimal", "float", "boolean", "date", "string", "binary",
    )  # fmt: skip
