"""Replaying a slice within memories after a lead-in, and again from another beginning.

The second replay shows what the lead-in leaves of the beginning. It has a part of the lead-in
alone. Where matches are counted in memory, a key that has none there is hardly ever let in again:
there it has the whole lead-in, but half of the keys arrive only in the last part of it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from engine.jobs.sweep.cells import CellResult, Exact
from engine.jobs.sweep.task import SweepTask, sweep_lane
from engine.lanes.held import Held
from engine.lanes.reader import whole_lane
from engine.lanes.stored import Stored
from engine.lanes.stretch import Between
from engine.runtime.jit import Floats
from engine.runtime.randomness import uniforms
from engine.runtime.streams import StreamBatch
from gpu_kernels.philox import PURPOSE_STRETCH

_HALF = 1 << 33
"""The number of the draws that halve the keys."""


@dataclass(frozen=True)
class ReplayTask:
    """A slice to be replayed, or everything."""

    place: int
    lanes: tuple[SweepTask, ...]
    """Replays of each lane."""
    again: tuple[SweepTask, ...]
    """The same from a later beginning, of cells that lose no keys; none where that is not looked
    at."""
    halved: tuple[SweepTask, ...]
    """The same of cells that may lose keys, to be replayed without half of them at first."""
    late: int
    """First tick of the tuples of that half."""
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
    again: list[tuple[Floats, Floats]]
    """Of each cell, and of its replay from another beginning, outputs and importance by parts of
    the slice, (parts, 2) float64; empty where that was not looked at. Of cells that are not
    replayed again twice the same."""
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
    """Replay a slice, and again from another beginning if that is asked for."""
    begun = time.perf_counter()
    twice = bool(task.again or task.halved)
    lanes = [_read(one) for one in task.lanes] if twice else task.lanes
    found, exact = _replayed(lanes)
    again = [_part(one, own) for one, own in zip(task.again, lanes, strict=False)]
    halved = [_part(one, own) for one, own in zip(task.halved, _halves(lanes, task), strict=False)]
    other = {one[0].cell: one for some in (again, halved) for one in _replayed(some)[0]}
    both = [(one, other.get(one[0].cell, one)) for one in found] if twice else []
    second = [(_by_parts(one), _by_parts(another)) for one, another in both]
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


def _halves(lanes: Sequence[SweepTask], task: ReplayTask) -> Iterator[SweepTask]:
    """Yield the lanes without the tuples of half of the keys, until the last part."""
    for one in lanes:
        left, right = (without_half(own, task) for own in (one.files.left, one.files.right))
        yield replace(one, files=replace(one.files, left=left, right=right))


def without_half(stored: Stored | None, task: ReplayTask) -> Held:
    """Return a stream in memory without the early tuples of one half of the keys or the other.

    Which half, changes from slice to slice.
    """
    assert isinstance(stored, Held)  # noqa: S101 - what is replayed twice is
    tuples = stored.tuples
    half = np.floor(2 * uniforms(0, PURPOSE_STRETCH, _HALF, tuples.key))
    here = (half == task.place % 2) | (tuples.ts >= task.late)
    return Held(StreamBatch(*(column[here] for column in tuples)))


def _added(lanes: Sequence[CellResult]) -> Exact:
    outputs = sum(own.outputs for own in lanes)
    return Exact(outputs, math.fsum(own.importance for own in lanes))


def _by_parts(lanes: Sequence[CellResult]) -> Floats:
    found: Floats = np.array([own.parts for own in lanes], np.float64).sum(axis=0)
    return found


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
