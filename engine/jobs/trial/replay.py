"""The policy of a replay, as replays of stretches advise it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine.jobs.frame import Archives, JobLanes
from engine.jobs.prior import PriorProfile
from engine.jobs.replay.models import uses_profile
from engine.jobs.trial.advice import advice_of, text_of
from engine.jobs.trial.candidates import Candidate
from engine.jobs.trial.layout import lay_out
from engine.jobs.trial.run import run_trial
from engine.lanes.manifest import Prepared
from engine.models.profile.model import ArrivalProfile
from engine.options.replay import JobOptions
from engine.replay.layout import PROBES
from engine.runtime.storage.uris import Place
from engine.runtime.warned import warn


def take_advice(
    options: JobOptions, archives: Archives, lanes: JobLanes
) -> tuple[JobOptions, dict[str, Any]]:
    """Return a replay with the policy that is advised, and the advice, for `run_replay`.

    The advice is a profile's, if it is given and has one for the like; else that of a trial.

    Raises
    ------
    SpecError
        If a profile is given that has no advice for the like, and is no guide to these streams.
    """
    advice = None
    if options.profile is not None:
        advice = _told(options, options.profile, archives, lanes.prepared)
    if advice is None:
        layout = lay_out(options, [options.memory], archives, lanes)
        trial = run_trial(layout, lanes, seed=options.seed)
        (found,) = advice_of([options.memory], trial)
        del found["modelled"], found["even"]
        advice = found | {"by": None, "other_archives": False}
    chosen = Candidate(advice["policy"], advice["split"], advice["estimator"]).of(options)
    of_one_join = chosen.policy != "age"  # as frequencies are
    if chosen.profile is not None and (
        not uses_profile(chosen) or (of_one_join and len(lanes.groups) > 1)
    ):
        chosen = replace(chosen, profile=None)
        if advice["by"] is None:
            warn(
                "--profile is not used: it tells age curves and the frequencies of one join, and "
                f"{advice['options']}, which is advised, asks for neither: leave it out"
            )
    return chosen, advice


def _told(
    options: JobOptions, path: Place, archives: Archives, prepared: Prepared
) -> dict[str, Any] | None:
    """Return a profile's advice for a replay; None if there is none for the like, and warn why."""
    profile = ArrivalProfile.load(path)
    memory = text_of(options.memory)
    trials = profile.advice.get("trials", [])
    found = next((one for one in trials if one["memory"] == memory), None)
    unlike = _unlike(options, profile, archives.windows(options), found)
    if found is not None and unlike is None:
        rows = [own.rows for own in profile.streams], [own.joined for own in prepared.streams]
        elsewhere = profile.span != prepared.span or rows[0] != rows[1]
        return dict(found) | {"by": str(path), "other_archives": elsewhere}
    PriorProfile(profile, prepared, archives.settings(options))
    told, asked = unlike or (
        "--memory " + ", ".join(_words(one["memory"]) for one in trials), _words(memory),
    )  # fmt: skip
    warn(
        f"--profile advises for {told}, and {asked} is asked for: its advice is left out, and "
        "policies are tried anew"
    )
    return None


def _unlike(
    options: JobOptions,
    profile: ArrivalProfile,
    windows: tuple[int, int],
    found: Mapping[str, Any] | None,
) -> tuple[str, str] | None:
    """Return what a profile advises for, and what is asked for instead; None if it is the like.

    `found` is its advice with the memory asked for.
    """
    if options.fact is not None:
        return "streams that share their join attribute", "a join through facts"
    told, importance = profile.advice, options.importance
    compared: list[tuple[str, Any, Any]] = [
        ("windows in ticks of", profile.windows, windows),
        ("--combine", told.get("combine", "min"), options.combine),
        ("--importance", told.get("importance", importance), importance),
        ("--probe", PROBES[0], options.probe),
        ("--start-ts", None, options.start_ts),
    ]
    if found is not None:
        kept = {"split": str(options.split), "estimator": options.estimator}
        compared += [
            (f"--{name}", found[name], own)
            for name, own in kept.items()
            if name not in options.left_open
        ]
    for name, seen, asked in compared:
        if seen != asked:
            return f"{name} {_words(seen)}", _words(asked)
    return None


def _words(value: object) -> str:
    """Return a value, or those of both sides, as people read them.

    Examples
    --------
    >>> _words((50, 50)), _words({"left": "price", "right": None})
    ('50', 'price and none')
    """
    sides = tuple(value.values()) if isinstance(value, dict) else value
    if isinstance(sides, tuple):
        return " and ".join(dict.fromkeys(map(_words, sides)))
    return "none" if value is None else str(value)
