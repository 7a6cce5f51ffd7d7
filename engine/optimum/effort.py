"""How hard the best possible is looked for."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.runtime.errors import SpecError, did_you_mean

METHODS = ("auto", "states", "flow", "dual")


@dataclass(frozen=True)
class Effort:
    """By which method bounds are found, and when they are good enough.

    Parameters
    ----------
    method : {"auto", "states", "flow", "dual"}
        The join memory state graph (ODJA, OSSJ), the min-cost flow (ESJA, SJA), the certificate
        alone, or the certificate and then, as time allows, the flow.
    gap : float
        Relative gap of the bounds with which "auto" and "dual" are content.
    seconds : float
        After which they tighten them no more.

    Raises
    ------
    SpecError
        For anything that means nothing.
    """

    method: str = "auto"
    gap: float = 0.0
    seconds: float = 60.0

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise SpecError(
                f"--method is {self.method!r}; choose one of {', '.join(METHODS)}."
                + did_you_mean(self.method, METHODS)
            )
        if not 0.0 <= self.gap < 1.0:
            raise SpecError(f"--gap is {self.gap}; give a number from 0 to less than 1")
        if not 0.0 <= self.seconds < math.inf:
            raise SpecError(f"--seconds is {self.seconds}; give a number of 0 or more")
