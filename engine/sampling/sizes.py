"""Sizes of tuples, by which samplers weigh them, and priorities drawn from sizes (P5 4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.models.frequency import KeyCounts
from engine.policies import Policy
from engine.replay.settings import sampled_callback
from engine.runtime.jit import Floats, Ints, Records, jit

SIZES = ("matches", "values", "weighted", "equal")
_FLOOR = 0.1
"""Share of a side's mean importance that is added to each tuple's by size `weighted`: tuples of
importance 0 count as outputs too, and must not be all but impossible to draw."""


_LEAST = 1e-290
"""A mean importance that is less is as one of 0: sizes could not be divided by."""
MEAN_DIGITS = 24
"""Significant bits of means, so that they do not depend on how the rows lie in lanes."""


def rounded(numbers: Floats, digits: int) -> Floats:
    """Return numbers of so many significant bits."""
    mantissa, exponent = np.frexp(numbers)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissa, digits)), exponent - digits))


class ByKey(NamedTuple):
    """A number for the tuples of each key."""

    codes: Ints
    """(n,) int64. Join attributes as lanes hold them, ascending."""
    left: Floats
    right: Floats
    """`left`, `right`: (n,) float64. Of left and right tuples with each."""
    others: tuple[float, float] = (0.0, 0.0)
    """Of left and right tuples with any other key."""

    def of(self, codes: Ints, side: int) -> Floats:
        """Return the numbers of tuples of one side, 0 left, 1 right."""
        if not self.codes.size:
            return np.full(codes.size, self.others[side])
        values, low = (self.left, self.right)[side], int(self.codes[0])
        width = int(self.codes[-1]) - low + 1
        if width <= codes.size:  # by their places, of which one more is for codes beyond
            places = np.full(width + 1, self.others[side])
            places[self.codes - low] = values
            beyond = (codes < low) | (codes > self.codes[-1])
            return places[np.where(beyond, width, codes - low)]
        at = np.minimum(np.searchsorted(self.codes, codes), self.codes.size - 1)
        return np.where(self.codes[at] == codes, values[at], self.others[side])


def opposite_counts(
    counts: KeyCounts, smoothing: float = 0.0, rest: tuple[float, float] = (0.0, 0.0)
) -> ByKey:
    """Return how many tuples of the other stream have a tuple's key.

    Parameters
    ----------
    counts : KeyCounts
    smoothing : float
        Added to every count: 0 for those of the archive itself, where 0 is a tuple that matches
        nothing, 0.5 for those of a profile.
    rest : (float, float)
        Left and right tuples of a key that is not counted.
    """
    left, right = (np.asarray(own + smoothing, np.float64) for own in (counts.right, counts.left))
    return ByKey(counts.codes, left, right, (rest[1] + smoothing, rest[0] + smoothing))


def expected_matches(matching: ByKey, windows: tuple[int, int], span: int) -> ByKey:
    """Return the matches of a tuple while it is stored, by the frequency model (P5 equation 1).

    Parameters
    ----------
    matching : ByKey
        `opposite_counts`.
    windows : (int, int)
        W of left and right in ticks.
    span : int
        Ticks in which they were counted.

    Examples
    --------
    >>> counts = KeyCounts(np.array([5]), np.array([30]), np.array([20]))
    >>> found = expected_matches(opposite_counts(counts), (10, 5), 100)
    >>> found.left.tolist(), found.right.tolist()
    ([2.0], [1.5])
    """
    left, right = windows
    return ByKey(
        matching.codes,
        left * matching.left / span,
        right * matching.right / span,
        (left * matching.others[0] / span, right * matching.others[1] / span),
    )


class SizeRule(NamedTuple):
    """What the size of a tuple is."""

    kind: str = "matches"
    """{"matches", "values", "weighted", "equal"}. Tuples of the other stream that have its key;
    times how large the values are that aggregates add up; times its importance; or 1."""
    matches: ByKey | None = None
    """`opposite_counts`; None where all are of one size."""
    floors: tuple[float, float] = (0.0, 0.0)
    """Added to the importance of left and right tuples by `weighted`, see `floor_of`."""


def floor_of(rows: Sequence[int], means: Sequence[float]) -> float:
    """Return what `weighted` adds to a side's importance, from its lanes' mean importances.

    1 where all importance is 0, or next to it.
    """
    total = sum(rows)
    if not total:
        return 0.0
    mean = sum(n * mean for n, mean in zip(rows, means, strict=True)) / total
    return float(rounded(np.array(_FLOOR * mean), MEAN_DIGITS)) if mean >= _LEAST else 1.0


def tuple_sizes(
    rule: SizeRule, side: int, codes: Ints, importance: Floats, factors: Floats | None = None
) -> Floats:
    """Return the size of tuples of one side.

    Parameters
    ----------
    rule : SizeRule
    side : int
        0 left, 1 right.
    codes : (n,) int64
        Join attributes as lanes hold them.
    importance : (n,) float64
    factors : (n,) float64, optional
        For `values`, as `engine.sampling.values` has them.

    Returns
    -------
    (n,) float64
        0 or more.

    Examples
    --------
    >>> counts = KeyCounts(np.array([5, 8]), np.array([3, 0]), np.array([2, 1]))
    >>> rule = SizeRule("matches", opposite_counts(counts))
    >>> tuple_sizes(rule, 1, np.array([8, 5]), np.ones(2)).tolist()
    [0.0, 3.0]
    """
    if rule.matches is None or rule.kind == "equal":
        return np.ones(codes.size)
    sizes = rule.matches.of(codes, side)
    if factors is not None:
        sizes = sizes * factors
    return sizes * (importance + rule.floors[side]) if rule.kind == "weighted" else sizes


class Sizing(NamedTuple):
    """How the tuples of a lane get their sizes."""

    kind: str = "equal"
    """{"matches", "weighted", "equal"}. See `SizeRule`; matches are counted in the lane."""
    floors: tuple[float, float] = (0.0, 0.0)
    """Added to the importance of left and right tuples, by `weighted`."""

    def rule(self, counts: KeyCounts | None) -> SizeRule:
        """Return the rule by which sizes are taken from the lane's own counts."""
        matches = None if counts is None or self.kind == "equal" else opposite_counts(counts)
        return SizeRule(self.kind, matches, self.floors)


class Sampling(NamedTuple):
    """The sizes and scales of a sampling policy on one lane."""

    sizing: Sizing = Sizing()
    scales: tuple[float, float] = (1.0, 1.0)
    """Of left and right: the probability of EQ-CLUSTER, the factor c of PPS-CLUSTER."""


def priorities(policy: Policy, sizes: Floats, scale: float, draws: Floats) -> Floats:
    """Return the priorities of tuples of one side, less than 0 for those never admitted.

    Parameters
    ----------
    policy : Policy
    sizes : (n,) float64
    scale : float
        Of their side.
    draws : (n,) float64
        Uniforms in [0, 1) of `PURPOSE_CLUSTER`.

    Examples
    --------
    >>> from engine.policies import SAMPLING
    >>> priorities(SAMPLING["bottom-k"], np.array([3.0, 0.0]), 1.0, np.array([0.5, 0.5])).tolist()
    [6.0, -1.0]
    """
    out = np.empty(sizes.size)
    _fill(sampled_callback(policy), sizes, scale, draws, out)
    return out


@jit
def _fill(priority: Records, sizes: Floats, scale: float, draws: Floats, out: Floats) -> None:
    for i in range(out.size):
        out[i] = priority(sizes[i], scale, draws[i])
