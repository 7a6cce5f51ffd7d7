"""Runs a trial: all candidates on few stretches, the best of them on more, or on everything."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from engine.jobs.frame import JobLanes
from engine.jobs.sweep.cells import Exact, deal
from engine.jobs.sweep.task import SweepOutcome, SweepTask, sweep_lane
from engine.jobs.trial.estimate import estimated
from engine.jobs.trial.found import (
    FAVOURED,
    IMPORTANCE,
    Counted,
    Pair,
    Trial,
    best_of,
    ranked,
    whole,
)
from engine.jobs.trial.layout import TrialLayout
from engine.jobs.trial.lead_in import after_lead_in, learns
from engine.jobs.trial.screened import finalists, finals, memories_of, screens
from engine.jobs.trial.stretches import STAGE, Stretch, affordable, cost_of, drawn
from engine.runtime.randomness import uniforms
from gpu_kernels.philox import PURPOSE_STRETCH

TUPLES = 40_000_000
"""Tuples that the candidates of a trial replay together, at most, unless `TUPLES_A_ROW` is more.
They count by the time that they take: see `WEIGHTS` and `stretches.FEWEST`."""
TUPLES_A_ROW = 4
"""The same for each tuple of the archives."""
WEIGHTS = {"yield": 3, "age": 2}
"""Tuples that one of a policy counts as; 1 of the others."""
MORE = (4, 2, 1)
"""Draws of the last round for each of the first: the first of these that can be afforded."""
DUEL = WEIGHTS[FAVOURED[0]] + 1
"""What the favoured and another candidate count as."""
SCREENING = 8
"""The first round has one of so many tuples, at least, where the last can replay everything."""
FINAL = 16
"""Tuples for each of the archive that it then leaves to the last round, unless it has half."""


def most_tuples(lanes: JobLanes) -> int:
    """Return what the candidates of a trial replay together, at most, by default."""
    return max(TUPLES, TUPLES_A_ROW * sum(lanes.rows))


def run_trial(
    layout: TrialLayout,
    lanes: JobLanes,
    *,
    measure: str = IMPORTANCE,
    seed: int = 0,
    tuples: int | None = None,
) -> Trial:
    """Replay candidates on stretches of two archives, and rank them.

    Parameters
    ----------
    measure : {"importance_recall", "recall"}
        By which candidates are ranked.
    seed : int
        Decides which stretches are drawn.
    tuples : int, optional
        Replayed by all candidates together, at most; by default `most_tuples`.

    Notes
    -----
    Where that allows, every candidate is replayed on everything. If not, two rounds share it
    (successive halving). The first replays the candidates with one estimator on a few stretches;
    with one of several memories where they would be too few, and then with one split a policy. It
    is short where the second can replay the favoured and others on everything: on short stretches
    chance chooses. Where even two take more, the second replays a quarter of them on more
    stretches, with all memories, splits and estimators. As long as it can be afforded, half of
    those are then replayed on twice as many. Stretches are drawn systematically with probability
    by their work. Where windows are so long that not even one stretch can be afforded, the first
    policies of the list are replayed on everything.
    """
    return _Rounds(layout, lanes, measure, seed, tuples).trial()


class _Rounds:
    def __init__(
        self, layout: TrialLayout, lanes: JobLanes, measure: str, seed: int, tuples: int | None
    ) -> None:
        self._layout, self._lanes, self._measure = layout, lanes, measure
        self._rows = sum(lanes.rows)
        self._cost = sum(cost_of(rows) for rows in lanes.rows)
        self._tuples = most_tuples(lanes) if tuples is None else tuples
        self._replays = _Replays(layout, lanes)
        self._start = float(uniforms(seed, PURPOSE_STRETCH, 0, np.zeros(1, np.int64))[0])
        self._every = list(range(len(layout.places)))
        self._screens = screens(layout)

    def trial(self) -> Trial:
        """Replay, and rank."""
        every, span = self._every, self._lanes.prepared.span
        if span is None or self._fits(every, self._tuples):
            return self._trial(whole(self._replays.whole(every)), every)
        memories = len(memories_of(self._layout, every))
        duel, final = (weight * memories * self._cost for weight in (DUEL, FINAL))
        first, least = self._tuples / 2, self._tuples / SCREENING
        settled = duel <= self._tuples - least
        if settled:
            first = min(first, max(least, self._tuples - final))
        for screen in self._screens:
            stretches, number = affordable(
                self._lanes, self._layout.exact, self._weights(screen.cells), first
            )
            if number >= screen.least:
                break
        else:
            return self._first_of_list()
        some = drawn(stretches, number, self._start)
        left = self._tuples - self._on(stretches, some, screen.cells)
        self._replays.on(stretches, some, screen.cells)
        known = self._estimated(screen.cells, stretches, some)
        best = self._affordable(finalists(self._layout, known, self._measure, screen), left)
        if settled and len(best) > memories:
            known |= whole(self._replays.whole(best))
            return self._trial(known, best, some)
        for best, more in product(finals(self._layout, known, self._measure, screen), MORE):
            last = drawn(stretches, number, self._start, more)
            if self._on(stretches, last, best) <= left:
                break
        while True:
            left -= self._on(stretches, last, best)
            self._replays.on(stretches, last, best)
            known |= self._estimated(best, stretches, last)
            half, more = self._half(known, best), 2 * more
            farther = drawn(stretches, number, self._start, more)
            if not half or self._on(stretches, farther, half) > left:
                break
            best, last = half, farther
        counted = sum(stretches[at].counted for at in {*last})
        return self._trial(known, best, last, counted / self._rows)

    def _half(self, known: Mapping[int, Pair], cells: Sequence[int]) -> list[int]:
        """Return the better half of cells with each memory; none of two."""
        number = len(cells) // len(memories_of(self._layout, cells))
        own = {cell: known[cell] for cell in cells}
        return self._best(own, (number + 1) // 2) if number > 2 else []

    def _weights(self, cells: Sequence[int]) -> tuple[int, int]:
        """Return what a tuple counts under cells that do not learn, and those that do."""
        found = [0, 0]
        for cell in cells:
            policy = self._layout.places[cell].candidate.policy
            found[self._replays.learns(cell)] += WEIGHTS.get(policy, 1)
        return found[0], found[1]

    def _fits(self, cells: Sequence[int], tuples: float) -> bool:
        """Return whether cells can be replayed on everything."""
        return not self._rows or sum(self._weights(cells)) * self._cost <= tuples

    def _on(self, stretches: Sequence[Stretch], draws: Sequence[int], cells: Sequence[int]) -> int:
        """Return the tuples of replays of stretches that have not been made."""
        total = 0
        for at in {*draws}:
            known = self._replays.found[at].cells if at in self._replays.found else {}
            weights = self._weights([cell for cell in cells if cell not in known])
            total += sum(own * cost for own, cost in zip(weights, stretches[at].costs, strict=True))
        return total

    def _first_of_list(self) -> Trial:
        """Replay on everything as many policies, with a split each, as can be afforded; or one."""
        cells = self._screens[-1].cells
        chosen = self._affordable(cells, self._tuples) or self._affordable(cells[:1], math.inf)
        return self._trial(whole(self._replays.whole(chosen)), chosen)

    def _affordable(self, cells: Iterable[int], tuples: float) -> list[int]:
        """Return those that can be replayed on everything, with all memories, the first first."""
        chosen: list[int] = []
        for cell in cells:
            own = self._layout.places[cell].candidate
            more = [at for at in self._every if self._layout.places[at].candidate == own]
            if more[0] not in chosen and self._fits([*chosen, *more], tuples):
                chosen += more
        return chosen

    def _estimated(
        self, cells: Sequence[int], stretches: Sequence[Stretch], draws: Sequence[int]
    ) -> dict[int, Pair]:
        """Return what cells are expected to reach, by what they came to on stretches."""
        work = np.array([stretches[at].work for at in draws])
        covered = sum(stretches[at].work for at in {*draws})
        counted = [self._replays.found[at] for at in draws]
        seen = self._outputs(draws)

        def pair(cell: int) -> Pair:
            reached = [one.cells[cell] for one in counted]
            left, right = (
                estimated(
                    np.array([one[what] for one in reached], float),
                    np.array([one.exact[what] for one in counted], float),
                    work,
                    covered=covered,
                )
                for what in (1, 0)
            )
            return Pair(left, right, seen)

        return {cell: pair(cell) for cell in cells}

    def _outputs(self, draws: Sequence[int]) -> int:
        """Return the outputs of the exact join on stretches."""
        return sum(self._replays.found[at].exact.outputs for at in {*draws})

    def _best(self, known: Mapping[int, Pair], number: int) -> list[int]:
        """Return with each memory so many cells, the best first."""
        return best_of(self._layout, known, self._measure, number)

    def _trial(
        self,
        known: Mapping[int, Pair],
        last: Sequence[int],
        draws: Sequence[int] = (),
        share: float | None = None,
    ) -> Trial:
        """Return what was found; `share` is None where the last round replayed everything."""
        found = ranked(self._layout, known, self._measure, set(last))
        part = 1.0 if share is None else share
        outputs = self._outputs(draws) if len(draws) else None
        replayed = self._replays.replayed
        return Trial(found, share is None, len({*draws}), part, replayed, outputs)


@dataclass
class _Replays:
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
            for late in (False, True):
                own = [cell for cell in missing if self.learns(cell) == late]
                if own:
                    at.append(place)
                    tasks.append(self._task(stretches[place], own, late=late))
        for place, outcome in zip(at, self._mapped(tasks), strict=True):
            known, found = self._known(place), _added([outcome])
            self.found[place] = Counted(known | found.cells, found.exact)

    def learns(self, cell: int) -> bool:
        """Return whether a cell learns."""
        return learns(self.layout.cells[0][cell].settings)

    def _known(self, place: int) -> dict[int, Exact]:
        return self.found[place].cells if place in self.found else {}

    def _task(self, stretch: Stretch, numbers: Sequence[int], *, late: bool) -> SweepTask:
        cells = self.layout.cells[stretch.lane]
        return after_lead_in(
            self.lanes.files[stretch.lane], [cells[number] for number in numbers],
            [self.layout.exact], stretch.leads[late], stretch.ticks, stretch.rows[late],
        )  # fmt: skip

    def _mapped(self, tasks: Sequence[SweepTask]) -> list[SweepOutcome]:
        stages = self.lanes.stages
        slots, here = stages.executor.slots, stages.executor.threads
        threads = 1 if slots else max(1, here // max(1, len(tasks)))
        tasks = [replace(task, threads=threads, beside=slots or here) for task in tasks]
        rows = [task.files.rows for task in tasks]
        self.replayed += sum(own * len(task.cells) for own, task in zip(rows, tasks, strict=True))
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
