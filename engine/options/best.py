"""The options of the best possible result, and the effort that they describe."""

from __future__ import annotations

from typing import Annotated, TypedDict

from engine.optimum.settings import METHODS as BOUND_METHODS
from engine.optimum.settings import Effort
from engine.options.command import Given, Group
from engine.options.kinds import NUMBER
from engine.options.option import Interface, Option
from engine.runtime.errors import SpecError


class Limits(TypedDict, total=False):
    """When tightening the bounds stops."""

    gap: Annotated[
        float,
        Option(
            "relative gap between the bounds at which the search stops",
            NUMBER,
            0.0,
            interface=Interface.ARCHIVES,
        ),
    ]
    seconds: Annotated[
        float,
        Option(
            "seconds after which the bounds are not tightened further",
            NUMBER,
            60.0,
            interface=Interface.ARCHIVES,
        ),
    ]


class Best(Limits, total=False):
    """The best possible result, for comparison."""

    bound: Annotated[
        str | bool | None,
        Option(
            "also find the best possible importance within the budget, and the share of it that "
            "is reached; alone: auto",
            choices=BOUND_METHODS,
            alone="auto",
            interface=Interface.ARCHIVES,
        ),
    ]


BEST = Group("best possible", (Best,))


def effort_of(given: Given) -> Effort | None:
    """Return the effort for the best possible result, None if it is not requested.

    Raises
    ------
    SpecError
        If a limit is invalid, or given without --bound.
    """
    limits = given.chosen("gap", "seconds")
    if "bound" not in given.options:
        return None
    if "bound" in given:
        return Effort(given["bound"], **limits)
    for name in limits:
        raise SpecError(f"--{name} says how good bounds must be: give --bound as well")
    return None
