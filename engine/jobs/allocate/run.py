"""Runs an allocation: measure every join, divide the memory, replay, divide it again, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite
from typing import Any

from engine.jobs.allocate.divide import prop, whole
from engine.jobs.allocate.error_join import error_join, measured_error
from engine.jobs.allocate.joins import Measured, measured, recall_join
from engine.jobs.allocate.rounds import (
    MODEL,
    PROPORTIONAL,
    Division,
    Join,
    Part,
    Rounds,
    divided,
    named,
    naming,
)
from engine.options.allocate import ERROR, RECALL, AllocateOptions, JoinOptions
from engine.report.envelope import Report, envelope, window_report
from engine.runtime.executors import Executor, Progress, Stages
from engine.runtime.streams import SIDES

ALLOC, PROP = "alloc", "prop"

_MEASURE: dict[str, Callable[[JoinOptions, Stages], Measured]] = {
    RECALL: measured,
    ERROR: measured_error,
}
_MODEL: dict[str, Callable[[Measured, float], Join]] = {RECALL: recall_join, ERROR: error_join}


@dataclass(frozen=True)
class Allocation:
    """What an allocation came to."""

    options: AllocateOptions
    memory: int
    """Tuples of all joins."""
    joins: list[Join]
    rounds: list[Division]
    """All that were replayed: the model's, the proportional, the refined."""
    settled: int
    """Place of the one that ALLOC settled on."""
    seconds: dict[str, float]
    """By stage."""

    @property
    def divisions(self) -> dict[str, Division]:
        """By "alloc" and "prop", what is settled on and what it is compared with."""
        fair = next(one for one in self.rounds if one.by == PROPORTIONAL)
        return {ALLOC: self.rounds[self.settled], PROP: fair}


def run_allocation(
    options: AllocateOptions, executor: Executor, progress: Progress | None = None
) -> Allocation:
    """Divide a memory over joins by ALLOC and by PROP, and replay every join with both.

    Notes
    -----
    With rounds to refine, ALLOC divides again by what the replays measured, and settles on the
    division, PROP's among them, whose worst join did best; without, on the model's.
    """
    stages = Stages(executor, progress)
    found = []
    for join in options.joins:
        with naming(join):
            found.append(_MEASURE[options.metric](join, named(stages, join)))
    peaks = [one.found.peak for one in found]
    amount = options.memory
    memory = int(amount.share * sum(peaks)) if amount.share is not None else amount.tuples or 0
    fair = prop(peaks, memory)
    joins: list[Join] = []
    with stages.timed("allocate"):
        for one, share in zip(found, fair, strict=True):
            with naming(one.options):
                joins.append(_MODEL[options.metric](one, share))
        by_model = divided(joins, memory)
    rounds = Rounds(joins, options.metric, stages)
    rounds.replay(MODEL, by_model)
    rounds.replay(PROPORTIONAL, whole(fair, memory))
    rounds.refine(memory, options.rounds)
    settled = rounds.settled() if options.rounds else 0
    return Allocation(options, memory, joins, rounds.found, settled, stages.seconds)


def build_report(found: Allocation) -> Report:
    """Put an allocation into JSON; docs/allocate.md explains every field."""
    joins = [
        _join(found, number)
        | {how: _part(one.parts[number]) for how, one in found.divisions.items()}
        for number in range(len(found.joins))
    ]
    content: dict[str, Any] = {
        "metric": found.options.metric,
        "memory": {
            "asked": str(found.options.memory),
            "tuples": found.memory,
            "exact": sum(sum(join.peaks) for join in found.joins),
        },
        "joins": joins,
    }
    for how, one in found.divisions.items():
        content[how] = {"memory": sum(part.memory for part in one.parts)} | _worst(one)
    content["refine"] = found.options.rounds
    content["rounds"] = [
        {"by": one.by, "settled": number == found.settled}
        | _worst(one)
        | {"joins": [_part(part) for part in one.parts]}
        for number, one in enumerate(found.rounds)
    ]
    return Report(content | envelope(found.seconds))


def _join(found: Allocation, number: int) -> dict[str, Any]:
    join = found.joins[number]
    own, profile = join.measured.found, join.measured.options.profile
    return {
        "name": join.measured.options.name,
        "weight": join.weight,
        "profile": None if profile is None else str(profile),
        "window": window_report(own.windows, own.unit),
        "rows": dict(zip(SIDES, own.rows, strict=True)),
        "exact": {"outputs": own.outputs, "peak": dict(zip(SIDES, own.peaks, strict=True))},
        **{
            name: {model: _finite(value) for model, value in entry.items()}
            if isinstance(entry, dict)
            else entry
            for name, entry in join.to_report().items()
        },
    }


def _worst(division: Division) -> dict[str, float | None]:
    """Return what the worst join was expected to reach, and reached."""
    return {
        "predicted": _finite(division.predicted),
        "replayed": _finite(division.replayed),
    }


def _part(part: Part) -> dict[str, Any]:
    return {
        "memory": part.memory,
        "left": part.left,
        "right": part.right,
        "predicted": _finite(part.predicted),
        "replayed": _finite(part.replayed),
    }


def _finite(value: float | None) -> float | None:
    """Return a number as JSON holds it: an error without bound is null."""
    return value if value is None or isfinite(value) else None
