"""The policy of a replay, as replays of stretches advise it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.jobs.frame import Archives, JobLanes
from engine.jobs.replay.models import uses_profile
from engine.jobs.trial.advice import advice_of, text_of
from engine.jobs.trial.candidates import Candidate
from engine.jobs.trial.layout import lay_out
from engine.jobs.trial.run import run_trial
from engine.models.profile.model import ArrivalProfile
from engine.options.replay import JobOptions
from engine.runtime.warned import warn


def take_advice(
    options: JobOptions, archives: Archives, lanes: JobLanes
) -> tuple[JobOptions, dict[str, Any]]:
    """Return a replay with the policy that is advised, and the advice, for `run_replay`.

    The advice is a profile's, if it is given and has one for the like; else that of a trial.
    """
    advice = _told(options, archives.windows(options))
    if advice is None:
        layout = lay_out(options, [options.memory], archives, lanes)
        trial = run_trial(layout, lanes, seed=options.seed)
        (found,) = advice_of([options.memory], trial)
        del found["modelled"], found["even"]
        advice = found | {"by": None}
    chosen = Candidate(advice["policy"], advice["split"], advice["estimator"]).of(options)
    if chosen.profile is not None and not uses_profile(chosen):
        chosen = replace(chosen, profile=None)
    return chosen, advice


def _told(options: JobOptions, windows: tuple[int, int]) -> dict[str, Any] | None:
    """Return a profile's advice for a replay, None if there is none for the like."""
    asked = (options.probe, options.start_ts, options.fact)
    if options.profile is None or asked != ("before_admission", None, None):
        return None
    profile = ArrivalProfile.load(options.profile)
    if profile.windows != windows:
        return None
    measured = profile.advice.get("combine", "min")
    if measured != options.combine:
        warn(
            f"--profile advises for --combine {measured}, and {options.combine} is asked for: its "
            "advice is left out, and policies are tried anew"
        )
        return None
    kept = {"split": str(options.split), "estimator": options.estimator}
    for one in profile.advice.get("trials", []):
        fits = all(one[name] == own for name, own in kept.items() if name not in options.left_open)
        if one["memory"] == text_of(options.memory) and fits:
            return dict(one) | {"by": str(options.profile)}
    return None
