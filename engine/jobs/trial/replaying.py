"""Replays the cells of a trial: on stretches, or on everything."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from engine.jobs.frame import JobLanes
from engine.jobs.sweep.cells import Cell, Exact
from engine.jobs.sweep.task import SweepOutcome, SweepTask, deal, sweep_lane
from engine.jobs.trial.layout import TrialLayout
from engine.jobs.trial.stretches import Stretch
from engine.lanes.stretch import stretch_of

STAGE = "trial"


class Counted(NamedTuple):
    """What cells come to on a stretch, or on everything."""

    cells: dict[int, Exact]
    """Outputs and importance by the cell's number."""
    exact: Exact
    """Of the exact join."""


@dataclass
class Replays:
    """The replays of a trial.

    Attributes
    ----------
    replayed : int
        Tuples so far, of all cells together.
    found : dict
        What cells came to, by the stretch's place.
    """

    layout: TrialLayout
    lanes: JobLanes
    replayed: int = 0
    found: dict[int, Counted] = field(default_factory=dict)

    def whole(self, cells: Sequence[int]) -> Counted:
        """Replay all lanes under some cells; each is read once, or once by each that reads it."""
        slots, rows = self.lanes.stages.executor.slots, sum(self.lanes.rows)
        tasks = []
        for files, own in zip(self.lanes.files, self.layout.cells, strict=True):
            groups = min(len(cells), -(-slots * files.rows // rows)) if slots else 1
            for i, group in enumerate(deal([own[number] for number in cells], groups)):
                counted = () if i else (self.layout.exact,)
                tasks.append(SweepTask(files, tuple(group), counted))
        found = _added(self._mapped(tasks))
        none = dict.fromkeys(cells, Exact(0, 0.0))  # where there are no lanes
        return Counted(none | found.cells, found.exact)

    def on(self, stretches: Sequence[Stretch], places: Iterable[int], cells: Iterable[int]) -> None:
        """Replay stretches under those of the cells that have not been replayed on them."""
        at, tasks = [], []
        for place in dict.fromkeys(places):
            missing = [cell for cell in cells if cell not in self._known(place)]
            for learns in (False, True):
                own = [cell for cell in missing if self.learns(cell) == learns]
                if own:
                    at.append(place)
                    tasks.append(self._task(stretches[place], own, learns=learns))
        for place, outcome in zip(at, self._mapped(tasks), strict=True):
            known, found = self._known(place), _added([outcome])
            self.found[place] = Counted(known | found.cells, found.exact)

    def learns(self, cell: int) -> bool:
        """Return whether a cell goes by all that has arrived, not only by what it holds."""
        settings = self.layout.cells[0][cell].settings
        return settings.terms is not None or (settings.counts and settings.estimator == "history")

    def _known(self, place: int) -> dict[int, Exact]:
        return self.found[place].cells if place in self.found else {}

    def _task(self, stretch: Stretch, numbers: Sequence[int], *, learns: bool) -> SweepTask:
        first, last = stretch.ticks
        lead, rows = stretch.leads[learns], stretch.rows[learns]
        files = stretch_of(self.lanes.files[stretch.lane], (lead, last), rows)
        cells = self.layout.cells[stretch.lane]
        own = [_from(cells[number], lead, first) for number in numbers]
        return SweepTask(files, tuple(own), (replace(self.layout.exact, start_ts=first),))

    def _mapped(self, tasks: Sequence[SweepTask]) -> list[SweepOutcome]:
        stages = self.lanes.stages
        slots, here = stages.executor.slots, stages.executor.threads
        threads = 1 if slots else max(1, here // max(1, len(tasks)))
        tasks = [replace(task, threads=threads, beside=slots or here) for task in tasks]
        rows = [task.files.rows for task in tasks]
        self.replayed += sum(own * len(task.cells) for own, task in zip(rows, tasks, strict=True))
        return stages.mapped(STAGE, sweep_lane, tasks, rows)


def _from(cell: Cell, lead: int, first: int) -> Cell:
    """Return a cell whose replay begins at one tick, and counts from another on."""
    left, right = (side._replace(first_ts=lead) for side in cell.profile)
    settings = replace(cell.settings, start_ts=first)
    return cell._replace(settings=settings, profile=cell.profile._replace(left=left, right=right))


def _added(outcomes: Sequence[SweepOutcome]) -> Counted:
    """Add up what lanes came to."""
    parts: dict[int, list[Exact]] = {}
    for outcome in outcomes:
        for one in outcome.cells:
            parts.setdefault(one.cell, []).append(Exact(one.outputs, one.importance))
    exact = [one for outcome in outcomes for one in outcome.exact.values()]
    return Counted({number: _sum(own) for number, own in parts.items()}, _sum(exact))


def _sum(parts: Sequence[Exact]) -> Exact:
    return Exact(sum(one.outputs for one in parts), math.fsum(one.importance for one in parts))
