"""The recall that a model expects of a replay, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.jobs.split import LaneModels
from engine.models import rate_curve
from engine.models.frequency import expected_recall
from engine.models.rate_curve import RateCurve
from engine.replay.settings import UNLIMITED
from engine.runtime.streams import SIDES

AGE, FREQUENCY = "age", "frequency"
Ages = tuple[int, int]
"""Outputs of the exact join in which the stored member is of left, and of right."""


def predicted_by_age(
    models: LaneModels, budgets: Sequence[tuple[int, int]], exact: int, ages: Ages
) -> dict[str, Any]:
    """Return what the age curves promise (P5 3.2), simultaneous matches included.

    Parameters
    ----------
    models : LaneModels
        With AGE's curves.
    budgets : sequence of (int, int)
        K of left and right of each lane.
    exact : int
        Outputs of the exact join.
    ages : (int, int)
        Those whose stored member is of left, and of right: a given curve says how they spread over
        a tuple's life, and not how many they are.
    """
    reached, given = [], []
    for side in (0, 1):
        modelled = sum(models.curves[side] or ()) * sum(p[side].rows for p in models.profiles)
        scale = ages[side] / modelled if modelled else 0.0
        for lane, budget in enumerate(budgets):
            curve = models.by_age(lane)[side]
            reached.append(RateCurve(curve.memory, curve.rate * scale))
            given.append(float(budget[side]))
    matches = sum(ages)
    recall = rate_curve.expected_recall(reached, given, models.ticks, matches, exact - matches)
    peaks = [
        rate_curve.k_opt(np.array(curve or (0.0,)), window) or None
        for curve, window in zip(models.curves, models.windows, strict=True)
    ]
    return _told(recall, AGE, budgets, peaks)


def predicted_by_frequency(
    models: LaneModels, budgets: Sequence[tuple[int, int]]
) -> dict[str, Any]:
    """Return what the frequencies of the join attributes promise to PROB (P5 3.3)."""
    if models.frequencies is not None:
        held = [float(sum(budget[side] for budget in budgets)) for side in (0, 1)]
        recall = expected_recall([models.frequencies], [held])
    else:
        lanes = [models.frequency(lane) for lane in range(len(budgets))]
        recall = expected_recall(lanes, [[float(k) for k in budget] for budget in budgets])
    return _told(recall, FREQUENCY, budgets, [None, None])


def _told(
    recall: float, model: str, budgets: Sequence[tuple[int, int]], peaks: Sequence[float | None]
) -> dict[str, Any]:
    held = [[budget[side] for budget in budgets] for side in (0, 1)]
    split = [None if UNLIMITED in own else sum(own) for own in held]
    return {
        "recall": min(1.0, recall),
        "model": model,
        "split": dict(zip(SIDES, split, strict=True)),
        "k_opt": dict(zip(SIDES, peaks, strict=True)),
    }
