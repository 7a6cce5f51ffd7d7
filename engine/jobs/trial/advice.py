"""What a trial advises, as profiles and reports have it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from engine.jobs.trial.candidates import Candidate
from engine.jobs.trial.estimate import Estimate
from engine.jobs.trial.found import IMPORTANCE, Trial, Tried
from engine.options.budget import EVEN, EXPECTED, Amounts
from engine.options.replay import REPLAY
from engine.runtime.streams import SIDES

MODELLED = {"age": "age", "frequency": "prob"}
"""The policy that goes by what a model says."""
_PREDICTED = {(policy, str(split)) for policy in MODELLED.values() for split in (EVEN, EXPECTED)}


def is_modelled(candidate: Candidate) -> bool:
    """Return whether a model predicts what a candidate reaches, as PROB knows all of history."""
    return candidate[:2] in _PREDICTED and (
        candidate.policy != MODELLED["frequency"] or candidate.estimator == "history"
    )


def advice_of(
    memories: Sequence[Amounts], trial: Trial, measure: str = IMPORTANCE
) -> list[dict[str, Any]]:
    """Return what a trial advises with each memory.

    Parameters
    ----------
    memories : sequence of Amounts
        With which the candidates were tried.
    measure : {"importance_recall", "recall"}
        By which they are ranked.

    Returns
    -------
    list of dict
        Plain; docs/profile.md explains every field.
    """
    return [
        {"memory": text_of(memory)} | _plain(own, trial, measure)
        for memory, own in zip(memories, trial.found, strict=True)
    ]


def text_of(memory: Amounts) -> str | dict[str, str | None]:
    """Return a memory as text: one for both sides, or each side's."""
    left, right = (None if own is None else str(own) for own in memory)
    if left is not None and right is not None:
        shares = [own.share for own in memory if own is not None]
        if None not in shares and shares[0] == shares[1]:
            return left
        tuples = [own.tuples for own in memory if own is not None and own.tuples is not None]
        if len(tuples) == len(SIDES) and 0 <= tuples[0] - tuples[1] <= 1:
            return str(sum(tuples))
    return {"left": left, "right": right}


def _plain(tried: Sequence[Tried], trial: Trial, measure: str) -> dict[str, Any]:
    """Return what is advised with a memory."""
    best, *others = tried
    second = others[0] if others else None
    return {
        **_candidate(best),
        "measure": measure,
        "next": None if second is None else _candidate(second),
        "even": dict(zip(SIDES, _even(tried), strict=True)),
        "modelled": {model: _modelled(tried, policy) for model, policy in MODELLED.items()},
        "candidates": len(tried),
        "grid": trial.grid,
        "whole": trial.exact,
        "stretches": trial.stretches,
        "sampled": trial.sampled,
        "share": trial.share,
        "replayed": trial.replayed,
        "outputs": trial.outputs,
    }


def _even(tried: Sequence[Tried]) -> tuple[int, int]:
    """Return the memory of left and right if each has its own share of it."""
    for one in tried:
        if one.candidate.split == str(EVEN):
            return one.budget
    return tried[0].budget


def _modelled(tried: Sequence[Tried], policy: str) -> dict[str, dict[str, float | None] | None]:
    """Return the recall of a model's policy with both splits that the model knows.

    PROB knows of a key what the model knows with the estimator history.
    """
    found: dict[str, dict[str, float | None] | None] = {}
    for name, split in (("even", EVEN), ("best", EXPECTED)):
        own = {
            one.candidate.estimator: one.recall
            for one in tried
            if (one.candidate.policy, one.candidate.split) == (policy, str(split))
        }
        best = own.get("history") or next(iter(own.values()), None)
        found[name] = None if best is None else _interval(best)
    return found


def command_of(asked: Mapping[str, Any], advice: Mapping[str, Any]) -> str:
    """Return the command line of a replay with the memory and the options that are advised.

    Parameters
    ----------
    asked : mapping
        Options of the streams and the window, by keyword.
    advice : mapping
        One of `advice_of`.
    """
    words = REPLAY.words(asked)
    return f"{shlex.join([*words, '--memory', advice['memory']])} {advice['options']}"


def _candidate(one: Tried) -> dict[str, Any]:
    return {
        **one.candidate._asdict(),
        "options": str(one.candidate),
        "tuples": dict(zip(SIDES, one.budget, strict=True)),
        "importance_recall": _interval(one.importance_recall),
        "recall": _interval(one.recall),
    }


def _interval(one: Estimate) -> dict[str, float | None]:
    return one._asdict()
