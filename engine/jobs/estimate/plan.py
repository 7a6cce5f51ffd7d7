"""What an estimate draws from: the slices of two archives' time, and what reading them costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from engine.archives.roles import Roles, check_roles
from engine.archives.stretches import RowGroups, row_groups, to_read
from engine.jobs.estimate.task import Recipe, StretchTask
from engine.jobs.frame import Archives
from engine.options.estimate import EstimateOptions
from engine.runtime.errors import InputError
from engine.runtime.jit import Floats, Ints
from engine.sampling.aggregates import AggregateSpec
from engine.sampling.stretches import slices

TIMES = 24
"""Parts of the archives' time of which the report has an estimate each, about."""
_ROWS = 1_000_000
"""Tuples of a stretch of the exact join, about."""


@dataclass(frozen=True)
class Plan:
    """The slices of a job."""

    archives: Archives
    recipe: Recipe
    groups: tuple[RowGroups, RowGroups]
    edges: Ints
    """First tick of every slice, and the tick after the last, (slices + 1,) int64."""
    measures: slices.Measures
    """What footers tell of each."""

    @property
    def slices(self) -> int:
        """How many there are."""
        return self.edges.size - 1

    @cached_property
    def worth(self) -> int:
        """How many of them have tuples."""
        return int((self.measures.tuples > 0).sum())

    @cached_property
    def costs(self) -> Floats:
        """Bytes that are read for each slice, (slices,) float64."""
        return self.needed(self.edges[:-1], self.edges[1:] - 1, "bytes")

    @cached_property
    def all(self) -> dict[str, int]:
        """Bytes, row groups and rows that the exact join reads."""
        return {
            "bytes": sum(int(own.bytes.sum()) for own in self.groups),
            "row_groups": sum(own.rows.size for own in self.groups),
            "rows": sum(int(own.rows.sum()) for own in self.groups),
        }

    @property
    def times(self) -> Ints:
        """Places of the first slice of each part of time, and of the one after the last."""
        slots = np.linspace(0, self.slices, min(TIMES, self.slices) + 1)
        return np.unique(slots.astype(np.int64))

    def needed(self, first: Ints, last: Ints, what: str) -> Floats:
        """Return what is read for stretches: their row groups' `what`, added up."""
        found = np.zeros(first.size)
        for own, window in zip(self.groups, self.recipe.windows, strict=True):
            amount = getattr(own, what).astype(np.float64)
            found += _before(own.low, amount, last + 1) - _before(own.high, amount, first - window)
        return found

    def task(self, place: int, end: int | None = None) -> StretchTask:
        """Return the stretch of one slice, or of all to `end`."""
        first = int(self.edges[place])
        last = int(self.edges[place + 1 if end is None else end]) - 1
        places = [
            own.meeting(first - window, last)
            for own, window in zip(self.groups, self.recipe.windows, strict=True)
        ]
        both = list(zip(self.archives[:2], self.groups, places, strict=True))
        left, right = (to_read(archive, own, at) for archive, own, at in both)
        read = {
            "bytes": sum(int(own.bytes[at].sum()) for _, own, at in both),
            "row_groups": sum(at.size for *_, at in both),
            "rows": sum(int(own.rows[at].sum()) for _, own, at in both),
        }
        return StretchTask(place, first, last, (left, right), self.recipe, read)

    def whole(self) -> list[tuple[int, int]]:
        """Return stretches that are all of the archives' time: first slice, and one after the last.

        None crosses the border of a window of an aggregate, or of a part of time.
        """
        begin = self.edges[:-1]
        marks = [np.searchsorted(self.times, np.arange(begin.size), "right")]
        marks += [spec.windows.of(begin) for spec in self.recipe.specs]
        rows = np.cumsum(self.needed(begin, self.edges[1:] - 1, "rows"))
        cuts = np.any([np.diff(mark) != 0 for mark in marks], axis=0)
        found, first, before = [], 0, 0.0
        for at in range(1, begin.size + 1):
            full = at == begin.size or rows[at] - before > _ROWS
            if full or cuts[at - 1]:
                found.append((first, at))
                first, before = at, float(rows[at - 1])
        return found


def plan_of(options: EstimateOptions, archives: Archives) -> Plan:
    """Return the plan of an estimate. Reads footers only.

    Raises
    ------
    WinnowError
        If stretches cannot be read, or a column or an aggregate is invalid.
    """
    base = options.base
    schemas = archives.left.schema, archives.right.schema
    specs = tuple(spec.resolve(archives.unit, *schemas) for spec in options.specs)
    roles = (_apart(base.left_roles), _apart(base.right_roles))
    joined = check_roles(archives.left, roles[0], archives.right, roles[1])
    windows = archives.windows(base)
    recipe = Recipe(
        roles, joined, windows, base.combine, specs,
        tuple(_kinds(spec, schemas) for spec in specs), base.bad_rows == "quarantine",
    )  # fmt: skip
    groups = [
        row_groups(archive, own.time, joined.unit, own.on, (*own.columns, *recipe.columns(side)))
        for side, (archive, own) in enumerate(zip(archives[:2], roles, strict=True))
    ]
    for archive, own in zip(archives[:2], groups, strict=True):
        if not own.rows.size:
            raise InputError(f"{archive.side} archive {archive.where} is empty: nothing joins")
    span = min(int(own.low.min()) for own in groups), max(int(own.high.max()) for own in groups)
    start = archives.start_ts(base)
    if start is not None:
        span = max(span[0], start), max(span[1], start)
    ticks = span[1] - span[0] + 1
    mean = max(_length(own) for own in groups)
    length = slices.length_of(ticks, max(windows) + 1, mean)
    edges = slices.cut(span, length, [own.windows.every for own in specs if own.windows.every])
    spreads = [slices.spread_of(own.low, own.high, own.rows) for own in groups]
    weighted = [
        slices.spread_of(own.low, own.high, slices.by_keys(own.rows, own.key_bytes))
        for own in groups
    ]
    measures = slices.measures(edges, (spreads[0], spreads[1]), windows, (weighted[0], weighted[1]))
    return Plan(archives, recipe, (groups[0], groups[1]), edges, measures)


def _before(ticks: Ints, amount: Floats, at: Ints) -> Floats:
    """Return the sum of the amounts whose ticks are less, for each of some ticks."""
    order = np.argsort(ticks, kind="stable")
    total: Floats = np.concatenate([[0.0], np.cumsum(amount[order])])
    return total[np.searchsorted(ticks[order], at)]


def _length(groups: RowGroups) -> float:
    """Return how many ticks a row group has, on average."""
    return float((groups.high - groups.low + 1).astype(np.float64).mean())


def _apart(roles: Roles) -> Roles:
    """Return roles whose join attributes include the partition's: each value is a join alone."""
    return replace(roles, on=(*roles.on, *roles.partition_by), partition_by=())


def _kinds(spec: AggregateSpec, schemas: Sequence[pa.Schema]) -> tuple[pa.DataType, ...]:
    return tuple(schemas[own.side].field(own.column).type for own in spec.by)
