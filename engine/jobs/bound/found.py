"""What is proven of lanes, added up, and as a report has it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from engine.optimum.certificate import gap_between
from engine.optimum.retained import OutputTotals
from engine.report.losses import share
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

    @classmethod
    def of_both(cls, own: LaneBounds, best: LaneBounds) -> Bounds:
        """Return both; a split is a way to use the memory, so that each bounds the other."""
        return cls(
            own._replace(upper=min(own.upper, best.upper)),
            best._replace(lower=min(max(own.lower, best.lower), best.upper)),
        )

    @classmethod
    def together(cls, found: Sequence[Bounds]) -> Bounds:
        """Add up what is proven of memories that lanes have to themselves."""
        best = [own.over_any for own in found if own.over_any is not None]
        own = sum_of([own.of_split for own in found])
        return cls(own, sum_of(best) if len(best) == len(found) else None)


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


def best_report(bounds: Bounds, importance: float) -> dict[str, Any]:
    """Return the best possible within the memory as it is split, and however it is split."""
    over_any = None if bounds.over_any is None else _reached(bounds.over_any, importance)
    return _reached(bounds.of_split, importance) | {"any_split": over_any}


def _reached(bounds: LaneBounds, importance: float) -> dict[str, Any]:
    """Return the best possible, of which the result itself is one, and the result's share."""
    bounds = bounds._replace(lower=min(max(bounds.lower, importance), bounds.upper))
    share_of_best = {
        "least": share(importance, bounds.upper),
        "most": min(1.0, share(importance, bounds.lower)),
    }
    return bounds_report(bounds) | {"share_of_best": share_of_best}
