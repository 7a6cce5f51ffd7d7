"""What an estimate of replays draws from: slices replayed within memories after a lead-in."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from engine.archives.stretches import RowGroups
from engine.jobs.estimate.sliced import Slices, amounts, needed
from engine.jobs.sweep.cells import Cell, CellResult, Exact
from engine.jobs.sweep.task import SweepTask, sweep_lane
from engine.jobs.trial.lead_in import LEADS, after_lead_in, learns
from engine.lanes.held import Held
from engine.lanes.reader import LaneFiles, whole_lane
from engine.lanes.stretch import Between
from engine.lanes.unwritten import part_of
from engine.replay.settings import ReplaySettings
from engine.runtime.jit import Floats, Ints
from engine.runtime.randomness import uniforms
from gpu_kernels.philox import PURPOSE_STRETCH

SHORT, LEAD = LEADS
"""Lifetimes of a tuple of a lead-in, and of the part of it after which some slices are replayed
again. Recall by four fifths of the policies that were tried did not change any more after
`SHORT`."""
LIFETIMES = 10, 20
"""Those of a slice: the lead-in is a smaller part of it than of those of exact joins."""
AGAIN = 0.25
"""Share of the slices that are replayed again, at least."""
_AGAIN = 12
"""Such slices, about, where so many are drawn."""
_DRAW = 1 << 32
"""The number of the draws that say which."""


@dataclass(frozen=True)
class ReplayTask:
    """A slice to be replayed, or everything."""

    place: int
    lanes: tuple[SweepTask, ...]
    """Replays of each lane."""
    again: tuple[SweepTask, ...]
    """The same after a part of the lead-in; none where that is not looked at."""
    read: Mapping[str, int]
    """Bytes, row groups and rows that are read."""
    numbers: tuple[int, ...]
    """Of all cells; those that have no interval anyway are not replayed in every slice."""


class Replayed(NamedTuple):
    """What a slice came to."""

    place: int
    cells: list[list[CellResult]]
    """Of each cell, a result a lane; none where it was not replayed."""
    exact: dict[tuple[int, int], Exact]
    """Of the exact join, by windows."""
    again: list[Exact]
    """Of each cell after a part of the lead-in; empty where that was not looked at. Of cells that
    are not replayed again the same."""
    seconds: float
    rows: int
    """Read, the lead-in included."""
    rejected: int = 0
    """Rows that were set aside: not known, as lanes have none."""

    def reached(self) -> Floats:
        """Return outputs of each cell, and their importance: (cells, 2) float64.

        NaN where it was not replayed.
        """
        unknown = math.nan, math.nan
        found = [_added(one) if one else unknown for one in self.cells]
        return np.array(found, np.float64).reshape(-1, 2)


def replay_slice(task: ReplayTask) -> Replayed:
    """Replay a slice, and again after a part of its lead-in if that is asked for."""
    begun = time.perf_counter()
    lanes = [_read(one) for one in task.lanes] if task.again else task.lanes
    found, exact = _replayed(lanes)
    again = [_part(one, own) for one, own in zip(task.again, lanes, strict=False)]
    shorter = {one[0].cell: _added(one) for one in _replayed(again)[0]}
    second = [shorter.get(one[0].cell, _added(one)) for one in found] if again else []
    by_number = {one[0].cell: one for one in found}
    every = [by_number.get(number, []) for number in task.numbers]
    seconds = time.perf_counter() - begun
    return Replayed(task.place, every, exact, second, seconds, task.read["rows"])


def _read(task: SweepTask) -> SweepTask:
    """Return a task whose tuples are in memory, to be gone through more than once."""
    read = whole_lane(task.files.left, task.files.right)
    return replace(task, files=replace(task.files, left=Held(read.left), right=Held(read.right)))


def _part(task: SweepTask, read: SweepTask) -> SweepTask:
    """Return a task on a part of the tuples that another has in memory."""
    left, right = (
        Between(there, own.ticks) if isinstance(own, Between) and there is not None else None
        for own, there in zip(
            (task.files.left, task.files.right), (read.files.left, read.files.right), strict=True
        )
    )
    return replace(task, files=replace(task.files, left=left, right=right))


def _added(lanes: Sequence[CellResult]) -> Exact:
    outputs = sum(own.outputs for own in lanes)
    return Exact(outputs, math.fsum(own.importance for own in lanes))


def _replayed(
    tasks: Sequence[SweepTask],
) -> tuple[list[list[CellResult]], dict[tuple[int, int], Exact]]:
    outcomes = [sweep_lane(task) for task in tasks]
    cells = [[*own] for own in zip(*(outcome.cells for outcome in outcomes), strict=True)]
    exact: dict[tuple[int, int], Exact] = {}
    for outcome in outcomes:
        for windows, own in outcome.exact.items():
            known = exact.get(windows, Exact(0, 0.0))
            exact[windows] = Exact(known.outputs + own.outputs, known.importance + own.importance)
    return cells, exact


@dataclass(frozen=True)
class ReplaySlices(Slices):
    """The slices of lanes that are replayed."""

    files: tuple[LaneFiles, ...]
    cells: tuple[tuple[Cell, ...], ...]
    """Of each lane, in the order of their numbers."""
    exact: tuple[ReplaySettings, ...]
    """Windows under which to count the exact join."""
    seed: int
    threads: int
    """Tasks at once, which share this machine's memory."""
    begin: int
    """First tick of the lanes."""

    work = staticmethod(replay_slice)

    @cached_property
    def odd(self) -> Ints:
        """Places of those that are unlike the others."""
        return self.measures.apart

    @property
    def lifetime(self) -> int:
        """Of a tuple, the longest one."""
        return 1 + max(max(own.windows) for own in self.exact)

    @cached_property
    def _chosen(self) -> Floats:
        """By which slices are replayed again, (slices,) float64."""
        return uniforms(self.seed, PURPOSE_STRETCH, _DRAW, np.arange(self.slices))

    @cached_property
    def _known(self) -> list[list[Cell]]:
        """The cells that have intervals, of each lane; all of them if none has one."""
        kept = [[one for one in own if not learns(one.settings)] for own in self.cells]
        return kept if any(kept) else [[*own] for own in self.cells]

    @property
    def _numbers(self) -> tuple[int, ...]:
        return tuple(one.number for one in self.cells[0])

    def replays_again(self, place: int, draws: int) -> bool:
        """Return whether a slice is replayed again, if so many are drawn.

        It is as well where fewer are drawn.
        """
        return bool(self._chosen[place] < max(AGAIN, min(1.0, _AGAIN / draws)))

    @abstractmethod
    def amounts(self, lead: int, last: int) -> dict[str, int]:
        """Return bytes, row groups and rows that are read from one tick to another."""

    @abstractmethod
    def part(self, lead: int, last: int) -> Sequence[LaneFiles]:
        """Return the lanes, as far as they are needed from one tick to another."""

    def task(self, place: int, draws: int) -> ReplayTask:
        """Return the replays of one slice."""
        first, last = int(self.edges[place]), int(self.edges[place + 1]) - 1
        lead, late = (max(self.begin, first - own * self.lifetime) for own in (LEAD, SHORT))
        read = self.amounts(lead, last)

        def tasks(
            begin: int, exact: Sequence[ReplaySettings], lanes: Sequence[Sequence[Cell]]
        ) -> tuple[SweepTask, ...]:
            return tuple(
                replace(
                    after_lead_in(files, cells, exact, begin, (first, last)), beside=self.threads
                )
                for files, cells in zip(self.part(lead, last), lanes, strict=True)
            )

        if not self.replays_again(place, draws):
            return ReplayTask(place, tasks(lead, self.exact, self._known), (), read, self._numbers)
        both = tasks(lead, self.exact, self.cells), tasks(late, (), self._known)
        return ReplayTask(place, *both, read, self._numbers)

    def whole(self, threads: int) -> list[ReplayTask]:
        """Return the replays of everything, lane by lane, with so many threads each."""
        return [
            ReplayTask(
                0,
                (SweepTask(files, cells, self.exact, threads),),
                (),
                self.all if not i else dict.fromkeys(self.all, 0),
                self._numbers,
            )
            for i, (files, cells) in enumerate(zip(self.files, self.cells, strict=True))
        ]


