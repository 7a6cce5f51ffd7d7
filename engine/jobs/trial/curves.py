"""AGE's curves for a trial: of long archives from parts of the time or the keys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from engine.jobs.age_curves import AgeTask, Curve, Curves, count_ages, curves_given, measured_curves
from engine.jobs.frame import JobLanes
from engine.jobs.trial.by_keys import all_parts
from engine.jobs.trial.stretches import Stretch, affordable, drawn
from engine.lanes.key_parts import part_of
from engine.lanes.stretch import stretch_of
from engine.replay.settings import ReplaySettings, number_of

ROWS = 10_000_000
"""Of archives with more, stretches are counted: their last round is one of stretches, too."""
PART = 8
"""One of so many tuples is counted then, lead-ins included, at most."""
FEWEST = 4
"""Stretches; where windows are too long for so many, parts of the keys are counted."""
_MIDDLE = 0.5


def trial_curves(settings: ReplaySettings, lanes: JobLanes, given: Curves) -> Curves:
    """Return AGE's curves: given, or measured.

    Parameters
    ----------
    settings : ReplaySettings
        Of AGE.
    given : (curve or None, curve or None)
        In place of those measured, if there are both.
    """
    if None not in given:
        return given
    buckets = int(number_of(settings.parameters["buckets"]))
    if sum(lanes.rows) > ROWS:
        sampled = _sampled(settings, lanes, buckets)
        if sampled is not None:
            left, right = curves_given(settings)
            return (left or sampled[0], right or sampled[1])
    return measured_curves(curves_given(settings), lanes, settings, buckets)[0]


def _sampled(settings: ReplaySettings, lanes: JobLanes, buckets: int) -> Curves | None:
    """Return the curves as parts tell them, each by one over its work; None if there are none."""
    stretches, number = affordable(lanes, settings, (1, 0), sum(lanes.rows) / PART)
    if number < FEWEST:
        if lanes.through_facts:
            return None
        stretches, number = all_parts(lanes, FEWEST * PART), FEWEST
    places, times = np.unique(drawn(stretches, number, _MIDDLE), return_counts=True)
    chosen = [stretches[at] for at in places.tolist()]
    tasks = [_task(one, settings, lanes, buckets) for one in chosen]
    found = lanes.stages.mapped("age curves", count_ages, tasks, [one.rows[0] for one in chosen])
    weights = times / np.array([one.work for one in chosen])
    curves: list[Curve] = []
    for side in range(2):
        ages = weights @ np.array([one.ages[side] for one in found], np.float64)
        arrived = float(weights @ np.array([one.arrived[side] for one in found], np.float64))
        curves.append(tuple((ages / arrived if arrived else ages).tolist()))
    return curves[0], curves[1]


def _task(one: Stretch, settings: ReplaySettings, lanes: JobLanes, buckets: int) -> AgeTask:
    files = lanes.files[one.lane]
    if one.keys is not None:
        return AgeTask(part_of(files, *one.keys), settings, buckets)
    between = stretch_of(files, (one.leads[0], one.ticks[1]), one.rows[0])
    return AgeTask(between, replace(settings, start_ts=one.ticks[0]), buckets)
