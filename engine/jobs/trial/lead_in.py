"""Replays of a part of a lane's time after a lead-in that fills the memory, uncounted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from engine.jobs.sweep.cells import Cell
from engine.jobs.sweep.task import SweepTask
from engine.lanes.reader import LaneFiles
from engine.lanes.stored import Ticks
from engine.lanes.stretch import stretch_of
from engine.replay.settings import ReplaySettings

LEADS = (2, 8)
"""Windows before a stretch that are uncounted: those in which memories fill, and those from which
policies learn that go by all that arrives."""


def learns(settings: ReplaySettings) -> bool:
    """Return whether a replay goes by all that has arrived, not only by what it holds."""
    return settings.terms is not None or (
        settings.the_policy.estimates and settings.estimator == "history"
    )


def loses_keys(settings: ReplaySettings) -> bool:
    """Return whether a key that neither side holds may never be held again, however long it takes.

    Matches are then counted in memory, where such a key has none.
    """
    return (
        settings.terms is None and settings.the_policy.estimates and settings.estimator == "memory"
    )


def taught(cell: Cell, since: int) -> Cell:
    """Return a cell that, where an estimate learns for it, is replayed from a tick on only."""
    return cell._replace(since=since) if cell.settings.terms is not None else cell


def beginning(cell: Cell, lead: int, first: int) -> Cell:
    """Return a cell whose replay begins at one tick, and counts from another on."""
    left, right = (side._replace(first_ts=lead) for side in cell.profile)
    settings = replace(cell.settings, start_ts=first)
    return cell._replace(settings=settings, profile=cell.profile._replace(left=left, right=right))


def after_lead_in(
    files: LaneFiles,
    cells: Sequence[Cell],
    exact: Sequence[ReplaySettings],
    lead: int,
    ticks: Ticks,
    rows: int = 0,
) -> SweepTask:
    """Return the replays of a part of a lane.

    Parameters
    ----------
    files : LaneFiles
        Of the whole lane.
    cells : sequence of Cell
        The same.
    exact : sequence of ReplaySettings
        Windows under which to count the exact join.
    lead : int
        First tick that is replayed.
    ticks : (int, int)
        First and last tick that count.
    rows : int
        Tuples replayed, for progress.
    """
    return SweepTask(
        stretch_of(files, (lead, ticks[1]), rows),
        tuple(beginning(cell, lead, ticks[0]) for cell in cells),
        tuple(replace(one, start_ts=ticks[0]) for one in exact),
    )