@dataclass(frozen=True)
class ArchiveSlices(ReplaySlices):
    """The slices of two archives that are one lane, read from their row groups."""

    groups: tuple[RowGroups, RowGroups]

    @cached_property
    def costs(self) -> Floats:
        """Bytes that are read for each slice, (slices,) float64."""
        reach = (LEAD * self.lifetime,) * 2
        return needed(self.groups, reach, self.edges[:-1], self.edges[1:] - 1, "bytes")

    @cached_property
    def all(self) -> dict[str, int]:
        """Bytes, row groups and rows of both archives."""
        return amounts(self.groups, [np.arange(own.rows.size) for own in self.groups])

    def amounts(self, lead: int, last: int) -> dict[str, int]:
        """Return bytes, row groups and rows that are read from one tick to another."""
        return amounts(self.groups, [own.meeting(lead, last) for own in self.groups])

    def part(self, lead: int, last: int) -> Sequence[LaneFiles]:
        """Return the lane with the row groups that have tuples from one tick to another."""
        return [part_of(files, (lead, last)) for files in self.files]


@dataclass(frozen=True)
class LaneSlices(ReplaySlices):
    """The slices of prepared lanes."""

    before: Floats
    """(slices + 1,) float64. Tuples of all lanes before each edge."""

    counted = "rows"

    @cached_property
    def costs(self) -> Floats:
        """Rows that are read for each slice, (slices,) float64."""
        leads = np.interp(self.edges[:-1] - LEAD * self.lifetime, self.edges, self.before)
        found: Floats = self.before[1:] - leads
        return found

    @cached_property
    def all(self) -> dict[str, int]:
        """Rows of all lanes."""
        return {"rows": sum(one.rows for one in self.files)}

    def amounts(self, lead: int, last: int) -> dict[str, int]:
        """Return about how many rows are read from one tick to another."""
        begin, end = np.interp([lead, last + 1], self.edges, self.before)
        return {"rows": round(end - begin)}

    def part(self, lead: int, last: int) -> Sequence[LaneFiles]:
        """Return the lanes."""
        del lead, last
        return self.files
