"""The estimates of an aggregate, a row a window and group, from what slices came to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from engine.jobs.estimate.plan import Plan
from engine.jobs.estimate.seen import Earlier, Seen
from engine.jobs.estimate.task import Joined
from engine.runtime.jit import Floats, Ints
from engine.sampling.aggregates import AggregateSpec
from engine.sampling.aggregates.estimate import in_order
from engine.sampling.aggregates.layout import GroupIds
from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.foreseen import allowing
from engine.sampling.stretches.interval import (
    FEWEST,
    FEWEST_POOLED,
    Cell,
    Pooled,
    answer,
    residuals,
)
from engine.sampling.stretches.needed import Anticipated, Entries, Places, Sampled
from engine.sampling.stretches.pooled import pooled
from engine.sampling.stretches.units import units_of

Window: TypeAlias = tuple[int | None, int, int]
"""A window of time, with the places of its first slice and of that after its last."""
_Placed: TypeAlias = tuple[Window, int, Cell]
"""A cell, with its window and its group."""


class Estimated(NamedTuple):
    """The estimates of one aggregate."""

    table: pa.Table
    """window_begin, window_end (ticks, int64; null without `every`), the group columns, estimate,
    low, high, standard_error (float64), no_interval (string: why there is none) and stretches
    (int64: those that were joined)."""
    answers: list[Answer]
    wanted: Anticipated
    """The cells, as far as the sample tells of them."""

    @property
    def dominated(self) -> bool:
        """Whether one of the slices outweighs the others somewhere."""
        return any(own.dominated for own in self.answers)

    @property
    def reached(self) -> float:
        """How far the widest interval reaches relative to its estimate."""
        return max((own.within for own in self.answers), default=np.inf)


class _Entries(NamedTuple):
    """What slices came to, one entry a slice and group, by group: (n,) each."""

    group: Ints
    at: Ints
    """Which slice."""
    sums: Floats
    """(n, 2). Of values, in the unit of their group, and the number of outputs."""

    def dense(self, groups: slice, slices: int, picked: Ints) -> Floats:
        """Return the sums of one group, a row a slice: (picked, 2) float64."""
        found = np.zeros((slices, 2))
        found[self.at[groups]] = self.sums[groups]
        return found[picked]

    def largest(self, groups: int) -> Floats:
        """Return the greatest finite magnitude of the sums of values of each group: (groups,)."""
        size = np.abs(self.sums[:, 0])
        found = np.zeros(groups)
        np.maximum.at(found, self.group, np.where(np.isfinite(size), size, 0.0))
        return found

    def in_units(self, units: Floats) -> _Entries:
        """Return them with the values of each group divided by its unit."""
        sums = self.sums.copy()
        sums[:, 0] /= units[self.group]
        return self._replace(sums=sums)


def _entries(found: Sequence[Joined], spec: int, ids: GroupIds | None) -> _Entries:
    groups, at, sums = [], [], []
    for i, one in enumerate(found):
        own = one.sums[spec]
        rows = len(own.sums)
        if ids is None:
            groups.append(np.zeros(1, np.int64))
            sums.append(own.sums.sum(axis=0, keepdims=True))
            at.append(np.full(1, i))
            continue
        columns = [pa.chunked_array([column]) for column in own.groups]
        groups.append(ids.intern(columns, rows).astype(np.int64) if rows else np.empty(0, np.int64))
        sums.append(own.sums)
        at.append(np.full(rows, i))
    if not groups:
        return _Entries(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2)))
    group = np.concatenate(groups)
    order = np.argsort(group, kind="stable")
    return _Entries(group[order], np.concatenate(at)[order], np.concatenate(sums)[order])


class Cells:
    """The cells of one aggregate.

    Parameters
    ----------
    spec : int
        Which aggregate.
    grouped : bool
        Whether its groups are told apart.
    """

    def __init__(self, plan: Plan, own: Seen, spec: int, *, grouped: bool = True) -> None:
        self._plan, self._own = plan, own
        self.spec: AggregateSpec = plan.recipe.specs[spec]
        self.ids = GroupIds(list(plan.recipe.kinds[spec])) if grouped and self.spec.by else None
        both = [_entries(part, spec, self.ids) for part in (own.certain, own.by_chance)]
        groups = 1 + max(int(part.group.max(initial=0)) for part in both)
        self._units = np.ones(groups)
        if not own.whole:  # else nothing is squared
            self._units = units_of(np.maximum(*(part.largest(groups) for part in both)))
        self._certain, self._by_chance = (part.in_units(self._units) for part in both)
        self._places = [
            np.array([one.place for one in part], np.int64) for part in (own.certain, own.by_chance)
        ]

    def cells(self, begin: int, end: int) -> list[tuple[int, Cell]]:
        """Return the groups with an output in the slices from one place to another.

        Their values are in the unit of the group, which `answer` takes out again.
        """
        certain, by_chance = (
            np.flatnonzero((places >= begin) & (places < end)) for places in self._places
        )
        groups = [np.zeros(1, np.int64)]
        if self.ids is not None:
            groups = [
                part.group[np.isin(part.at, picked)]
                for part, picked in ((self._certain, certain), (self._by_chance, by_chance))
            ]
        size = self._own.size(begin, end)
        worth = self._own.known(begin, end, by_chance)
        known = self._own.averages_by(begin, end, by_chance)
        found = []
        for group in np.unique(np.concatenate(groups)).tolist():
            parts = [
                entries.dense(_range(entries.group, group), places.size, picked)
                for entries, places, picked in (
                    (self._certain, self._places[0], certain),
                    (self._by_chance, self._places[1], by_chance),
                )
            ]
            own = Cell(
                parts[0].sum(axis=0), parts[1], self._own.sizes[by_chance],
                self._own.chance[by_chance], size, worth, known,
            )  # fmt: skip
            found.append((group, own))
        return found

    def answer(self, group: int, cell: Cell, level: float, alike: Pooled | None = None) -> Answer:
        """Return what a cell has; `alike` tells how much slices of all windows differ."""
        found = answer(cell, level, average=self.spec.function == "avg", pooled=alike)
        return self._own.told(found.times(float(self._units[group])))

    def by_time(self, confidence: float) -> list[Answer]:
        """Return what parts of time have in all groups, each with an interval for itself."""
        parts: list[Window] = [(None, *ends) for ends in self._own.parts(self._plan.times)]
        cells = [(one, 0, own) for one in parts for _, own in self.cells(*one[1:])]
        return self._answers(cells, confidence, 1)

    def estimated(self, confidence: float, earlier: Sequence[Earlier] = ()) -> Estimated:
        """Return the estimates; all intervals together cover with this confidence.

        Where there are no groups, they allow for what earlier rounds foresee.
        """
        windows = windows_of(self._plan, self.spec)
        cells = [(one, group, own) for one in windows for group, own in self.cells(*one[1:])]
        level = 1 - (1 - confidence) / max(1, len(cells))
        answers = self._answers(cells, level, self.spec.windows.a_window)
        if self.ids is None:
            answers = [
                allowing(own, own.within, [one.foreseen(i) for one in earlier])
                for i, own in enumerate(answers)
            ]
        places = Places(
            np.array([one[1] for one, _, _ in cells], np.int64),
            np.array([one[2] for one, _, _ in cells], np.int64),
            np.full(len(cells), level),
            FEWEST if len(windows) == 1 else FEWEST_POOLED,
        )
        return Estimated(
            self._table(cells, answers), answers, self._anticipated(places, cells, answers)
        )

    def _answers(self, cells: Sequence[_Placed], level: float, overlap: int) -> list[Answer]:
        """Return what cells have; those with few slices go by all windows of their group.

        A slice is in so many windows that overlap.
        """
        average = self.spec.function == "avg"
        by_group: dict[int, list[Cell]] = {}
        for _, group, own in cells:
            by_group.setdefault(group, []).append(own)
        together = {
            group: pooled(own, average=average, overlap=overlap) if len(own) > 1 else None
            for group, own in by_group.items()
        }
        return [self.answer(group, own, level, together[group]) for _, group, own in cells]

    def _anticipated(
        self, places: Places, cells: Sequence[_Placed], answers: Sequence[Answer]
    ) -> Anticipated:
        """Return what the sample tells of cells."""
        average = self.spec.function == "avg"
        n = self._places[0].size
        every, at, values, units = [], [], [], []
        for number, ((_, group, own), one) in enumerate(zip(cells, answers, strict=True)):
            known = one.estimate / float(self._units[group])
            known = known if math.isfinite(known) else 0.0
            window = slice(places.begin[number], places.end[number])
            explained = [np.zeros(picked.size) for picked in self._places]
            if average:
                there = (self._places[1] >= window.start) & (self._places[1] < window.stop)
                explained[1][there] = residuals(own, average=True).explained
            for entries, shift, picked, less in zip(
                (self._certain, self._by_chance), (0, n), self._places, explained, strict=True
            ):
                mine = _range(entries.group, group)
                inside = np.flatnonzero(
                    (picked[entries.at[mine]] >= window.start)
                    & (picked[entries.at[mine]] < window.stop)
                )
                sums = entries.sums[mine][inside]
                apart = sums[:, 0] - known * sums[:, 1] if average else sums[:, 0]
                values.append(apart - less[entries.at[mine][inside]])
                at.append(entries.at[mine][inside] + shift)
                every.append(np.full(inside.size, number))
            units.append(abs(known) * (_outputs(own) if average else 1.0))
        none = np.empty(0, np.int64)
        weights = np.concatenate([np.ones(n), 1 / self._own.chance])
        return Anticipated(
            places, Sampled(np.concatenate(self._places), weights),
            Entries(
                np.concatenate([none, *every]), np.concatenate([none, *at]),
                np.concatenate([np.empty(0), *values]),
            ),
            np.array(units, np.float64),
            np.array([own.apart if math.isfinite(own.apart) else 1.0 for own in answers]),
            totals=not average,
        )  # fmt: skip

    def _table(self, cells: list[_Placed], answers: list[Answer]) -> pa.Table:
        panes = self.spec.windows
        named = [None if one[0] is None else panes.begin(one[0]) for one, _, _ in cells]
        ends = [None if one[0] is None else panes.end(one[0]) for one, _, _ in cells]
        columns = {
            "window_begin": pa.array(named, pa.int64()), "window_end": pa.array(ends, pa.int64())
        }  # fmt: skip
        if self.ids is not None:
            rows = pa.array([group for _, group, _ in cells], pa.int64())
            values = self.ids.values() if len(cells) else [
                pa.array([], kind) for kind in self.ids.kinds
            ]  # fmt: skip
            columns |= {
                column.name: own.take(rows)
                for column, own in zip(self.spec.by, values, strict=True)
            }
        for name, field in (
            ("estimate", "estimate"), ("low", "low"), ("high", "high"), ("standard_error", "error"),
        ):  # fmt: skip
            numbers = np.array([getattr(own, field) for own in answers], np.float64)
            columns[name] = pa.array(numbers, mask=np.isnan(numbers))
        columns["no_interval"] = pa.array([own.reason for own in answers], pa.string())
        places = np.sort(np.concatenate(self._places))
        joined = [int(np.diff(np.searchsorted(places, one[1:]))[0]) for one, _, _ in cells]
        columns["stretches"] = pa.array(joined, pa.int64())
        return in_order(pa.table(columns), len(self.spec.by) + 1)


def windows_of(plan: Plan, spec: AggregateSpec) -> list[Window]:
    """Return the windows of an aggregate."""
    edges, panes = plan.edges, spec.windows
    if not panes.every:
        return [(None, 0, edges.size - 1)]
    found: list[Window] = []
    for window in panes.windows(int(edges[0]), int(edges[-1]) - 1):
        ends = [panes.begin(window), panes.end(window)]
        begin, end = np.searchsorted(edges[:-1], ends).tolist()
        found.append((window, begin, end))
    return found


def _outputs(cell: Cell) -> float:
    """Return how many outputs a cell has, about."""
    n = cell.sizes.size
    by_chance = cell.size * float((cell.values[:, 1] / cell.sizes).mean()) if n else 0.0
    return float(cell.certain[1]) + by_chance


def _range(group: Ints, which: int) -> slice:
    return slice(*np.searchsorted(group, [which, which + 1]).tolist())
