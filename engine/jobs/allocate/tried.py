"""Recall as a function of memory, by short replays with a few memories."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from engine.jobs.allocate.divide import filled
from engine.jobs.allocate.recall import MeasuredCurve, RecallModel
from engine.jobs.frame import Archives, JobLanes
from engine.jobs.trial.candidates import Candidate
from engine.jobs.trial.found import RECALL, Tried
from engine.jobs.trial.layout import Place, lay_out
from engine.jobs.trial.run import most_tuples, run_trial
from engine.options.budget import EXPECTED, Amount, divided
from engine.options.replay import JobOptions
from engine.runtime.jit import Floats

REPLAYS = "replays"
SHARES = tuple(Fraction(percent, 100) for percent in (1, 2, 4, 7, 10, 15, 20, 30, 40, 55, 75))
"""Memories that are tried, as shares of what the exact join needs."""
FIRST = (SHARES[1], SHARES[4], SHARES[7])
"""Memories with which all candidates are tried."""


class Points(NamedTuple):
    """What candidates reach with some memories."""

    shares: tuple[Fraction, ...]
    tried: list[list[Tried]]
    """With each of them, the best candidate first."""

    def advised(self, share: float) -> Candidate:
        """Return the best candidate with the memory that is nearest to a share of the peak."""
        nearest = min(range(len(self.shares)), key=lambda i: abs(float(self.shares[i]) - share))
        return self.tried[nearest][0].candidate

    def reached(self, candidate: Candidate) -> list[float]:
        """Return the recall of a candidate with each memory; of the best where it was dropped."""
        found = []
        for own in self.tried:
            known = [one.recall.value for one in own if one.candidate == candidate]
            found.append(known[0] if known else own[0].recall.value)
        return found


def try_memories(job: JobOptions, archives: Archives, lanes: JobLanes) -> Points:
    """Try the candidates of a join with `SHARES` of its memory.

    All of them with `FIRST` of these, and the best with each of those with the others, too.
    """
    amounts = [divided(Amount(share=share)) for share in SHARES]
    layout = lay_out(job, amounts, archives, lanes)
    tuples = most_tuples(lanes, len(FIRST)) // 2

    def tried(wanted: Callable[[Place], bool]) -> list[list[Tried]]:
        own = layout.only(wanted)
        return run_trial(own, lanes, measure=RECALL, seed=job.seed, tuples=tuples).found

    first = tried(lambda place: SHARES[place.memory] in FIRST)
    best = {own[0].candidate for own in first}
    rest = tried(lambda place: SHARES[place.memory] not in FIRST and place.candidate in best)
    left = iter(first), iter(rest)
    return Points(SHARES, [next(left[share not in FIRST]) for share in SHARES])


class TriedModel(NamedTuple):
    """What memory gives in a join, by replays; read as `RecallModel` is."""

    memory: Floats
    """(n,) float64. Tuples of both sides, from 0 to the peaks."""
    reached: Floats
    """(n,) float64. Recall with them, non-decreasing."""
    peaks: tuple[int, int]
    sides: RecallModel | None
    """By whose curves one memory is split; None: each side has its share, or both one memory."""
    name: str = REPLAYS

    @property
    def knots(self) -> Floats:
        """Memories between which recall is linear."""
        return self.memory

    def curve(self, memory: Floats) -> Floats:
        """Return the expected recall of memories."""
        return np.interp(memory, self.memory, self.reached)

    def recall(self, left: float, right: float) -> float:
        """Return the expected recall with so many tuples a side."""
        if left >= self.peaks[0] and right >= self.peaks[1]:
            return 1.0
        return float(self.curve(np.array([left + right]))[0])

    def memory_for(self, recall: float) -> float:
        """Return the least memory whose expected recall is `recall`; the peaks if none is."""
        return MeasuredCurve(self.memory, self.reached).memory_for(recall)

    def split(self, memory: float) -> tuple[float, float]:
        """Return the tuples of left and right of one memory."""
        if self.sides is not None:
            return self.sides.split(memory)
        left, right = filled([0.0, 0.0], self.peaks, memory)
        return left, right


def tried_model(
    points: Points, candidate: Candidate, model: RecallModel, peaks: tuple[int, int]
) -> TriedModel:
    """Return the recall of a candidate by memory: monotone, linear between what was tried.

    Parameters
    ----------
    model : RecallModel
        Of the join: what needs no memory, and the best split.
    peaks : (int, int)
        With all of them a replay is exact.
    """
    free = model.free / model.exact if model.exact else 1.0
    memory = [0.0, *(float(share) * sum(peaks) for share in points.shares), float(sum(peaks))]
    reached = [free, *points.reached(candidate), 1.0]
    at, first = np.unique(np.array(memory), return_index=True)
    rising = np.maximum.accumulate(np.maximum(free, np.array(reached)))[first]
    rising[-1] = 1.0
    by_model = candidate.split == str(EXPECTED)
    return TriedModel(at, np.minimum(1.0, rising), peaks, model if by_model else None)
