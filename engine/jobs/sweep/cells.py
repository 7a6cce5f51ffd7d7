"""The cells of a sweep on one lane, what each comes to, and how they are dealt over tasks."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from engine.jobs.age_curves import Curves
from engine.lanes.profile import LaneProfile
from engine.policies import Structure
from engine.replay.common import KINDS
from engine.replay.settings import ReplaySettings
from engine.sampling.sizes import Sampling

_PLAIN = 600 << 20
"""Twice what a replay takes beside its tuples: interpreter, libraries, compiled code, batches."""
_BYTES_A_TUPLE = 450
"""Of a join memory, all structures taken together, at most."""
_BYTES_A_KEY = 160
"""Of a key on both sides, in arrays that may be twice as long as needed."""


class Cell(NamedTuple):
    """A replay of one lane: all that differs between cells."""

    number: int
    """The cell's place in the grid, the same on every lane."""
    settings: ReplaySettings
    """Windows, policy, estimator, probe, combine, first tick that counts, seed."""
    budget: tuple[int, int]
    """K of left and right on this lane."""
    profile: LaneProfile
    """Of the lane, for the cell's windows."""
    curves: Curves = (None, None)
    """AGE's curves of left and right."""
    sampling: Sampling | None = None
    """Of a sampling policy."""
    spares: bool | None = None
    """Given where few tuples are replayed: whether the kernel for all policies may be compiled for
    them (`engine.replay.common`)."""
    parts: tuple[int, ...] = (0,)
    """First ticks of the parts of time whose outputs are counted apart, on the CPU."""
    since: int | None = None
    """Tuples that arrive before this tick are not replayed: only an estimate of value learns from
    them. On the CPU."""

    @property
    def windows(self) -> tuple[int, int]:
        """W of left and right, in ticks."""
        return self.settings.windows


class CellResult(NamedTuple):
    """What a cell came to on one lane."""

    cell: int
    """The cell's number."""
    outputs: int
    importance: float
    """Of the outputs, their compensated sum."""
    peaks: tuple[int, int]
    """Most tuples held at once, left and right."""
    peak: int
    """Most tuples of both sides at once; of two memories, the sum of their peaks."""
    seconds: float
    """Spent in the cell's own replay, without reading and without the other cells."""
    parts: tuple[Exact, ...] = ()
    """What parts of time came to, where the cell asks for several."""


class Exact(NamedTuple):
    """Outputs of the exact join and the sum of their importance."""

    outputs: int
    importance: float


def of_many_kinds(settings: Iterable[ReplaySettings]) -> bool:
    """Return whether one kernel for all policies takes less time to compile than their own."""
    return len({(own.structure, own.pooled) for own in settings}) > KINDS


def cost(cell: Cell) -> float:
    """Return how long a cell takes, roughly, in passes over the lane by a static policy."""
    if cell.settings.structure is Structure.RERANK:
        return 1.0 + sum(_held(cell)) / 20
    return 1.5 if cell.settings.structure in (Structure.KEYED, Structure.DECAY) else 1.0


def _held(cell: Cell) -> tuple[int, int]:
    rules = cell.settings.rules(cell.profile, cell.budget, emit=False)
    return rules.budget_left, rules.budget_right


def _bytes(cell: Cell) -> int:
    keys = sum(
        side.rows if cell.settings.estimator == "history" else side.peak for side in cell.profile
    )
    return _BYTES_A_TUPLE * sum(_held(cell)) + _BYTES_A_KEY * keys


def deal(cells: Sequence[Cell], groups: int) -> list[list[Cell]]:
    """Deal cells over groups that take about as long as each other, by their cost.

    Cells of one policy, neighbours in the grid, go to different groups.
    """
    dealt: list[list[Cell]] = [[] for _ in range(groups)]
    least = [(0.0, group) for group in range(groups)]
    for cell in sorted(cells, key=lambda cell: -cost(cell)):
        spent, group = heapq.heappop(least)
        dealt[group].append(cell)
        heapq.heappush(least, (spent + cost(cell), group))
    return [group for group in dealt if group]


def room_for(cells: Sequence[Cell], beside: int) -> int:
    """Return the bytes that cells may take at once: with all else, three times a replay's.

    `beside` such tasks run at once.
    """
    return 3 * max(map(_bytes, cells), default=0) + _PLAIN // beside


def within(cells: Sequence[Cell], room: int) -> list[list[Cell]]:
    """Cut cells into runs whose memories fit into `room` bytes, a run a pass over the lane."""
    runs: list[list[Cell]] = [[]]
    taken = 0
    for cell in cells:
        size = _bytes(cell)
        if runs[-1] and taken + size > room:
            runs.append([])
            taken = 0
        runs[-1].append(cell)
        taken += size
    return runs
