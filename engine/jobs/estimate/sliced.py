"""The slices of the archives' time, as footers suggest them, and what reading them costs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np

from engine.archives.roles import JoinColumns, Roles
from engine.archives.source import Archive
from engine.archives.stretches import RowGroups, row_groups
from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches import density, slices
from engine.sampling.stretches.measures import Measures, measures_of

TIMES = 24
"""Parts of the archives' time of which the report has an estimate each, about."""
_AGAIN = 0.25
"""Times the bytes of all archives that all slices together may read of one's row groups again."""


@dataclass(frozen=True)
class Slices(ABC):
    """The slices of a job, of which it draws some."""

    edges: Ints
    """First tick of every slice, and the tick after the last, (slices + 1,) int64."""
    measures: Measures
    """What is known of each before it is read."""

    @property
    def slices(self) -> int:
        """How many there are."""
        return self.edges.size - 1

    @property
    def ticks(self) -> int:
        """Ticks of the slice of a tuple, the median over tuples."""
        long = np.diff(self.edges)
        order = np.argsort(long, kind="stable")
        tuples = np.cumsum(self.measures.tuples[order])
        return int(long[order[np.searchsorted(tuples, tuples[-1] / 2)]])

    @cached_property
    def worth(self) -> int:
        """How many of them have tuples."""
        return int((self.measures.tuples > 0).sum())

    @cached_property
    def odd(self) -> Ints:
        """Places of those that are unlike the others."""
        return self.measures.odd

    @property
    def known(self) -> Floats | None:
        """What averages go with and is known of each before: (slices, n) float64, if any is."""
        return self.measures.of_values

    @property
    def times(self) -> Ints:
        """Places of the first slice of each part of time, and of the one after the last."""
        slots = np.linspace(0, self.slices, min(TIMES, self.slices) + 1)
        return np.unique(slots.astype(np.int64))

    @property
    def small(self) -> bool:
        """Whether everything takes no longer than a pilot."""
        return False

    @property
    @abstractmethod
    def costs(self) -> Floats:
        """What is read for each slice, (slices,) float64."""

    @property
    @abstractmethod
    def all(self) -> dict[str, int]:
        """What is read where nothing is sampled: bytes, row groups and rows."""

    counted: ClassVar[str] = "bytes"
    """By which of these costs are counted."""

    @abstractmethod
    def task(self, place: int, draws: int) -> Task:
        """Return the task of a slice, one of so many that are drawn."""

    @staticmethod
    @abstractmethod
    def work(task: Any) -> Any:  # noqa: ANN401 - of one kind of task, whichever that is
        """Do a task: a function that can be sent elsewhere."""


class Task(Protocol):
    """What a slice asks for."""

    @property
    def read(self) -> Mapping[str, int]:
        """Bytes, row groups and rows that it reads."""
        ...


def needed(
    groups: Sequence[RowGroups], reach: Sequence[int], first: Ints, last: Ints, what: str
) -> Floats:
    """Return what is read for stretches: their row groups' `what`, added up.

    Parameters
    ----------
    reach : sequence of int
        Ticks that are read before each stretch, by stream.
    first, last : (n,) int64
        Ticks of the stretches.
    what : {"bytes", "rows"}
    """
    found = np.zeros(first.size)
    for own, before in zip(groups, reach, strict=True):
        amount = getattr(own, what).astype(np.float64)
        found += _before(own.low, amount, last + 1) - _before(own.high, amount, first - before)
    return found


def amounts(groups: Sequence[RowGroups], places: Sequence[Ints]) -> dict[str, int]:
    """Return bytes, row groups and rows of some row groups of every stream."""
    both = list(zip(groups, places, strict=True))
    return {
        "bytes": sum(int(own.bytes[at].sum()) for own, at in both),
        "row_groups": sum(at.size for _, at in both),
        "rows": sum(int(own.rows[at].sum()) for own, at in both),
    }


