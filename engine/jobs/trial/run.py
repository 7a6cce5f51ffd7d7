"""Runs a trial: all candidates on few stretches, the best of them on more, or on everything."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from engine.jobs.frame import JobLanes
from engine.jobs.trial.by_keys import parts_of_keys
from engine.jobs.trial.candidates import Candidate
from engine.jobs.trial.found import FAVOURED, IMPORTANCE, KEYS, TIME, Pair, Trial, ranked, whole
from engine.jobs.trial.layout import TrialLayout
from engine.jobs.trial.narrowing import Narrowing
from engine.jobs.trial.replays import TAUGHT, WEIGHTS, Replays
from engine.jobs.trial.screened import (
    FEW,
    Screen,
    close,
    finalists,
    for_keys,
    memories_of,
    others,
    screens,
    with_all,
)
from engine.jobs.trial.stretches import DRAWS, Stretch, affordable, cost_of
from engine.runtime.randomness import uniforms
from gpu_kernels.philox import PURPOSE_STRETCH

TUPLES = 10_000_000
"""Tuples for each memory that the candidates of a trial replay together, at most, unless
`TUPLES_A_ROW` is more. They count by the time that they take: see `replays.WEIGHTS` and
`stretches.FEWEST`."""
TUPLES_A_ROW = 4
"""The same for each tuple of the archives, with all memories."""
SCREENING = 4
"""Tuples for each of the archives' that the first round has with each memory, at most, where the
last can replay two on everything."""
LEAST = 8
"""It then has one of so many tuples, at least."""
RATHER = 4
"""Draws, at least, that are replayed rather than all policies on everything."""
PART = 8
"""One of so many of the draws that can be afforded make the first round, where the last cannot
replay everything: there are more of them as long as it matters."""
DUEL = WEIGHTS[FAVOURED[0]] + TAUGHT + 1
"""What the favoured and another candidate count as."""


def most_tuples(lanes: JobLanes, memories: int) -> int:
    """Return what the candidates of a trial of so many memories replay at most, by default."""
    return max(TUPLES * memories, TUPLES_A_ROW * sum(lanes.rows))


def run_trial(
    layout: TrialLayout,
    lanes: JobLanes,
    *,
    measure: str = IMPORTANCE,
    seed: int = 0,
    tuples: int | None = None,
    also: Callable[[Candidate], bool] | None = None,
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
    also : callable, optional
        Returns whether a candidate is to be replayed on everything where some are, even if
        others are better.

    Notes
    -----
    Where that is little, every candidate is replayed on everything. If not, rounds share it
    (successive halving), and where it allows that the last ones replay on everything: on short
    stretches chance chooses.

    The first round replays the candidates on a few stretches, drawn systematically with
    probability by their work; with one estimator or one of several memories where they would
    be too few, and then with one split a policy; or that on everything. Then those that it does
    not find clearly worse than the best are replayed on everything, and the best of them with all
    estimators, splits and memories. Where even two take too much, what may be best is replayed on
    twice as many stretches, again and again, as long as it matters and can be afforded. Where
    windows are so long that few stretches can be afforded with all splits, parts of the keys stand
    for them, with those estimators that go by all that arrives; or if there are none, few
    stretches with one split, or the first policies of the list on everything.
    """
    return _Rounds(layout, lanes, measure, seed, tuples, also).trial()


