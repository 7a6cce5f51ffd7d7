"""What is proven of lanes, added up, and as a report has it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from engine.optimum.certificate import gap_between
from engine.optimum.retained import OutputTotals
from gpu_kernels.devices import Choice


class LaneBounds(NamedTuple):
    """What is proven of a lane, or of several."""

    lower: float
    upper: float
    """`lower`, `upper`: Of the best possible value of the objective."""
    plan: OutputTotals
    exact: OutputTotals
    """`plan`, `exact`: Outputs and importance of the plan found, and of the exact join."""
    methods: dict[str, int]
    """Memories by the method that bounded them."""
    seconds: float
    """Of all lanes, added up."""
    parts: dict[str, int]
    """Files of the plan, and how many rows each holds."""
    texts: tuple[str, ...]
    """The plan's paths, where they were asked for."""
    devices: tuple[Choice, ...]
    """Where prices were found."""


class Bounds(NamedTuple):
    """What is proven of one memory."""

    of_split: LaneBounds
    """As it is split over the sides and hash lanes."""
    over_any: LaneBounds | None
    """However it is split; None where one side has no limit, so that there is nothing to split."""


def sum_of(found: Sequence[LaneBounds]) -> LaneBounds:
    """Add up what is proven of lanes."""
    methods: Counter[str] = Counter()
    for one in found:
        methods.update(one.methods)
    plan, exact = (
        OutputTotals(
            sum(getattr(one, name).outputs for one in found),
            math.fsum(getattr(one, name).importance for one in found),
        )
        for name in ("plan", "exact")
    )
    return LaneBounds(
        math.fsum(one.lower for one in found),
        math.fsum(one.upper for one in found),
        plan,
        exact,
        dict(methods),
        math.fsum(one.seconds for one in found),
        {name: rows for one in found for name, rows in one.parts.items()},
        tuple(text for one in found for text in one.texts),
        tuple(device for one in found for device in one.devices),
    )


def bounds_report(found: LaneBounds) -> dict[str, Any]:
    """Return what is proven, as a report has it."""
    return {
        "lower": found.lower,
        "upper": found.upper,
        "gap": gap_between(found.lower, found.upper),
        "outputs": found.plan.outputs,
        "importance": found.plan.importance,
        "method": "+".join(sorted(found.methods)) or "none",
    }
