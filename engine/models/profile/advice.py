"""The fit of both models to a profile, and the policy, memory and windows it advises."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.models import frequency, rate_curve
from engine.models.frequency import KeyCounts
from engine.models.profile.kernel import BITS
from engine.models.profile.keys import Evidence
from engine.models.profile.parts import AgeCurve
from engine.models.rate_curve import RateCurve, shared
from engine.runtime.jit import Ints
from engine.runtime.streams import SIDES

AGE, FREQUENCY = MODELS = ("age", "frequency")
_HALF = 0.5


class SideFit(NamedTuple):
    """What the models say of one side, in nats."""

    matches: int
    """Of the tuples of the second half."""
    age: float
    frequency: float
    """`age`, `frequency`: Log likelihoods less that of the constant rate."""

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


KEPT = (95, 99)
BURSTY, BURSTS = 1.5, 10.0
"""Ratios of the fullest window to the mean: from the first on rates are not constant; beyond the
second it is so much that the figure says nothing."""
AGREED = 0.02
"""Recall by which a prediction may lie beside what replays of the model's policy reach."""


class Evidently(NamedTuple):
    """What the advice rests on."""

    windows: tuple[int, int]
    rows: tuple[int, int]
    peaks: tuple[int, int]
    """`windows`, `rows`, `peaks`: By side, as the next two."""
    mean_windows: tuple[float, float]
    curves: tuple[AgeCurve, AgeCurve]
    matches: int
    simultaneous: int
    """`matches`, `simultaneous`: Outputs whose members arrive one after the other, and the
    others."""
    ticks: int
    """T, the span."""
    counts: KeyCounts
    """Tuples of each key."""


def advise(
    basis: Evidently, fit: dict[str, Any], trials: Sequence[dict[str, Any]], weighed: dict[str, Any]
) -> dict[str, Any]:
    """Return the advice, as a profile has it.

    Parameters
    ----------
    trials : sequence of dict
        What short replays advise with each memory, plain.
    weighed : dict
        By what they weighed outputs: the importance of each side, and how it is combined.
    """
    return {
        "model": fit["model"],
        **weighed,
        "trials": [
            {name: own for name, own in one.items() if name != "modelled"} for one in trials
        ],
        "caution": _caution(basis),
        "memory": _memories(basis, trials) if sum(basis.rows) else [],
        "window": {
            side: {str(percent): curve.within[str(percent)] for percent in KEPT}
            for side, curve in zip(SIDES, basis.curves, strict=True)
        },
    }


def _caution(basis: Evidently) -> str | None:
    """Return what makes the expected recall too high, if something does: bursts."""
    ratios = [
        peak / mean if peak > _steady_peak(mean, rows) else 1.0
        for peak, mean, rows in zip(basis.peaks, basis.mean_windows, basis.rows, strict=True)
    ]
    if max(ratios) < BURSTY:
        return None
    most = max(ratios)
    times = f"{most:.1f} times" if most < BURSTS else "many times"
    return (
        f"The {SIDES[ratios.index(most)]} stream comes in bursts: its fullest window holds {times} "
        "the mean, and both models take rates for constant."
    )


def _steady_peak(mean: float, rows: int) -> float:
    """Return what no window of a Poisson stream of this rate holds, but with probability 1/1000.

    By Bernstein's inequality for a Poisson number, and the union over the windows that begin at
    each of the rows.
    """
    log = math.log(1000 * max(1, rows))
    return mean + log / 3 + math.sqrt(log * log / 9 + 2 * log * mean)


def _memories(basis: Evidently, trials: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the recall that each memory is expected to reach under both models."""
    ages = [
        rate_curve.side_curve(np.array(curve.buckets), window, rows / basis.ticks)
        for curve, window, rows in zip(basis.curves, basis.windows, basis.rows, strict=True)
    ]
    model = frequency.model_of(basis.counts, basis.windows, basis.ticks)

    def by_age(held: Sequence[int]) -> float:
        return rate_curve.expected_recall(
            ages, held, basis.ticks, basis.matches, basis.simultaneous
        )

    def by_frequency(held: Sequence[int]) -> float:
        return frequency.expected_recall([model], [held])

    found = []
    for one in trials:
        even = [one["even"][side] for side in SIDES]
        expected = {
            AGE: _expected(ages, even, by_age),
            FREQUENCY: _expected([model.left, model.right], even, by_frequency),
        }
        for name, own in expected.items():
            for split, replayed in one["modelled"][name].items():
                own |= {f"{split}_interval": _interval(own[split], replayed)}
        found.append(
            {
                "memory": one["memory"],
                "percent": 100 * sum(even) / max(1, sum(basis.peaks)),
                "tuples": dict(zip(SIDES, even, strict=True)),
                **expected,
            }
        )
    return found


def _interval(predicted: float, replayed: dict[str, float | None] | None) -> list[float] | None:
    """Return in what interval a recall is expected, None where replays do not confirm the model.

    Parameters
    ----------
    predicted : float
        By the model, at most 1.
    replayed : dict or None
        ``low`` and ``high``: the interval of replays of the model's policy; None without any, as
        are these where the replays were too few for one.

    Examples
    --------
    >>> _interval(0.5, {"low": 0.51, "high": 0.6}), _interval(0.5, {"low": 0.53, "high": 0.6})
    ([0.5, 0.6], None)
    """
    if replayed is None:
        return None
    low, high = replayed["low"], replayed["high"]
    if low is None or high is None or not low - AGREED <= predicted <= high + AGREED:
        return None
    return [min(low, predicted), max(high, predicted)]


def _expected(
    curves: list[RateCurve], even: list[int], recall: Callable[[Sequence[int]], float]
) -> dict[str, Any]:
    best = max(_splits(shared(curves, float(sum(even))), sum(even)), key=recall)
    return {
        "even": min(1.0, recall(even)),
        "best": min(1.0, recall(best)),
        "split": dict(zip(SIDES, best, strict=True)),
    }


def _splits(parts: Sequence[float], memory: int) -> list[tuple[int, int]]:
    """Return the whole splits next to the best: as the rates are concave, one of them is best.

    Examples
    --------
    >>> _splits([2.5, 7.5], 10), _splits([1.2, 3.0], 10)
    ([(2, 8), (3, 7)], [(2, 3)])
    """
    left, right = parts
    if math.ceil(left) + math.ceil(right) <= memory:  # both are full
        return [(math.ceil(left), math.ceil(right))]
    return [(part, memory - part) for part in sorted({math.floor(left), math.ceil(left)})]
