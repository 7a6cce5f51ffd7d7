"""What an estimate of replays draws from: slices replayed within memories after a lead-in."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from engine.archives.stretches import RowGroups
from engine.jobs.estimate.replay_task import ReplayTask, replay_slice
from engine.jobs.estimate.sliced import Slices, amounts, needed
from engine.jobs.sweep.cells import Cell
from engine.jobs.sweep.task import SweepTask
from engine.jobs.trial.lead_in import LEADS, after_lead_in, learns, loses_keys
from engine.lanes.reader import LaneFiles
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
_PARTS = 3
"""Parts of a slice by which it is told whether how it began is forgotten."""
_DRAW = 1 << 32
"""The number of the draws that say which."""


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
    uneven: Floats | None
    """How unlike the others' a slice's load is, (slices,) float64; None if all are about alike, or
    it is not known."""

    work = staticmethod(replay_slice)

    @cached_property
    def odd(self) -> Ints:
        """Places of those that are unlike the others."""
        return self.measures.apart

    @property
    def known(self) -> None:
        """Recalls go with nothing that footers tell well enough."""

    @property
    def lifetime(self) -> int:
        """Of a tuple, the longest one, at most until the end."""
        longest = 1 + max(max(own.windows) for own in self.exact)
        return min(longest, max(1, int(self.edges[-1]) - self.begin))

    @cached_property
    def _chosen(self) -> Floats:
        """By which slices are replayed again, (slices,) float64."""
        return uniforms(self.seed, PURPOSE_STRETCH, _DRAW, np.arange(self.slices))

    @cached_property
    def _known(self) -> list[list[Cell]]:
        """The cells that have intervals, of each lane; all of them if none has one."""
        kept = [[one for one in own if not learns(one.settings)] for own in self.cells]
        return kept if any(kept) else [[*own] for own in self.cells]

    @cached_property
    def _twice(self) -> tuple[list[list[Cell]], list[list[Cell]]]:
        """Those of them that lose no keys, and those that may."""
        kept, losing = (
            [[one for one in own if loses_keys(one.settings) == loses] for own in self._known]
            for loses in (False, True)
        )
        return kept, losing

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
        ticks = last + 1 - first
        parts = tuple(first + ticks * part // _PARTS for part in range(_PARTS))

        def tasks(
            begin: int, exact: Sequence[ReplaySettings], lanes: Sequence[Sequence[Cell]]
        ) -> tuple[SweepTask, ...]:
            apart = [[one._replace(parts=parts) for one in own] for own in lanes]
            return tuple(
                replace(
                    after_lead_in(files, cells, exact, begin, (first, last)), beside=self.threads
                )
                for files, cells in zip(self.part(lead, last), apart, strict=True)
            )

        if not self.replays_again(place, draws):
            once = tasks(lead, self.exact, self._known)
            return ReplayTask(place, once, (), (), late, read, self._numbers)
        again, halved = (
            tasks(begin, (), cells) if cells[0] else ()
            for begin, cells in zip((late, lead), self._twice, strict=True)
        )
        every = tasks(lead, self.exact, self.cells)
        return ReplayTask(place, every, again, halved, late, read, self._numbers)

    def whole(self, threads: int) -> list[ReplayTask]:
        """Return the replays of everything, lane by lane, with so many threads each."""
        return [
            ReplayTask(
                0,
                (SweepTask(files, cells, self.exact, threads),),
                (),
                (),
                0,
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
