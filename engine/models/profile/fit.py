"""Which model of arrivals fits: bits a match, of the second half of the span, learnt on the first.

A stored tuple of side i is matched by a Poisson process, whose rate a tick is
- constant: ``(matches + 1/2) / exposure``, of the first half;
- by age (P5 2.2): the same of its age's bucket;
- by frequency (P5 2.1): ``(c + 1/2) / T``, c tuples of its key on the other side in the T ticks of
  the first half.
Tuples are followed from their arrival to the end of the half that they arrive in; exposure is the
ticks at which they are unexpired by then, of age 1 or more. The log likelihood of m matches at
rate r over an exposure e is ``m ln r - e r``, up to what all models have alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.models.profile.kernel import BITS, Ints
from engine.models.profile.keys import Evidence
from engine.runtime.streams import SIDES

AGE, FREQUENCY = MODELS = ("age", "frequency")
_HALF = 0.5


class SideFit(NamedTuple):
    """What the models say of one side, in nats.

    Attributes
    ----------
    matches : int
        Of the tuples of the second half.
    age, frequency : float
        Log likelihoods less that of the constant rate.
    """

    matches: int
    age: float
    frequency: float

    def bits(self, model: str) -> float | None:
        """Return the bits a match that a model saves over a constant rate."""
        gained: float = getattr(self, model)
        return gained / (self.matches * math.log(2)) if self.matches else None


def exposures(reached: Ints, partly: Ints, window: int) -> list[int]:
    """Return the ticks that tuples spent in each age bucket.

    Parameters
    ----------
    reached : (n,) int64
        Tuples whose last age lies in the bucket.
    partly : (n, 2) int64
        Ticks of these in it, two words.
    window : int
        W: bucket b holds the ages from ``ceil(b W / n) + 1`` to ``ceil((b + 1) W / n)``.

    Examples
    --------
    Two tuples of ages up to 3 and one up to 1, two buckets of 2 ticks:

    >>> exposures(np.array([1, 2]), np.array([[1, 0], [2, 0]]), 4)
    [5, 2]
    """
    n = len(reached)
    beyond = np.concatenate([np.cumsum(reached[::-1])[::-1][1:], [0]]).tolist()
    edges = [-(-b * window // n) for b in range(n + 1)]
    return [beyond[b] * (edges[b + 1] - edges[b]) + _ticks(*partly[b].tolist()) for b in range(n)]


def _ticks(low: int, high: int) -> int:
    return low + (high << BITS)


def fit_side(
    matches: tuple[Sequence[int], Sequence[int]],
    exposed: tuple[Sequence[int], Sequence[int]],
    evidence: Evidence,
    ticks: int,
) -> SideFit:
    """Compare the models on one side's stored tuples.

    Parameters
    ----------
    matches, exposed : (n ints, n ints)
        By age bucket, of the tuples of the first half and of the second.
    evidence : Evidence
        Of the second half, by the key's tuples on the other side in the first.
    ticks : int
        T, of the first half.
    """
    seen = sum(matches[1])
    if not ticks or not seen:
        return SideFit(seen, 0.0, 0.0)
    constant = _rate(sum(matches[0]), sum(exposed[0]))
    base = _likelihood(seen, sum(exposed[1]), constant)
    buckets = zip(*matches, *exposed, strict=True)
    age = math.fsum(
        _likelihood(m, e, _rate(learnt, exposure)) for learnt, m, exposure, e in buckets
    )
    frequency = math.fsum(
        _likelihood(m, _ticks(low, high), _rate(count, ticks))
        for count, m, low, high in zip(*(values.tolist() for values in evidence), strict=True)
    )
    return SideFit(seen, age - base, frequency - base)


def _rate(events: int, exposure: int) -> float:
    return (events + _HALF) / max(1, exposure)


def _likelihood(matches: int, exposure: int, rate: float) -> float:
    return matches * math.log(rate) - exposure * rate


def fit_report(left: SideFit, right: SideFit) -> dict[str, Any]:
    """Return the fit as a profile has it: bits a match, and the model that saves more."""
    both = SideFit(
        left.matches + right.matches, left.age + right.age, left.frequency + right.frequency
    )
    bits = {
        name: {model: own.bits(model) for model in MODELS} | {"matches": own.matches}
        for name, own in (*zip(SIDES, (left, right), strict=True), ("both", both))
    }
    better = None
    if both.matches:
        better = AGE if both.age >= both.frequency else FREQUENCY
    return {"model": better, "bits_a_match": bits}
