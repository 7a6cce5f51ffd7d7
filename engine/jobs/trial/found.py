"""What a trial found: what each candidate is expected to reach, and their ranking."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from engine.jobs.sweep.cells import Exact
from engine.jobs.trial.candidates import Candidate
from engine.jobs.trial.estimate import Drawn, Estimate, estimated, exactly, ratio
from engine.jobs.trial.layout import TrialLayout
from engine.options.budget import POOLED
from engine.runtime.jit import Floats

FAVOURED = ("yield", str(POOLED))
"""The policy and split that are best most often: taken unless another is better than chance makes
it, and replayed as far as the best are, so that chance does not leave it out."""
ERRORS = 2.0
"""Standard errors by which it is to be better: the best of many is better than it should be."""
ENOUGH = 6
"""Draws, at least, whose differences tell how much chance makes."""
TIME, KEYS = "time", "keys"
IMPORTANCE, RECALL = ("importance_recall", "recall")


class Counted(NamedTuple):
    """What cells come to on a stretch, or on everything."""

    cells: dict[int, Exact]
    """Outputs and importance by the cell's number."""
    exact: Exact
    """Of the exact join."""


class Tried(NamedTuple):
    """A candidate, and what it is expected to reach with a memory."""

    candidate: Candidate
    budget: tuple[int, int]
    """Tuples of left and right, of all lanes."""
    importance_recall: Estimate
    recall: Estimate


@dataclass(frozen=True)
class Trial:
    """What a trial found.

    Attributes
    ----------
    found : list of list of Tried
        By memory: the best candidate first.
    grid : int
        Candidates that there are with one memory, tried or not.
    exact : bool
        Whether those of the last round were replayed on the whole archive.
    stretches : int
        Different stretches that were replayed; 0 where all candidates were replayed on everything.
    share : float
        Part of the archives' tuples that arrive in what the last round counted.
    sampled : str or None
        What stretches are parts of: `TIME`, or `KEYS` where windows are too long for that. None
        where there are none.
    replayed : int
        Tuples that all candidates together replayed.
    outputs : int or None
        Of the exact join on the stretches of the last round that had some; None where all
        candidates were replayed on everything.
    """

    found: list[list[Tried]]
    grid: int
    exact: bool
    stretches: int
    share: float
    replayed: int
    outputs: int | None = None
    sampled: str | None = None


class Pair(NamedTuple):
    """What a cell is expected to reach."""

    importance_recall: Estimate
    recall: Estimate
    seen: float = math.inf
    """Outputs of the exact join that it goes by; infinite where all was replayed."""
    drawn: tuple[Drawn, Floats] | None = None
    """Draws that it goes by, and its outputs and importance on each, (2, n) float64."""

    def reached(self, measure: str) -> Estimate:
        """Return a measure by its name."""
        found: Estimate = getattr(self, measure)
        return found

    def gain_over(self, other: Pair, measure: str) -> tuple[float, float]:
        """Return how much more it reaches than another on the same draws.

        And half of the width of the 95 % interval of that.
        """
        assert self.drawn is not None and other.drawn is not None  # noqa: S101, PT018 - of stretches
        some, own = self.drawn
        what = Exact._fields.index("importance" if measure == IMPORTANCE else "outputs")
        return ratio(
            own[what] - other.drawn[1][what], some.exact[what], some.work, covered=some.covered
        )

    def is_behind(self, other: Pair, measure: str) -> bool:
        """Return whether it reaches less than another by more than chance makes it.

        That is, whether the 95 % interval of their difference on the same draws lies below 0.
        """
        more, error = self.gain_over(other, measure)
        return more < -error


def estimated_pair(some: Drawn, reached: Floats, seen: float) -> Pair:
    """Return what a cell is expected to reach.

    Parameters
    ----------
    reached : (2, n) float64
        Its outputs and importance on each draw.
    seen : float
        Outputs of the exact join on all that was drawn.
    """
    recall, importance_recall = (
        estimated(own, exact, some) for own, exact in zip(reached, some.exact, strict=True)
    )
    return Pair(importance_recall, recall, seen, (some, reached))


def whole(counted: Counted) -> dict[int, Pair]:
    """Return what cells reach on everything."""
    return {
        cell: Pair(
            exactly(one.importance, counted.exact.importance),
            exactly(one.outputs, counted.exact.outputs),
        )
        for cell, one in counted.cells.items()
    }


def best_of(
    layout: TrialLayout, known: Mapping[int, Pair], measure: str, number: int | None = None
) -> list[int]:
    """Return with each memory so many cells, the best first; all of them by default.

    Where it is known, the favoured one is among them, even as one more: and the first of them,
    where the best is no more than noise better.
    """
    by_memory: dict[int, list[int]] = {}
    for cell, place in enumerate(layout.places):
        if cell in known:
            by_memory.setdefault(place.memory, []).append(cell)

    def reached(cell: int) -> float:
        return known[cell].reached(measure).value

    def order(own: list[int]) -> list[int]:
        best = sorted(own, key=reached, reverse=True)
        for cell in own:
            if layout.places[cell].candidate[:2] == FAVOURED:
                first = known[best[0]]
                if _by_chance(first, known[cell], measure):
                    best.remove(cell)
                    best.insert(0, cell)
                return best[:number] + [cell] * (cell not in best[:number])
        return best[:number]

    return [cell for _, own in sorted(by_memory.items()) for cell in order(own)]


def _by_chance(best: Pair, own: Pair, measure: str) -> bool:
    """Return whether chance may make one recall as much better than another as it is."""
    more = best.reached(measure).value - own.reached(measure).value
    return more < _noise(best, own, measure) or (
        own.drawn is not None
        and best.drawn is not None
        and own.drawn[0] is best.drawn[0]  # else they were not in the same last round
        and own.drawn[0].work.size >= ENOUGH
        and not own.is_behind(best, measure)
    )


def _noise(one: Pair, other: Pair, measure: str) -> float:
    """Return by how much two recalls differ by chance, at most about: `ERRORS` standard errors.

    Outputs that only one of two candidates finds come as those of a Poisson process. There are no
    more of them than both find together, and than both miss. Importances that differ as those of
    an exponential distribution do make the variance twice as large.
    """
    both, seen = one.reached(measure).value + other.reached(measure).value, max(1.0, one.seen)
    return ERRORS * math.sqrt(2.0 * max(min(both, 2.0 - both), 1.0 / seen) / seen)


def ranked(
    layout: TrialLayout, known: Mapping[int, Pair], measure: str, last: Collection[int]
) -> list[list[Tried]]:
    """Return the candidates by memory, the best first; those of the last round before others."""
    rest = {cell: pair for cell, pair in known.items() if cell not in last}
    order = [
        *best_of(layout, {cell: known[cell] for cell in last}, measure),
        *best_of(layout, rest, measure),
    ]
    found: list[list[Tried]] = [[] for _ in {place.memory for place in layout.places}]
    for cell in order:
        place = layout.places[cell]
        left, right = (sum(own[cell].budget[side] for own in layout.cells) for side in (0, 1))
        pair = known[cell]
        found[place.memory].append(
            Tried(place.candidate, (left, right), pair.importance_recall, pair.recall)
        )
    return found
