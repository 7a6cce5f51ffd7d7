"""One memory for all sides: what makes tuples of one side compare with those of another.

A policy ranks tuples within a side, so of each side only the least can go. Across sides a tuple
counts for its *value*: the importance a tick that residents of its side and *class* have yielded so
far, divided by the square root of the number of its side's residents, as more memory for a side
yields less and less. Classes follow the rank, coarsely: by the priority at admission, in octaves;
those of priority 0 or less by importance where importance breaks ties, else by how long ago they
arrived. A higher class is never worth less (isotonic regression by pooling adjacent violators).
Under `yield` the value is the priority of the moment times what residents of the side and class
have yielded for each unit of theirs.
Imports nothing of ours and nothing beyond the standard library.
"""

import math
from collections.abc import Iterable, Sequence

STEPS = 65536.0
"""Sums are of whole steps, so that their order does not matter: so many are the unit."""
MOST_STEPS = 2.0**36
EXPECTED = 1024.0
"""Steps of a priority of `yield` for each of `STEPS`."""
MOST_EXPECTED = 2.0**42
LEVELS = 64
"""Classes of tuples of priority 0 or less, and of the others."""
SHARE = 1.0 / 1024.0
"""Weight of what is known of all in what is known of a few."""
COMMON = 1.0 / 64.0
"""The same under `yield`."""
TIMES = 8
"""Values are found so many times a lifetime at most."""
KEPT = 31.0 / 32.0
"""Weight of what was known in what is known a time later: half after 2.7 lifetimes."""


def steps(value: float, scale: float) -> int:
    """Return a value of 0 or more in whole steps."""
    return math.floor(min(value * scale, MOST_STEPS))


def steps_expected(priority: float, scale: float) -> int:
    """Return a priority of `yield`, 0 or more, in whole steps."""
    return math.floor(min(priority * (scale * EXPECTED), MOST_EXPECTED))


def scale_of(unit: float) -> float:
    """Return the number of steps in a value of 1."""
    scale = STEPS / unit if unit > 0.0 else math.inf
    return scale if scale < math.inf else 1.0


def octave(value: float) -> int:
    """Return the level of a positive number: one more for each doubling, 32 for 1 to 2 units."""
    return min(max(math.frexp(value)[1] + 15, 0), LEVELS - 1)


def recency(age: int, lifetime: int) -> int:
    """Return the level of an age: one more each time that the age is divided by the root of 2."""
    times = float(lifetime) / float(age + 1)
    return min(max(math.frexp(times * times)[1] - 1, 0), LEVELS - 1)


def isotonic(values: Sequence[tuple[float, float]]) -> list[float]:
    """Return the non-decreasing quotients nearest to y / h, weighted by h, of (y, h) in order."""
    blocks: list[tuple[float, float, int]] = []
    for y, h in values:
        blocks.append((y, h, 1))
        while len(blocks) > 1 and blocks[-1][0] * blocks[-2][1] <= blocks[-2][0] * blocks[-1][1]:
            (last_y, last_h, last), (own_y, own_h, own) = blocks.pop(), blocks.pop()
            blocks.append((own_y + last_y, own_h + last_h, own + last))
    return [y / h if h > 0.0 else 0.0 for y, h, times in blocks for _ in range(times)]


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
    by_importance : bool
        Whether importance breaks ties of priority.
    corrected : bool
        Whether priorities are what tuples are expected to yield.
    t0 : int
        The first instant.
    """

    def __init__(
        self,
        windows: Sequence[int],
        means: Sequence[float],
        *,
        counts: bool,
        by_importance: bool,
        corrected: bool = False,
        t0: int,
    ) -> None:
        self.lifetimes = [window + 1 for window in windows]
        self.every = max(max(self.lifetimes) // TIMES, 1)
        self.scale = scale_of(max(means))
        self.priority_scale = scale_of(1.0) if counts else self.scale
        self.by_importance, self.corrected = by_importance, corrected
        self.last = t0
        self.fresh = [[0] * 2 * LEVELS for _ in windows]  # yielded since `last`, in steps
        self.yielded = [[0.0] * 2 * LEVELS for _ in windows]
        self.held = [[0.0] * 2 * LEVELS for _ in windows]  # ticks, or yields expected
        self.values = [[0.0] * 2 * LEVELS for _ in windows]

    def class_of(self, side: int, priority: float, importance: float, age: int) -> int:
        """Return the class of a tuple."""
        if priority > 0.0:
            return LEVELS + octave(priority * self.priority_scale)
        if not self.by_importance:
            return recency(age, self.lifetimes[side])
        return octave(importance * self.scale) if importance > 0.0 else 0

    def note(self, side: int, first: float, importance: float, age: int, yielded: float) -> None:
        """Note an output of a resident, of a priority at admission and an importance of its own.

        Under `yield` the priority is that of the moment.
        """
        at = self.class_of(side, first, importance, age)
        self.fresh[side][at] += steps(yielded, self.scale)

    def learn(self, t: int, residents: Iterable[Iterable[tuple[float, float, int]]]) -> None:
        """Find the values anew if it is time to, before step 5 at t.

        `residents` after step 1 are by side: priority at admission (`yield`: of the moment),
        importance, ts.
        """
        if t - self.last < self.every:
            return
        passed = float(t - self.last)
        self.last = t
        sides = range(len(self.held))
        for side, rows in enumerate(residents):
            number = [0] * 2 * LEVELS
            for first, importance, ts in rows:
                own = steps_expected(first, self.priority_scale) if self.corrected else 1
                number[self.class_of(side, first, importance, t - ts)] += own
            for at in range(2 * LEVELS):
                self.yielded[side][at] = self.yielded[side][at] * KEPT + float(self.fresh[side][at])
                self.held[side][at] = self.held[side][at] * KEPT + float(number[at]) * passed
                self.fresh[side][at] = 0
        yielded = [_added(own) for own in self.yielded]
        held = [_added(own) for own in self.held]
        for side in sides:
            y = SHARE * (yielded[side] + SHARE * _added(yielded))
            h = SHARE * (held[side] + SHARE * _added(held))
            if self.corrected:
                y, h = COMMON * _added(yielded), COMMON * _added(held)
            known = zip(self.yielded[side], self.held[side], strict=True)
            quotients = [(own_y + y, own_h + h) for own_y, own_h in known]
            if self.corrected:
                self.values[side] = [
                    own_y / own_h if own_h > 0.0 else 0.0 for own_y, own_h in quotients
                ]
            else:
                self.values[side] = isotonic(quotients)

    def value(
        self, side: int, priority: float, importance: float, age: int, residents: int
    ) -> float:
        """Return a tuple's value now, but for `yield` its square; `residents` are of its side."""
        at = self.class_of(side, priority, importance, age)
        if self.corrected:
            return self.values[side][at] * priority
        return self.values[side][at] * self.values[side][at] / (float(residents) + 0.5)


def _added(values: Iterable[float]) -> float:
    """Add in order (`sum` compensates)."""
    total = 0.0
    for value in values:
        total += value
    return total