class _Rounds:
    def __init__(
        self,
        layout: TrialLayout,
        lanes: JobLanes,
        measure: str,
        seed: int,
        tuples: int | None,
        also: Callable[[Candidate], bool] | None,
    ) -> None:
        self._every = list(range(len(layout.places)))
        self._memories = len(memories_of(layout, self._every))
        self._tuples = most_tuples(lanes, self._memories) if tuples is None else tuples
        self._layout = layout
        self._lanes, self._measure = lanes, measure
        self._rows = sum(lanes.rows)
        self._cost = sum(cost_of(rows) for rows in lanes.rows)
        self._replays = Replays(self._layout, lanes)
        self._also = also
        self._start = float(uniforms(seed, PURPOSE_STRETCH, 0, np.zeros(1, np.int64))[0])
        self._screens = screens(layout)
        self._sampled: str | None = None

    def trial(self) -> Trial:
        """Replay, and rank."""
        every, span = self._every, self._lanes.prepared.span
        if span is None or self._everything:
            return self._trial(whole(self._replays.whole(every)), every)
        drawn_from = self._drawn_from()
        if drawn_from is None:
            policies = self._screens[-1]
            return self._on_everything(policies.cells, policies, {}, (), self._tuples)
        screen, stretches, number = drawn_from
        self._sampled = TIME if stretches[0].keys is None else KEYS
        first = number if self._settled else min(number, max(DRAWS, number // PART))
        rounds = Narrowing(
            self._layout, self._replays, stretches, first, self._start, self._measure,
            self._tuples,
        )  # fmt: skip
        rounds.replay(screen.cells)
        best = finalists(self._layout, rounds.known, self._measure)
        several = len(self._affordable(best, rounds.left)) > self._memories
        if self._settled and (several or self._all_affordable(best, rounds.left)):
            return self._on_everything(best, screen, rounds.known, rounds.draws(), rounds.left)
        last, draws = rounds.narrowed(screen), rounds.draws()
        counted = sum(stretches[at].counted for at in {*draws})
        return self._trial(rounds.known, last, draws, counted / self._rows)

    def _drawn_from(self) -> tuple[Screen, list[Stretch], int] | None:
        """Return what the first round replays, the stretches that it draws from, and its draws.

        None where it replays everything instead.
        """
        policies = self._screens[-1]
        on_everything = self._all_affordable(policies.cells, self._tuples)
        least = RATHER if on_everything else FEW
        for screen in self._screens[: None if on_everything else -1]:
            stretches, number = self._in_time(screen)
            if number >= max(least, screen.least):
                return screen, stretches, number
        if on_everything:
            return None
        of_keys = for_keys(self._layout, policies)
        cells = [[own[number] for number in of_keys.cells] for own in self._layout.cells]
        weight = sum(self._replays.weights(of_keys.cells))
        parts, draws = parts_of_keys(self._lanes, cells, weight, self._for_first(), FEW)
        if draws:
            return of_keys, parts, draws
        stretches, number = self._in_time(policies)
        return (policies, stretches, number) if number else None

    def _in_time(self, screen: Screen) -> tuple[list[Stretch], int]:
        """Return stretches of time for a first round, and how many draws can be afforded."""
        weights = self._replays.weights(screen.cells)
        return affordable(self._lanes, self._layout.exact, weights, self._for_first())

    @property
    def _duel(self) -> int:
        """What the favoured and another candidate take on everything, with all memories."""
        return DUEL * self._memories * self._cost

    @property
    def _settled(self) -> bool:
        """Whether that can be afforded."""
        return self._duel <= self._tuples - self._tuples // LEAST

    def _for_first(self) -> int:
        """Return the tuples for the first round: few where the last may replay everything."""
        if not self._settled:
            return self._tuples // 2
        most = max(self._tuples // LEAST, (self._tuples - self._duel) // 2)
        return min(SCREENING * self._memories * self._cost, most)

    @property
    def _everything(self) -> bool:
        """Whether all can be: stretches rank those badly that learn from much of the past."""
        return self._fits(self._every, self._tuples)

    def _fits(self, cells: Sequence[int], tuples: float) -> bool:
        """Return whether cells can be replayed on everything."""
        return not self._rows or sum(self._replays.weights(cells)) * self._cost <= tuples

    def _on_everything(
        self,
        cells: Sequence[int],
        screen: Screen,
        known: Mapping[int, Pair],
        draws: Sequence[int],
        tuples: int,
    ) -> Trial:
        """Replay on everything as many cells as can be afforded, or one, and more like the best.

        And what is left then for: the best of other policies, and estimators.
        """
        chosen = self._affordable(cells, tuples) or self._affordable(cells[:1], math.inf)
        found = whole(self._replays.whole(chosen))
        like = with_all(self._layout, close(self._layout, found, self._measure), screen)
        if self._also is not None:
            places = self._layout.places
            like += [at for at in self._every if self._also(places[at].candidate)]
        like += others(self._layout, {**known, **found}, self._measure, screen)
        tried = self._affordable([*chosen, *like], tuples)
        found |= whole(self._replays.whole([cell for cell in tried if cell not in found]))
        return self._trial({**known, **found}, [*found], draws)

    def _all_affordable(self, cells: Collection[int], tuples: int) -> bool:
        """Return whether all can be replayed on everything, with all memories."""
        return {*cells} <= {*self._affordable(cells, tuples)}

    def _affordable(self, cells: Iterable[int], tuples: float) -> list[int]:
        """Return those that can be replayed on everything, with all memories, the first first."""
        chosen: list[int] = []
        for cell in cells:
            own = self._layout.places[cell].candidate
            more = [at for at in self._every if self._layout.places[at].candidate == own]
            if more[0] not in chosen and self._fits([*chosen, *more], tuples):
                chosen += more
        return chosen

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
        outputs = self._replays.outputs(draws) if len(draws) else None
        grid = len({place.candidate for place in self._layout.places})
        return Trial(
            found, grid, share is None, len({*draws}), part, self._replays.replayed, outputs,
            self._sampled,
        )  # fmt: skip
