"""One memory for all sides: what makes tuples of one side compare with those of another.

A priority ranks tuples within a side. Across sides a tuple counts for its *value*: the importance a
tick that residents of its side and of its kind have yielded so far. Residents are of two kinds, by
their priority at admission: those of priority 0 or less, whose value is what such residents yielded
a tick each, and those of a positive one, whose value is proportional to their priority and never
below the former. Imports nothing of ours and nothing beyond the standard library.
"""

import math
from collections.abc import Iterable, Sequence

STEPS = 65536.0
"""Sums are of whole steps, so that their order does not matter: so many are the unit."""
MOST_STEPS = 2.0**36
SHARE = 1.0 / 64.0
"""Weight of what is known of all in what is known of a few."""
FORGET = 2
"""Lifetimes after which half of what was seen is forgotten."""


def steps(value: float, scale: float) -> int:
    """Return a value of 0 or more in whole steps."""
    return math.floor(min(value * scale, MOST_STEPS))


def scale_of(unit: float) -> float:
    """Return the number of steps in a value of 1."""
    scale = STEPS / unit if unit > 0.0 else math.inf
    return scale if scale < math.inf else 1.0


class Pool:
    """What residents of all sides have yielded.

    Parameters
    ----------
    windows : sequence of int
        W of each side.
    means : sequence of float
        Mean importance of each side; the greatest is the unit of importance.
    counts : bool
        Whether priorities are numbers of matches, whose unit is 1; else it is that of importance.
    t0 : int
        The first instant.
    """

    def __init__(
        self, windows: Sequence[int], means: Sequence[float], *, counts: bool, t0: int
    ) -> None:
        sides = range(len(windows))
        self.forget_after = FORGET * (max(windows) + 1)
        self.scale = scale_of(max(means))
        self.priority_scale = scale_of(1.0) if counts else self.scale
        self.last = self.halved = t0
        self.yielded = [[0.0, 0.0] for _ in sides]  # by side and kind, in steps
        self.held = [0.0 for _ in sides]  # ticks of all residents
        self.held_zero = [0.0 for _ in sides]  # ticks of those of priority 0
        self.weighted = [0.0 for _ in sides]  # ticks of the others times their priorities in steps
        self.fresh = [[0, 0] for _ in sides]  # yielded since `settle`

    def advance(self, t: int, firsts: Iterable[Sequence[float]]) -> None:
        """Go on to t; `firsts` are the residents' priorities at admission, as they were held."""
        passed = float(t - self.last)
        for side, priorities in enumerate(firsts):
            positive = [p for p in priorities if p > 0.0]
            self.held[side] += float(len(priorities)) * passed
            self.held_zero[side] += float(len(priorities) - len(positive)) * passed
            total = sum(steps(p, self.priority_scale) for p in positive)
            self.weighted[side] += float(total) * passed
        self.last = t
        if t - self.halved >= self.forget_after:
            self.halved = t
            for side, (zero, positive) in enumerate(self.yielded):
                self.yielded[side] = [zero * 0.5, positive * 0.5]
                self.held[side] *= 0.5
                self.held_zero[side] *= 0.5
                self.weighted[side] *= 0.5

    def note(self, side: int, first: float, importance: float) -> None:
        """Note an output of a resident."""
        self.fresh[side][first > 0.0] += steps(importance, self.scale)

    def settle(self) -> None:
        """Take what was noted into account."""
        for side, kinds in enumerate(self.fresh):
            for kind in (0, 1):
                self.yielded[side][kind] += float(kinds[kind])
                kinds[kind] = 0

    def value(self, side: int, priority: float) -> float:
        """Return the value of a tuple of a side and of a priority now."""
        all_yielded = sum((zero + positive for zero, positive in self.yielded), 0.0)
        own_yielded = (self.yielded[side][0] + self.yielded[side][1]) + SHARE * all_yielded
        own_held = self.held[side] + SHARE * sum(self.held, 0.0)
        ticks = self.held_zero[side] + SHARE * own_held
        zero = (self.yielded[side][0] + SHARE * own_yielded) / ticks if ticks > 0.0 else 0.0
        if priority <= 0.0:
            return zero
        weighted = self.weighted[side] + SHARE * sum(self.weighted, 0.0)
        positive = self.yielded[side][1] + SHARE * sum((p for _, p in self.yielded), 0.0)
        rate = positive / weighted if weighted > 0.0 else 1.0
        return max(zero, rate * (priority * self.priority_scale))
