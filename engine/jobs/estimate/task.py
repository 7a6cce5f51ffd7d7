"""The exact join of a stretch as a task: what it comes to, by aggregate and group."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from engine.archives import families
from engine.archives.roles import JoinColumns, Roles
from engine.archives.stretches import FileGroups, StretchTuples, read_stretch
from engine.exact import count_pairs, emit_pairs
from engine.runtime.jit import Floats, Ints
from engine.runtime.streams import SIDES
from engine.sampling.aggregates import AggregateSpec
from engine.sampling.aggregates.layout import GroupIds
from engine.sampling.aggregates.spec import Column

_COMBINED: dict[str, Callable[[Floats, Floats], Floats]] = {
    "min": np.minimum,
    "max": np.maximum,
    "sum": np.add,
    "product": np.multiply,
    "mean": lambda own, other: 0.5 * (own + other),
}
_DENSE = 1 << 20
"""Pairs of groups that are counted in an array; more are sorted."""


@dataclass(frozen=True)
class Recipe:
    """What all stretches of a job have in common."""

    roles: tuple[Roles, Roles]
    joined: JoinColumns
    windows: tuple[int, int]
    combine: str
    specs: tuple[AggregateSpec, ...]
    """Resolved."""
    kinds: tuple[tuple[pa.DataType, ...], ...]
    """Of the columns that each of them groups by."""
    quarantine: bool

    def columns(self, side: int) -> tuple[str, ...]:
        """Return the columns of a side that aggregates read."""
        used = [
            column
            for spec in self.specs
            for column in (*((spec.value,) if isinstance(spec.value, Column) else ()), *spec.by)
        ]
        return tuple(dict.fromkeys(own.column for own in used if own.side == side))


@dataclass(frozen=True)
class StretchTask:
    """A stretch to be joined."""

    place: int
    """Of its first slice."""
    first: int
    last: int
    """`first`, `last`: Ticks in which its outputs lie."""
    files: tuple[tuple[FileGroups, ...], tuple[FileGroups, ...]]
    """Row groups of left and right that have its tuples, and those of the window before it."""
    recipe: Recipe
    read: dict[str, int]
    """Bytes, row groups and rows that these are."""


class Sums(NamedTuple):
    """What the outputs of a stretch come to for one aggregate."""

    groups: list[pa.Array]
    """(g,) each. The groups' values, a column each."""
    sums: Floats
    """(g, 2) float64. Of the values, and of the outputs that have one."""


class Joined(NamedTuple):
    """What a stretch came to."""

    place: int
    sums: list[Sums]
    """By aggregate."""
    rejected: int
    seconds: float


def join_stretch(task: StretchTask) -> Joined:
    """Read a stretch and join it exactly."""
    begun = time.perf_counter()
    recipe = task.recipe
    left, right = (
        read_stretch(
            task.files[side], name, recipe.roles[side], recipe.joined, recipe.columns(side),
            (task.first - recipe.windows[side], task.last), quarantine=recipe.quarantine,
        )
        for side, name in enumerate(SIDES)
    )  # fmt: skip
    sums = _Join(left, right, recipe, task.first).sums()
    seconds = time.perf_counter() - begun
    return Joined(task.place, sums, left.rejected + right.rejected, seconds)


