"""A replay whose policy is what replays of stretches advise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.jobs.frame import Archives, JobLanes
from engine.jobs.replay.models import uses_profile
from engine.jobs.replay.run import run_replay
from engine.jobs.trial.advice import text_of, try_all
from engine.jobs.trial.candidates import Candidate
from engine.models.profile.model import ArrivalProfile
from engine.options.replay import JobOptions
from engine.report.envelope import Report
from engine.runtime.executors import Executor, Progress


def run_advised(
    options: JobOptions, executor: Executor, progress: Progress | None = None
) -> Report:
    """Replay two archives, by the policy that is advised unless the options name one.

    The advice is a profile's, if it is given and has one for the like; else that of a trial. The
    report has it as ``advice``.
    """
    return run_replay(options, executor, progress, take_advice)


def take_advice(
    options: JobOptions, archives: Archives, lanes: JobLanes
) -> tuple[JobOptions, dict[str, Any]]:
    """Return a replay with the policy that is advised, and the advice."""
    advice = _told(options, archives.windows(options))
    if advice is None:
        (found,) = try_all(options, [options.memory], archives, lanes)
        del found["modelled"], found["even"]
        advice = found | {"by": None}
    chosen = Candidate(advice["policy"], advice["split"], advice["estimator"]).of(options)
    if chosen.profile is not None and not uses_profile(chosen):
        chosen = replace(chosen, profile=None)
    return chosen, advice


def _told(options: JobOptions, windows: tuple[int, int]) -> dict[str, Any] | None:
    """Return a profile's advice for a replay, None if there is none for the like."""
    asked = (options.combine, options.probe, options.start_ts, options.fact)
    if options.profile is None or asked != ("min", "before_admission", None, None):
        return None
    profile = ArrivalProfile.load(options.profile)
    if profile.windows != windows:
        return None
    kept = {"split": str(options.split), "estimator": options.estimator}
    for one in profile.advice.get("trials", []):
        fits = all(one[name] == own for name, own in kept.items() if name not in options.left_open)
        if one["memory"] == text_of(options.memory) and fits:
            return dict(one) | {"by": str(options.profile)}
    return None
