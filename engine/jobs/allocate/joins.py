"""A join whose recall is to be allocated: measured, modelled, replayed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.jobs.age_curves import Curves, curves_cut, curves_given
from engine.jobs.allocate.divide import whole
from engine.jobs.allocate.measure import JoinMeasure, measure_join, measured_by_profile
from engine.jobs.allocate.recall import (
    AGE,
    FREQUENCY,
    RecallModel,
    better,
    chosen_model,
    recall_model,
)
from engine.jobs.allocate.tried import REPLAYS, Points, TriedModel, tried_model, try_memories
from engine.jobs.compile_ahead import begin_for_trials
from engine.jobs.frame import JobLanes, open_job, prepare_job
from engine.models.profile.model import ArrivalProfile
from engine.options.allocate import JoinOptions
from engine.options.budget import POOLED, Amount, divided
from engine.options.replay import JobOptions
from engine.policies import policy_named
from engine.replay.settings import ReplaySettings
from engine.runtime.executors import Stages

POLICY_OF = {AGE: "age", FREQUENCY: "prob"}
ESTIMATOR_OF = {"prob": "history"}
"""P5's PROB goes by how often keys arrive, not by what is in memory."""
DEFAULT_ESTIMATOR = "memory"


@dataclass(frozen=True)
class Measured:
    """A join whose archives have been read."""

    options: JoinOptions
    job: JobOptions
    """With the number of lanes that it is prepared in."""
    found: JoinMeasure


@dataclass(frozen=True)
class TriedJoin(Measured):
    """A join whose candidates have been tried: it has neither a policy nor a profile."""

    points: Points


def buckets_of(join: JoinOptions) -> int:
    """Return the buckets of a join's age curves: its own, else those of AGE."""
    own = join.job.parameters.get("buckets") if join.policy == "age" else None
    default = next(p.default for p in policy_named("age").parameters if p.name == "buckets")
    return int(default if own is None else own)  # type: ignore[arg-type]


def opened_join(join: JoinOptions, stages: Stages) -> tuple[JobOptions, ReplaySettings, JobLanes]:
    """Return a join's job with its number of lanes, what it is measured by, and its lanes."""
    job = replace(join.job, lanes=join.job.lanes or 1)
    archives = open_job(job)
    if join.policy is None:
        begin_for_trials(archives, stages.executor)
    settings = ReplaySettings(
        *archives.windows(job),
        estimator=join.estimator or DEFAULT_ESTIMATOR,
        probe=job.probe,
        combine=job.combine,
        start_ts=archives.start_ts(job),
    )
    return job, settings, prepare_job(job, archives, stages)


def measured(join: JoinOptions, stages: Stages) -> Measured:
    """Measure a join by its archives, or by its profile.

    Raises
    ------
    WinnowError
        If an archive cannot be read, or the profile is of another join.
    """
    job, settings, lanes = opened_join(join, stages)
    if join.profile is not None:
        profile = ArrivalProfile.load(join.profile)
        found = measured_by_profile(profile, lanes.prepared, settings, str(join.profile))
        return Measured(join, job, found)
    settings = replace(settings, estimator=DEFAULT_ESTIMATOR)
    found = measure_join(lanes, settings, buckets_of(join))
    if join.policy is None and any(found.rows):
        return TriedJoin(join, job, found, try_memories(job, open_job(job), lanes))
    return Measured(join, job, found)


@dataclass(frozen=True)
class RelatedJoin:
    """A join with the relation of its memory and what is allocated."""

    measured: Measured

    @property
    def weight(self) -> float:
        """P5's w_i."""
        return self.measured.options.weight

    @property
    def peaks(self) -> tuple[int, int]:
        """What the exact join needs."""
        return self.measured.found.peaks


