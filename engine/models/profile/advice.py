"""What a profile advises: the policy by the model that fits, and what memory and windows keep."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.models import age, frequency
from engine.models.counts import KeyCounts
from engine.models.profile.fit import AGE, FREQUENCY
from engine.models.profile.parts import AgeCurve
from engine.models.rate_curve import RateCurve, shared
from engine.runtime.streams import SIDES

MEMORIES = (5, 10, 20, 50)
"""Percent of what the exact join needs at its peak."""
KEPT = (95, 99)
_YIELD = (
    "It learns age and key together from what arrives, and found more on all four archives "
    "measured; on streams that are just as the model has them, 1 % of all outputs less. It takes "
    "memory of its own for what it learns, and the expected recall is not its."
)
BURSTY = 1.5
"""From this ratio of the fullest window to the mean on, expected recall is taken with caution."""


class Evidently(NamedTuple):
    """What the advice rests on.

    Attributes
    ----------
    windows, rows, peaks : (int, int)
        By side, as the next two.
    mean_windows : (float, float)
    curves : (AgeCurve, AgeCurve)
    matches, simultaneous : int
        Outputs whose members arrive one after the other, and the others.
    ticks : int
        T, the span.
    counts : KeyCounts
        Tuples of each key.
    importance_varies : bool
    """

    windows: tuple[int, int]
    rows: tuple[int, int]
    peaks: tuple[int, int]
    mean_windows: tuple[float, float]
    curves: tuple[AgeCurve, AgeCurve]
    matches: int
    simultaneous: int
    ticks: int
    counts: KeyCounts
    importance_varies: bool


def advise(basis: Evidently, fit: dict[str, Any]) -> dict[str, Any]:
    """Return the advice, as a profile has it."""
    model = fit["model"]
    policy, why = _policy(model, fit["bits_a_match"]["both"], varies=basis.importance_varies)
    modelled = policy in ("age", "prob")
    return {
        "model": model,
        "policy": policy,
        "estimator": "history" if policy == "prob" else None,
        "why": why,
        "alternative": "yield" if modelled else None,
        "alternative_why": _YIELD if modelled else None,
        "caution": _caution(basis),
        "memory": _memories(basis) if sum(basis.rows) else [],
        "window": {
            side: {str(percent): curve.within[str(percent)] for percent in KEPT}
            for side, curve in zip(SIDES, basis.curves, strict=True)
        },
    }


def _policy(model: str | None, bits: dict[str, Any], *, varies: bool) -> tuple[str, str]:
    """Return the policy to use, and why, in one sentence."""
    if model is None:
        return "recent", "No stored tuple was matched in the second half: no model could be tried."
    more, less = bits[model], bits[AGE if model == FREQUENCY else FREQUENCY]
    said = (
        f"the {model} model saves {more:.2f} bits a match over a constant rate, the other "
        f"{less:.2f}"
    )
    if varies:
        return "yield", f"Importance varies, which neither model knows of; by counts alone {said}."
    if more <= 0:
        return "yield", f"Neither model foretells the second half: {said}."
    name = "age" if model == AGE else "prob"
    return name, f"Importance is constant, and {said}."


def _caution(basis: Evidently) -> str | None:
    """Return what makes the expected recall too high, if something does: bursts."""
    ratios = [
        peak / mean if mean else 1.0
        for peak, mean in zip(basis.peaks, basis.mean_windows, strict=True)
    ]
    if max(ratios) < BURSTY:
        return None
    return (
        f"The {SIDES[ratios.index(max(ratios))]} stream comes in bursts: its fullest window holds "
        f"{max(ratios):.1f} times the mean, and both models take rates for constant, so expect "
        "less recall than they do."
    )


def _memories(basis: Evidently) -> list[dict[str, Any]]:
    """Return the recall that each memory is expected to reach under both models."""
    ages = [
        age.side_curve(np.array(curve.buckets), window, rows / basis.ticks)
        for curve, window, rows in zip(basis.curves, basis.windows, basis.rows, strict=True)
    ]
    model = frequency.model_of(basis.counts, basis.windows, basis.ticks)

    def by_age(held: Sequence[int]) -> float:
        return age.expected_recall(ages, held, basis.ticks, basis.matches, basis.simultaneous)

    def by_frequency(held: Sequence[int]) -> float:
        return frequency.expected_recall([model], [held])

    found = []
    for percent in MEMORIES:
        even = [peak * percent // 100 for peak in basis.peaks]
        found.append(
            {
                "percent": percent,
                "tuples": dict(zip(SIDES, even, strict=True)),
                AGE: _expected(ages, even, by_age),
                FREQUENCY: _expected([model.left, model.right], even, by_frequency),
            }
        )
    return found


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
