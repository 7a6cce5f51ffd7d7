"""The replay of what a sweep advises: its options, its command line, and what it comes to."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Any

from engine.jobs.sweep.advice import Advice, Check, Choice, kind_of
from engine.jobs.sweep.rows import Row
from engine.options.budget import EVEN, EXPECTED
from engine.options.cells import Grid
from engine.options.replay import REPLAY
from engine.options.sweep import SweepOptions
from engine.policies import policy_named
from engine.replay.layout import ESTIMATORS

_SAME = 1e-9
"""Relative difference of two sums of one replay: they may be added up in another order."""


def with_command(
    advice: Advice,
    rows: Sequence[Row],
    options: SweepOptions,
    grid: Grid,
    typed: Mapping[int, str],
) -> tuple[Advice, Row | None]:
    """Return advice with the command that replays it, and the sweep's row of that replay.

    `typed` has windows as they were typed, by ticks.
    A seed of several is the first that meets the target itself. Advice that nothing reaches comes
    back as it is, without a row.
    """
    if advice.best is None:
        return advice, None
    row = _row_of(advice, advice.best, rows)
    told = _options(advice.best, row, options, grid)
    told["window"] = typed.get(row.window_left, told["window"])
    return replace(advice, options=told, command=shlex.join(REPLAY.words(told))), row


def _row_of(advice: Advice, choice: Choice, rows: Sequence[Row]) -> Row:
    """Return the row of the choice's first seed that meets the target, as their mean does."""
    windows, target = (advice.window_left, advice.window_right), advice.target
    mine = [
        row
        for row in rows
        if (row.window_left, row.window_right) == windows
        and (kind_of(row), row.memory) == (choice.kind, choice.memory)
    ]
    return next((row for row in mine if getattr(row, target.measure) >= target.value), mine[0])


def _options(choice: Choice, row: Row, options: SweepOptions, grid: Grid) -> dict[str, Any]:
    """Return the options of a replay that is a cell of the sweep, those of its defaults left out.

    The policy, which has a default, is named all the same.
    """
    job, memory = grid.policies[choice.policy], {str(own): own for own in grid.memory}
    own: dict[str, Any] = {
        "window": str(row.window_left),
        "memory": memory[choice.memory].exact,
        "policy": choice.policy,
    }
    if choice.split != str(EVEN):
        own["split"] = choice.split
    if choice.estimator not in (None, ESTIMATORS[0]):
        own["estimator"] = choice.estimator
    if choice.lanes != 1:
        own["lanes"] = choice.lanes
    if row.seed:
        own["seed"] = row.seed
    given = {
        parameter.name: job.parameters[parameter.name]
        for parameter in policy_named(choice.policy).parameters
        if job.parameters[parameter.name] != parameter.default
    }
    if given:
        own["params"] = given
    shared = dict(options.shared)
    if not _uses_profile(choice, given, through=job.fact is not None):
        shared.pop("profile", None)
    told = shared | own
    return {name: told[name] for name in REPLAY.options if name in told}


def _uses_profile(choice: Choice, parameters: Mapping[str, Any], *, through: bool) -> bool:
    """Tell whether a replay takes a profile (`engine.jobs.replay.models.profile_given`)."""
    if choice.policy == "age":
        return "curve" not in parameters and not parameters.keys() >= {"curve_left", "curve_right"}
    return not through and (choice.policy == "prob" or choice.split == str(EXPECTED))


def check_of(content: Mapping[str, Any], row: Row) -> Check:
    """Return what the advised replay came to, by its report, and how it differs from the cell.

    Of an estimated cell only the memory must be the same.
    """
    result, memory = content["result"], content["memory"]
    same = (
        memory["both"] == row.tuples
        if row.stretches
        else (
            (result["outputs"], memory["both"], content["exact"]["outputs"])
            == (row.outputs, row.tuples, row.exact_outputs)
        )
        and isclose(result["importance"], row.importance, rel_tol=_SAME)
    )
    problem = None
    if not same:
        problem = (
            f"its own replay has {result['outputs']} outputs of importance {result['importance']} "
            f"with {memory['both']} tuples, and the sweep {row.outputs} of {row.importance} with "
            f"{row.tuples}: please report this"
        )
    return Check(
        result["outputs"], result["importance"], content["recall"], content["importance_recall"],
        problem,
    )  # fmt: skip
