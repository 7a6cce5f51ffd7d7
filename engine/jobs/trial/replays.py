"""The replays that a trial has made, and those that it still needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from engine.jobs.frame import JobLanes
from engine.jobs.sweep.cells import Exact, deal
from engine.jobs.sweep.task import SweepOutcome, SweepTask, sweep_lane
from engine.jobs.trial.by_keys import of_part
from engine.jobs.trial.found import Counted
from engine.jobs.trial.layout import TrialLayout
from engine.jobs.trial.lead_in import after_lead_in, learns, taught
from engine.jobs.trial.stretches import STAGE, Stretch
from engine.runtime.compilation.compilations import COMPILED

WEIGHTS = {"yield": 2, "age": 2}
"""Tuples that one of a policy counts as; 1 of the others."""
TAUGHT = 1
"""Tuples that one counts as, more, where estimates of value learn from it."""


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
    _exact: Exact | None = None

    def whole(self, cells: Sequence[int]) -> Counted:
        """Replay all lanes under some cells; each is read once, or once by each that reads it."""
        if not cells and self._exact is not None:
            return Counted({}, self._exact)
        slots, rows = self.lanes.stages.executor.slots, sum(self.lanes.rows)
        tasks = []
        for files, own in zip(self.lanes.files, self.layout.cells, strict=True):
            groups = min(len(cells), -(-slots * files.rows // rows)) if slots else 1
            for i, group in enumerate(deal([own[number] for number in cells], groups)):
                counted = () if i or self._exact is not None else (self.layout.exact,)
                tasks.append(SweepTask(files, tuple(group), counted))
                self.replayed += files.rows * len(group)
        found = _added(self._mapped(tasks))
        none = dict.fromkeys(cells, Exact(0, 0.0))  # where there are no lanes
        self._exact = self._exact or found.exact
        return Counted(none | found.cells, self._exact)

    def on(self, stretches: Sequence[Stretch], places: Iterable[int], cells: Iterable[int]) -> None:
        """Replay stretches under those of the cells that have not been replayed on them."""
        at, tasks = [], []
        for place in dict.fromkeys(places):
            missing = [cell for cell in cells if cell not in self._known(place)]
            for own, late in self._together(stretches[place], missing):
                if own:
                    at.append(place)
                    tasks.append(self._task(stretches[place], own, late=late))
                    self.replayed += sum(
                        stretches[place].rows[late and cell.since is None]
                        for cell in tasks[-1].cells
                    )
        for place, outcome in zip(at, self._mapped(tasks), strict=True):
            known, found = self._known(place), _added([outcome])
            self.found[place] = Counted(known | found.cells, found.exact)

    def _together(self, stretch: Stretch, cells: Sequence[int]) -> list[tuple[Sequence[int], bool]]:
        """Return what is replayed in one pass, and whether after the longer lead-in."""
        if stretch.keys is not None:
            return [(cells, False)]
        late = [cell for cell in cells if self._learns(cell)]
        return [([cell for cell in cells if cell not in late], False), (late, True)]

    def outputs(self, places: Iterable[int]) -> int:
        """Return the outputs of the exact join on different stretches that were replayed."""
        return sum(self.found[at].exact.outputs for at in {*places})

    def weights(self, cells: Iterable[int]) -> tuple[int, int]:
        """Return what a tuple counts as after the shorter lead-in, and what after the longer."""
        found, estimates = [0, 0], 0
        for cell in cells:
            own = self.layout.cells[0][cell].settings
            if own.terms is not None:
                estimates = TAUGHT  # which replays share
            weight = WEIGHTS.get(self.layout.places[cell].candidate.policy, 1)
            found[own.terms is None and learns(own)] += weight
        return found[0], found[1] + estimates

    def _learns(self, cell: int) -> bool:
        return learns(self.layout.cells[0][cell].settings)

    def _known(self, place: int) -> dict[int, Exact]:
        return self.found[place].cells if place in self.found else {}

    def _task(self, stretch: Stretch, numbers: Sequence[int], *, late: bool) -> SweepTask:
        files, exact = self.lanes.files[stretch.lane], [self.layout.exact]
        cells = [self.layout.cells[stretch.lane][number] for number in numbers]
        if stretch.keys is not None:
            return of_part(files, cells, exact, stretch.keys)
        if late:
            cells = [taught(cell, stretch.leads[0]) for cell in cells]
        return after_lead_in(
            files, cells, exact, stretch.leads[late], stretch.ticks, stretch.rows[late]
        )

    def _mapped(self, tasks: Sequence[SweepTask]) -> list[SweepOutcome]:
        stages = self.lanes.stages
        slots, here = stages.executor.slots, stages.executor.threads
        threads = 1 if slots else max(1, here // max(1, len(tasks)))
        tasks = [replace(task, threads=threads, beside=slots or here) for task in tasks]
        rows = [task.files.rows for task in tasks]
        later = [] if slots else sorted(task.steps for task in tasks)[:-1]
        with COMPILED.expecting(sum(later)):  # of the others, each when it runs
            return stages.mapped(STAGE, sweep_lane, tasks, rows)


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
