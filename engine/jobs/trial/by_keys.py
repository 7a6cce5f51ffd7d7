"""Parts of the keys, which stand for stretches where windows are too long to draw some of the time.

Tuples join only within a part, so that a part is an archive of its own, with its share of the
memory: a universe sample. All of the time is in it, and every part is read through.
"""

from __future__ import annotations

from collections.abc import Sequence

from engine.jobs.frame import JobLanes
from engine.jobs.sweep.cells import Cell
from engine.jobs.sweep.task import SweepTask
from engine.jobs.trial.stretches import Keys, Stretch, cost_of
from engine.lanes.key_parts import part_of
from engine.lanes.profile import LaneProfile
from engine.lanes.reader import LaneFiles
from engine.replay.settings import ReplaySettings

MOST, LEAST = 64, 4
"""Parts of the keys."""
HELD = 16
"""Tuples that a part's memory holds, at least: what a single one does otherwise says too much."""


def parts_of_keys(
    lanes: JobLanes, cells: Sequence[Sequence[Cell]], weight: int, tuples: float, draws: int
) -> tuple[list[Stretch], int]:
    """Return the parts of lanes to draw from, and how many draws can be afforded.

    Parameters
    ----------
    lanes : JobLanes
    cells : sequence of sequence of Cell
        Of each lane, those to be replayed.
    weight : int
        Replays of every part.
    tuples : float
        Replayed in all draws together.
    draws : int
        As few parts as allow so many, of all lanes together.

    Returns
    -------
    (list of Stretch, int)
        No draws where streams join through facts, which pair the keys of one part with those of
        others, or where the memory is too small to be shared.
    """
    smallest = min((sum(cell.budget) for own in cells for cell in own), default=0)
    if lanes.through_facts or smallest < LEAST * HELD:
        return [], 0
    parts, rows = LEAST, sum(lanes.rows)
    number = _affordable(tuples, weight, rows, parts)
    while number < draws and 2 * parts <= min(MOST, smallest // HELD):
        parts *= 2
        number = _affordable(tuples, weight, rows, parts)
    return all_parts(lanes, parts), min(number, draws)


def all_parts(lanes: JobLanes, parts: int) -> list[Stretch]:
    """Return so many parts of the keys of each lane, of those that have tuples."""
    span, rows = lanes.prepared.span, sum(lanes.rows)
    assert span is not None  # noqa: S101 - they have tuples
    return [
        Stretch(
            lane, span, (span[0], span[0]), (own // parts, own // parts), own // parts,
            own / rows / parts, Keys(part, parts),
        )
        for lane, own in enumerate(lanes.rows)
        for part in range(parts)
        if own
    ]  # fmt: skip


def _affordable(tuples: float, weight: int, rows: int, parts: int) -> int:
    return int(tuples / max(1, weight * cost_of(rows // parts)))


def of_part(
    files: LaneFiles, cells: Sequence[Cell], exact: Sequence[ReplaySettings], keys: Keys
) -> SweepTask:
    """Return the replays of a part of a lane's keys, with its share of the memory.

    Parameters
    ----------
    files : LaneFiles
        Of the whole lane.
    cells : sequence of Cell
        The same.
    exact : sequence of ReplaySettings
        Windows under which to count the exact join.
    keys : Keys
    """
    return SweepTask(
        part_of(files, *keys), tuple(_shared(cell, keys.parts) for cell in cells), tuple(exact)
    )


def _shared(cell: Cell, parts: int) -> Cell:
    left, right = (-(-own // parts) for own in cell.budget)
    # the peaks stay those of the whole lane, which no part's exceeds
    sides = (side._replace(rows=side.rows // parts) for side in cell.profile)
    return cell._replace(budget=(left, right), profile=LaneProfile(*sides))
