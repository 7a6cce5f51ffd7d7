"""What an estimate of an exact join draws from, and what reading it costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from engine.archives.footers import ranges
from engine.archives.roles import JoinColumns, Roles, check_roles, check_streams
from engine.archives.source import Archive
from engine.archives.stretches import RowGroups, to_read
from engine.jobs.estimate.sliced import Slices, Task, amounts, groups_of, needed, sliced
from engine.jobs.estimate.task import PairRecipe, Recipe, StretchTask, TogetherTask, join_stretch
from engine.jobs.frame import Archives
from engine.lanes.facts import FactRelation
from engine.options.estimate import EstimateOptions
from engine.runtime.jit import Floats, Ints
from engine.sampling.aggregates import AggregateSpec
from engine.sampling.aggregates.spec import added_up

_ROWS = 1_000_000
"""Tuples of a stretch of the exact join, about."""
_PARTS = 8
"""Tasks that join everything, at least, if there are as many stretches: for as many cores."""
SMALL = 500_000
"""Rows of both archives that are joined sooner than two dozen stretches of them."""


@dataclass(frozen=True)
class Plan(Slices):
    """The slices of an exact join."""

    archives: tuple[Archive, ...]
    recipe: Recipe
    groups: tuple[RowGroups, ...]

    work = staticmethod(join_stretch)

    @property
    def small(self) -> bool:
        """Whether everything takes no longer than a pilot; not of keys, nor by other predicates."""
        by_time = self.counted != "tuples" and isinstance(self.recipe, PairRecipe)
        return by_time and self.all["rows"] <= SMALL

    @cached_property
    def costs(self) -> Floats:
        """Bytes that are read for each slice, (slices,) float64."""
        return self._needed(self.edges[:-1], self.edges[1:] - 1, "bytes")

    @cached_property
    def all(self) -> dict[str, int]:
        """Bytes, row groups and rows that the exact join reads."""
        return amounts(self.groups, [np.arange(own.rows.size) for own in self.groups])

    def _needed(self, first: Ints, last: Ints, what: str) -> Floats:
        return needed(self.groups, self.recipe.windows, first, last, what)

    def task(self, place: int, draws: int = 0) -> Task:
        """Return the stretch of one slice."""
        del draws
        return self.stretch(place, place + 1)

    def stretch(self, place: int, end: int) -> StretchTask:
        """Return the stretch of the slices from one place to another."""
        first, last = int(self.edges[place]), int(self.edges[end]) - 1
        places = [
            own.meeting(first - window, last)
            for own, window in zip(self.groups, self.recipe.windows, strict=True)
        ]
        files = tuple(to_read(*own) for own in zip(self.archives, self.groups, places, strict=True))
        read = amounts(self.groups, places)
        return StretchTask(place, first, last, files, self.recipe, read)

    def whole(self, *, apart: bool = True) -> list[tuple[int, int]]:
        """Return stretches that are all of the archives' time: first slice, and one after the last.

        If they are to be told apart, none crosses the border of a window of an aggregate, or of a
        part of time.
        """
        begin = self.edges[:-1]
        marks = [np.searchsorted(self.times, np.arange(begin.size), "right")]
        marks += [spec.windows.of(begin) for spec in self.recipe.specs]
        rows = np.cumsum(self._needed(begin, self.edges[1:] - 1, "rows"))
        cuts = np.any([np.diff(mark) != 0 for mark in marks], axis=0) & apart
        found, first, before = [], 0, 0.0
        for at in range(1, begin.size + 1):
            full = at == begin.size or rows[at] - before > _ROWS
            if full or cuts[at - 1]:
                found.append((first, at))
                first, before = at, float(rows[at - 1])
        return found

    def together(self) -> list[TogetherTask]:
        """Return the tasks that join everything.

        Stretches that lie in the same row groups are read at once, in `_PARTS` tasks or more.
        """
        stretches = self.whole()
        begin, end = np.array(stretches).T
        first, last = self.edges[begin], self.edges[end] - 1
        # rows from the first stretch to each, and from each to the first
        upto = self._needed(np.full_like(first, first[0]), last, "rows")
        before = upto[0] - self._needed(first, np.full_like(last, last[0]), "rows")
        most, found, at = -(-len(stretches) // _PARTS), list[TogetherTask](), 0
        while at < len(stretches):
            rows = upto[at : at + most] - before[at]
            some = max(1, int((rows <= max(_ROWS, rows[0])).sum()))
            own = range(at, at + some)
            whole = self.stretch(int(begin[at]), int(end[own[-1]]))
            parts = tuple((int(begin[i]), int(first[i]), int(last[i])) for i in own)
            found.append(TogetherTask(whole, parts))
            at += some
        return found


def plan_of(options: EstimateOptions, archives: Archives) -> Plan:
    """Return the plan of an estimate. Reads footers, and the fact relation if there is one.

    Raises
    ------
    WinnowError
        If stretches cannot be read, or a column or an aggregate is invalid.
    """
    recipe = recipe_of(options, archives)
    columns = [recipe.columns(side) for side in (0, 1)]
    groups = groups_of(archives[:2], recipe.roles, recipe.joined[0], columns)
    panes = [own.windows.every for own in recipe.specs if own.windows.every]
    known = ranges_of(archives[:2], recipe.roles, groups, recipe.specs)
    least = recipe.combine == "min"
    start = archives.start_ts(options.base)
    edges, measures = sliced(groups, recipe.windows, start, panes, ranges=known, least=least)
    return Plan(edges, measures, archives[:2], recipe, groups)


def ranges_of(
    archives: Sequence[Archive],
    roles: Sequence[Roles],
    groups: Sequence[RowGroups],
    specs: Sequence[AggregateSpec],
) -> list[list[tuple[int, Floats]]]:
    """Return the ranges of what is added up, as `sliced` takes them."""

    def found(stream: int, column: str) -> tuple[int, Floats]:
        own = groups[stream]
        return stream, ranges(archives[stream], own.file, own.number, column)

    asked = added_up(specs, [own.importance for own in roles])
    return [[found(*one) for one in own] for own in asked]


def recipe_of(options: EstimateOptions, archives: Archives) -> PairRecipe:
    """Return how stretches of two archives are joined.

    Raises
    ------
    WinnowError
        If a column or an aggregate is invalid.
    """
    base = options.base
    schemas = archives.left.schema, archives.right.schema
    specs = tuple(spec.resolve(archives.unit, *schemas) for spec in options.specs)
    roles, joined, facts = joined_by(options, archives)
    return PairRecipe(
        archives.windows(base), base.combine, specs,
        tuple(kinds_of(spec, schemas) for spec in specs),
        base.bad_rows == "quarantine", roles, joined, facts,
    )  # fmt: skip


def joined_by(
    options: EstimateOptions, archives: Archives
) -> tuple[tuple[Roles, Roles], tuple[JoinColumns, JoinColumns], FactRelation | None]:
    """Return the roles of both streams' columns, what they are turned into, and the facts."""
    base, (left, right) = options.base, archives[:2]
    if archives.fact is None:
        roles = _apart(base.left_roles), _apart(base.right_roles)
        joined = check_roles(left, roles[0], right, roles[1])
        return roles, (joined, joined), None
    roles = base.left_roles, base.right_roles
    common, columns = check_streams(left, roles[0], right, roles[1]), archives.fact.columns
    facts = FactRelation(archives.fact, base.fact_access, base.bad_rows)
    sides = replace(common, keys=columns.left), replace(common, keys=columns.right)
    return roles, sides, facts


def _apart(roles: Roles) -> Roles:
    """Return roles whose join attributes include the partition's: each value is a join alone."""
    return replace(roles, on=(*roles.on, *roles.partition_by), partition_by=())


def kinds_of(spec: AggregateSpec, schemas: Sequence[pa.Schema]) -> tuple[pa.DataType, ...]:
    """Return the types of the columns that an aggregate groups by; schemas by stream."""
    return tuple(schemas[own.side].field(own.column).type for own in spec.by)