@dataclass(frozen=True)
class RecallJoin(RelatedJoin):
    """A join with its relation of memory and recall."""

    job: JobOptions
    """With its policy, but no memory yet."""
    model: RecallModel | TriedModel
    expected: dict[str, float]
    """Recall that each model, and replays, promise at the proportional share."""
    pooled: bool = False
    """Whether both sides have one memory."""

    def wanted(self, level: float, least: float) -> float:
        """Return the recall of a common level: ``level * weight / least``, at most 1.

        Parameters
        ----------
        level : float
            0 to 1.
        least : float
            Least weight of all joins.
        """
        return min(1.0, level * (self.weight / least))

    def split(self, memory: int) -> tuple[int, int]:
        """Return the tuples of left and right."""
        left, right = whole(self.model.split(memory), memory)
        return left, right

    def predicted(self, left: int, right: int) -> float:
        """Return the expected recall."""
        return self.model.recall(left, right)

    def job_with(self, left: int, right: int) -> JobOptions:
        """Return the replay with such memories, or with one memory for both."""
        if self.pooled:
            memory = divided(Amount(tuples=left + right), POOLED)
            return replace(self.job, memory=memory, split=POOLED)
        return replace(self.job, memory=(Amount(tuples=left), Amount(tuples=right)))

    def quality(self, content: Mapping[str, Any]) -> float:
        """Return the recall that a replay reports."""
        found: float = content["recall"]
        return found

    def to_report(self) -> dict[str, Any]:
        """Return what a report says of the model."""
        return {
            "model": self.model.name,
            "expected": self.expected,
            "policy": self.job.policy,
            "estimator": self.job.estimator,
            "pooled": self.pooled,
        }


def curves_to_replay(
    found: JoinMeasure, given: Curves, parameters: dict[str, Any]
) -> dict[str, Any]:
    """Return AGE's curves, those not given as they were measured, cut as a replay cuts them.

    So no replay has to measure them again, nor cuts what has been cut.
    """
    settings = ReplaySettings(*found.windows, policy="age", parameters=parameters)
    left, right = (
        tuple(measured.tolist()) if own is None else own
        for own, measured in zip(given, found.curves, strict=True)
    )
    cut = curves_cut((left, right), settings)
    return {"curve_left": cut[0], "curve_right": cut[1], "grain": None}


def recall_join(one: Measured, share: float) -> RecallJoin:
    """Return a join by the model of its policy, else by that which fits better at a memory.

    Parameters
    ----------
    share : float
        Its part of the memory by PROP.
    """
    join, found = one.options, one.found
    given: Curves = (None, None)
    if join.policy == "age":
        settings = ReplaySettings(*found.windows, policy="age", parameters=one.job.parameters)
        given = curves_given(settings)
    expected = better(found, share, given)
    if isinstance(one, TriedJoin):
        return _tried(one, share, expected)
    name = chosen_model(found, expected)
    if join.policy is not None:
        name = AGE if join.policy == "age" else FREQUENCY
    policy = join.policy or POLICY_OF[name]
    parameters = dict(one.job.parameters) if join.policy is not None else {}
    if policy == "age":
        parameters |= curves_to_replay(found, given, parameters)
    job = replace(
        one.job,
        policy=policy,
        parameters=parameters,
        estimator=join.estimator or ESTIMATOR_OF.get(policy, DEFAULT_ESTIMATOR),
    )
    return RecallJoin(one, job, recall_model(name, found, given), expected)


def _tried(one: TriedJoin, share: float, expected: dict[str, float]) -> RecallJoin:
    """Return a join by the candidate that replays advise at a memory."""
    found = one.found
    candidate = one.points.advised(share / max(1, found.peak))
    parameters: dict[str, Any] = {}
    if candidate.policy == "age":
        parameters = curves_to_replay(found, (None, None), {})
    job = replace(
        one.job, policy=candidate.policy, parameters=parameters, estimator=candidate.estimator
    )
    by = recall_model(AGE if candidate.policy == "age" else FREQUENCY, found)
    model = tried_model(one.points, candidate, by, found.peaks)
    expected = expected | {REPLAYS: model.recall(*model.split(share))}
    return RecallJoin(one, job, model, expected, candidate.split == str(POOLED))
