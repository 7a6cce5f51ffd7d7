"""The objective of an optimum, and the effort to find it (P1 4.2.1; contract, section 4)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from engine.exact.combine import combine_code, combined
from engine.optimum.intervals import Rows, Weigh
from engine.runtime.errors import SpecError, chosen
from engine.runtime.jit import Floats, jit
from engine.runtime.streams import StreamBatch

OBJECTIVES = ("importance", "outputs", "minimum")


@dataclass(frozen=True)
class Objective:
    """The value of an output, and whether it is to be maximised or minimised.

    Raises
    ------
    SpecError
        If a setting is invalid.
    """

    name: str = "importance"
    """{"importance", "outputs", "minimum"}. Greatest importance (ESJA), most outputs (SJA), or
    least importance."""
    threshold: float = 0.0
    """The value of an output is its importance less this, so that those below it are undesirable
    (P1's positive and negative weights). Not with "outputs"."""
    combine: str = "min"
    """{"min", "sum", "product", "max", "mean"}. Importance of an output."""

    def __post_init__(self) -> None:
        combine_code(self.combine)
        chosen("--objective", self.name, OBJECTIVES)
        if not -1e100 <= self.threshold <= 1e100:
            raise SpecError(f"--threshold is {self.threshold}; give a number of at most 1e100")
        if self.name == "outputs" and self.threshold:
            raise SpecError(
                f"--threshold is {self.threshold:g} and every output counts alike with --objective "
                "outputs: leave it out, or use --objective importance"
            )

    @property
    def sign(self) -> int:
        """1 to maximise, -1 to minimise."""
        return -1 if self.name == "minimum" else 1

    def value(self, outputs: int, importance: float) -> float:
        """Return the value of outputs of that importance together, by `name`."""
        return float(outputs) if self.name == "outputs" else importance - self.threshold * outputs

    def terms(self, outputs: int, importance: float) -> float:
        """Return the size of what `value` adds up, to which its rounding is in proportion."""
        return max(float(outputs), abs(importance), abs(self.threshold) * outputs)

    def weigher(self, left: StreamBatch, right: StreamBatch) -> Weigh:
        """Return the function that values pairs, always to be maximised."""
        if self.name == "outputs":
            return _ones
        code, sign = combine_code(self.combine), float(self.sign)

        def weigh(a: Rows, b: Rows) -> Floats:
            weights = np.empty(a.size)
            _weigh_pairs(
                a, b, left.importance, right.importance, code, self.threshold, sign, weights
            )
            return weights

        return weigh


def _ones(a: Rows, b: Rows) -> Floats:
    del b
    return np.ones(a.size)


@jit
def _weigh_pairs(
    a: Rows, b: Rows, left: Floats, right: Floats,
    code: int, threshold: float, sign: float, weights: Floats,
) -> None:  # fmt: skip
    for k in range(len(a)):
        weights[k] = sign * (combined(code, left[a[k]], right[b[k]]) - threshold)


METHODS = ("auto", "states", "flow", "dual")


@dataclass(frozen=True)
class Effort:
    """The method by which bounds are found, and when they are good enough.

    Raises
    ------
    SpecError
        If a setting is invalid.
    """

    method: str = "auto"
    """{"auto", "states", "flow", "dual"}. The join memory state graph (ODJA, OSSJ), the min-cost
    flow (ESJA, SJA), the certificate alone, or the certificate and then, as time allows, the
    flow."""
    gap: float = 0.0
    """Relative gap of the bounds with which "auto" and "dual" are content."""
    seconds: float = 60.0
    """After which they tighten them no more."""

    def __post_init__(self) -> None:
        chosen("--method", self.method, METHODS)
        if not 0.0 <= self.gap < 1.0:
            raise SpecError(f"--gap is {self.gap}; give a number from 0 to less than 1")
        if not 0.0 <= self.seconds < math.inf:
            raise SpecError(f"--seconds is {self.seconds}; give a number of 0 or more")