class _Join:
    """The exact join of a stretch."""

    def __init__(
        self, left: StretchTuples, right: StretchTuples, recipe: Recipe, first: int
    ) -> None:
        self._sides = left, right
        self._recipe, self._first = recipe, first
        self._counted: dict[object, tuple[int, float]] = {}

    def sums(self) -> list[Sums]:
        """Return the sums of every aggregate."""
        specs = self._recipe.specs
        places = [i for i, spec in enumerate(specs) if spec.by]
        found = dict(zip(places, self._grouped(places), strict=True))
        return [found[i] if spec.by else self._total(spec) for i, spec in enumerate(specs)]

    def _total(self, spec: AggregateSpec) -> Sums:
        """Return the sums of an aggregate without groups, from counts alone."""
        if not isinstance(spec.value, Column):
            outputs, importance = self._count(None, "")
            value = importance if spec.value == "importance" else outputs
            value = outputs if spec.function == "count" else value
            return Sums([], np.array([[value, outputs]], np.float64))
        number = self._count(spec.value, "valid")[1]
        value = number if spec.function == "count" else self._count(spec.value, "value")[1]
        return Sums([], np.array([[value, number]]))

    def _count(self, column: Column | None, what: str) -> tuple[int, float]:
        """Return the outputs, and the sum of their importance or of a column's cells."""
        key = column, what
        if key not in self._counted:
            left, right = (side.batch for side in self._sides)
            combine = self._recipe.combine
            if column is not None:
                value, valid = self._cells(column)
                own = value if what == "value" else valid
                weights = [np.ones(batch.ts.size) for batch in (left, right)]
                weights[column.side] = own
                left = left._replace(importance=weights[0])
                right = right._replace(importance=weights[1])
                combine = "product"
            found = count_pairs(
                left, right, *self._recipe.windows, combine, start_ts=self._first, threads=1
            )
            self._counted[key] = found.outputs, found.importance
        return self._counted[key]

    def _cells(self, column: Column) -> tuple[Floats, Floats]:
        """Return a column's cells as numbers, 0 where there is none, and 1 where there is one."""
        payload = self._sides[column.side].payload
        if payload is None:
            return np.empty(0), np.empty(0)
        cells = payload.column(column.column).combine_chunks()
        valid = cells.is_valid().to_numpy(zero_copy_only=False).astype(np.float64)
        if not _is_number(cells.type):
            return valid, valid
        numbers = pc.fill_null(pc.cast(cells, pa.float64(), safe=False), 0.0)
        return np.array(numbers.to_numpy(zero_copy_only=False)), valid

    def _grouped(self, places: Sequence[int]) -> list[Sums]:
        """Return the sums of aggregates with groups, from the pairs."""
        specs = [self._recipe.specs[i] for i in places]
        groups = [
            _Groups(spec, self._recipe.kinds[i], self._sides)
            for i, spec in zip(places, specs, strict=True)
        ]
        left, right = (side.batch for side in self._sides)
        combined = _COMBINED[self._recipe.combine]
        cells = {
            spec.value: self._cells(spec.value) for spec in specs if isinstance(spec.value, Column)
        }
        pairs = emit_pairs(left, right, *self._recipe.windows, start_ts=self._first, threads=1)
        for pair in pairs if specs else ():
            importance = combined(left.importance[pair[0]], right.importance[pair[1]])
            for spec, own in zip(specs, groups, strict=True):
                value, number = importance, np.ones(len(importance))
                if isinstance(spec.value, Column):
                    rows = pair[spec.value.side]
                    value, number = cells[spec.value][0][rows], cells[spec.value][1][rows]
                own.add(pair, number if spec.function == "count" else value, number)
        return [own.sums() for own in groups]


class _Groups:
    """The groups of an aggregate in a stretch, and their sums."""

    def __init__(
        self,
        spec: AggregateSpec,
        kinds: Sequence[pa.DataType],
        sides: tuple[StretchTuples, StretchTuples],
    ) -> None:
        self._ids, self._rows = [], []
        self._order = [column.side for column in spec.by]
        self._kinds = [families.plain_type(kind) for kind in kinds]
        for at, side in enumerate(sides):
            own = [i for i, column in enumerate(spec.by) if column.side == at]
            ids = GroupIds([kinds[i] for i in own])
            columns = [
                side.payload.column(spec.by[i].column) for i in own if side.payload is not None
            ]
            rows = side.batch.ts.size if columns or not own else 0
            self._rows.append(ids.intern(columns, rows).astype(np.int64))
            self._ids.append(ids)
        self._width = int(self._rows[1].max(initial=0)) + 1
        height = int(self._rows[0].max(initial=0)) + 1
        self._dense = np.zeros((3, self._width * height if self._width * height <= _DENSE else 0))
        self._parts: list[tuple[Ints, Floats]] = []

    def add(self, pair: tuple[Ints, Ints], value: Floats, number: Floats) -> None:
        """Add pairs with their values, and whether they have one."""
        code = self._rows[0][pair[0]] * self._width + self._rows[1][pair[1]]
        weights = np.stack([np.ones(code.size), value, number])
        if self._dense.size:
            size = self._dense.shape[1]
            self._dense += [np.bincount(code, own, size) for own in weights]
            return
        codes, at = np.unique(code, return_inverse=True)
        self._parts.append((codes, np.stack([np.bincount(at, own) for own in weights])))

    def sums(self) -> Sums:
        """Return the groups that have an output."""
        codes = np.flatnonzero(self._dense[0]) if self._dense.size else np.empty(0, np.int64)
        found = self._dense[1:, codes].T
        if self._parts:
            parts = np.concatenate([own[0] for own in self._parts])
            codes, at = np.unique(parts, return_inverse=True)
            weights = np.concatenate([own[1] for own in self._parts], axis=1)[1:]
            found = np.stack([np.bincount(at, own) for own in weights], axis=1)
        rows = codes // self._width, codes % self._width
        values = [iter(ids.values()) for ids in self._ids]
        if not codes.size:
            return Sums([pa.array([], kind) for kind in self._kinds], np.empty((0, 2)))
        groups = [next(values[side]).take(pa.array(rows[side])) for side in self._order]
        return Sums(groups, found)


def _is_number(kind: pa.DataType) -> bool:
    """Return whether a column has numbers to add up; of others, cells are only counted."""
    return families.family(kind) in ("integer", "float", "decimal", "boolean")