def sliced(
    groups: Sequence[RowGroups],
    windows: Sequence[int],
    start: int | None,
    panes: Sequence[int] = (),
    lifetimes: tuple[int, int] = slices.LIFETIMES,
    ranges: Sequence[Sequence[tuple[int, Floats]]] = (),
    *,
    least: bool = False,
) -> tuple[Ints, Measures]:
    """Cut the time of archives as their footers suggest, and return what these tell of slices.

    Where an archive is empty, no slice is worth joining, and only borders of panes cut them.

    Parameters
    ----------
    windows : sequence of int
        Ticks, by stream.
    start : int or None
        First tick that counts.
    panes : sequence of int
        As `slices.cut` takes them.
    lifetimes : (int, int)
        As `slices.length_of` takes them.
    ranges : sequence of sequence of (int, (groups, 2) float64)
        Of each that is added up: streams, and a column's least and greatest value by row group.
    least : bool
        Whether of several columns an output has the least.
    """
    ends = [own.span for own in groups if own.rows.size] or [(0, 0)]
    span = min(low for low, _ in ends), max(high for _, high in ends)
    if start is not None:
        span = max(span[0], start), max(span[1], start)
    if not all(own.rows.size for own in groups):
        edges = slices.cut(span, span[1] - span[0] + 1, panes)
        none = np.zeros(edges.size - 1)
        return edges, Measures(none, none, none)
    parts, spreads = spread_of(groups)

    def length(begin: int, end: int) -> int:
        group = _length(groups, begin, end)
        return slices.length_of(end - begin, max(windows) + 1, group, lifetimes)

    def before(ticks: Ints) -> Floats:
        found: Floats = np.sum([own.before(ticks) for own in spreads], axis=0)
        return found

    edges = slices.cut(span, length(span[0], span[1] + 1), panes)
    edges = slices.cut_again(edges, before, length)
    weights = [density.by_keys(own.rows, own.key_bytes) / own.rows for own in groups]
    weighted = [
        density.spread_of(own.low, own.high, own.rows * each[own.group])
        for own, each in zip(parts, weights, strict=True)
    ]

    def weighed(by: Callable[[Floats], Floats]) -> list[list[tuple[int, density.Spread]]]:
        found = [
            [
                (at, density.spread_of(*parts[at][:2], parts[at].rows * each[parts[at].group]))
                for at, column in own
                for each in [density.by_values(groups[at].rows, by(column))]
                if each is not None
            ]
            for own in ranges
        ]
        return list(filter(None, found))

    valued, levels = weighed(density.magnitudes), weighed(density.levels)
    known = measures_of(edges, spreads, windows, weighted, valued, levels, least=least)
    return edges, known


def spread_of(
    groups: Sequence[RowGroups],
) -> tuple[list[density.Pieces], list[density.Spread]]:
    """Return the tuples of streams by time, as their footers tell: in pieces, and added up."""
    parts = [density.stepped(own.low, own.high, own.rows) for own in groups]
    return parts, [density.spread_of(own.low, own.high, own.rows) for own in parts]


def groups_of(
    archives: Sequence[Archive],
    roles: Sequence[Roles],
    joined: JoinColumns,
    columns: Sequence[Sequence[str]] | None = None,
) -> tuple[RowGroups, ...]:
    """Return the row groups of archives, as their footers tell of them.

    Parameters
    ----------
    joined : JoinColumns
        Whose unit is that of all.
    columns : sequence of sequence of str, optional
        Read besides those of the roles, by stream.

    Raises
    ------
    InputError
        If stretches of time cannot be told apart by footers.
    """
    return tuple(
        row_groups(archive, own.time, joined.unit, own.on, (*own.columns, *more))
        for archive, own, more in zip(archives, roles, columns or [()] * len(roles), strict=True)
    )


def _before(ticks: Ints, amount: Floats, at: Ints) -> Floats:
    """Return the sum of the amounts whose ticks are less, for each of some ticks."""
    order = np.argsort(ticks, kind="stable")
    total: Floats = np.concatenate([[0.0], np.cumsum(amount[order])])
    return total[np.searchsorted(ticks[order], at)]


def _length(groups: Sequence[RowGroups], begin: int, end: int) -> float:
    """Return how many ticks a row group has from a tick to another, on average.

    Of the archive whose groups are longest; but slices may be shorter than those that take little
    to read, even again for every slice that they reach into.
    """
    total = sum(int(own.bytes.sum()) for own in groups)
    found = [0.0]
    for own in groups:
        ticks = np.minimum(own.high + 1, end) - np.maximum(own.low, begin)
        if (ticks > 0).any():
            part = min(1.0, int(own.bytes.sum()) / (_AGAIN * total)) if total else 1.0
            found.append(part * float(ticks[ticks > 0].astype(np.float64).mean()))
    return max(found)
