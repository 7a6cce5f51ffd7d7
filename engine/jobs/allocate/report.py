"""The report of an allocation: what each join gets by ALLOC and by PROP, and what that yields."""

from __future__ import annotations

from math import isfinite
from typing import Any

from engine.jobs.allocate.joins import RecallJoin
from engine.jobs.allocate.run import Allocation, Division, Join, Part
from engine.report.envelope import Report, envelope, window_report
from engine.runtime.streams import SIDES


def build_report(found: Allocation) -> Report:
    """Put an allocation into JSON; docs/allocate.md explains every field."""
    joins = [
        _join(found, number)
        | {how: _part(one.parts[number], join) for how, one in found.divisions.items()}
        for number, join in enumerate(found.joins)
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
        | {"joins": [_part(*own) for own in zip(one.parts, found.joins, strict=True)]}
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


def _part(part: Part, join: Join) -> dict[str, Any]:
    pooled = isinstance(join, RecallJoin) and join.pooled
    return {
        "memory": part.memory,
        "left": None if pooled else part.left,
        "right": None if pooled else part.right,
        "predicted": _finite(part.predicted),
        "replayed": _finite(part.replayed),
    }


def _finite(value: float | None) -> float | None:
    """Return a number as JSON holds it: an error without bound is null."""
    return value if value is None or isfinite(value) else None
