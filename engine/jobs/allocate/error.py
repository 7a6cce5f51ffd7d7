"""The error of an estimated sum as a function of memory, for samples of P5 4 (P5 5)."""

from __future__ import annotations

from math import exp, inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jobs.allocate.moments import SideMoments
from engine.models.memory import Matched, expected_memory, fraction_for, matched
from engine.runtime.scipy_late import brentq, least_at

UNIFORM, EQ, PPS = "uniform", "eq-cluster", "pps-cluster"
_PRECISE = 1e-9
_LEAST = 1e-300
"""An error that is not above it takes all of the memory."""


class Classes(NamedTuple):
    """Tuples of one side by their inclusion probability, those of the largest size first."""

    size: NDArray[np.float64]
    """(s,) float64. Distinct, descending; tuples of size 0 match nothing and are left out."""
    live: NDArray[np.float64]
    """(s,) float64. Mean unexpired tuples."""
    clusters: NDArray[np.float64]
    """(s,) float64. Sum of the squared importance of all outputs of a tuple."""

    def inclusion(self, memory: float) -> NDArray[np.float64]:
        """Return the probabilities in proportion to size, at most 1, that fill the memory, (s,).

        Notes
        -----
        P5's footnote 2: what is stored for certain leaves the rest of the memory to the others.
        """
        certain = np.concatenate([[0.0], np.cumsum(self.live)])
        rest = np.cumsum((self.live * self.size)[::-1])[::-1]
        scales = (memory - certain[:-1]) / np.maximum(rest, 1e-300)
        fits = scales * self.size <= 1.0  # the first class that the memory left does not fill
        scale = scales[np.argmax(fits)] if fits.any() else np.inf
        found: NDArray[np.float64] = np.minimum(1.0, scale * self.size)
        return found


def classes_of(own: SideMoments, span: int, method: str) -> Classes:
    """Return the classes of a side: all alike with eq-cluster, by the opposite tuples with pps."""
    sizes = np.ones(own.rows.size) if method == EQ else own.others.astype(np.float64)
    matching = (own.rows if method == EQ else own.others) > 0
    size, at = np.unique(-sizes[matching], return_inverse=True)
    live, clusters = (
        np.bincount(at, sums[matching], size.size).astype(np.float64)
        for sums in (own.held / span, own.clusters)
    )
    return Classes(-size, live, clusters)


class ErrorModel(NamedTuple):
    """What memory gives in a join whose outputs are sampled to estimate their importance."""

    method: str
    """{"uniform", "eq-cluster", "pps-cluster"}."""
    sides: tuple[SideMoments, SideMoments]
    classes: tuple[Classes, Classes]
    """Of left and right."""
    windows: tuple[int, int]
    """W in ticks."""
    span: int
    """Ticks of both streams."""
    total: float
    """Importance of all outputs."""
    peaks: tuple[int, int]

    @property
    def groups(self) -> tuple[Matched, Matched]:
        """Tuples of each key, by their expected matches and the most: as the sampler takes them.

        So the fraction is the one that it settles on: matches by the frequency model, at random
        ages, and tuples of all keys unexpired for as long.
        """
        span = float(self.span)  # in nanoseconds its product with a window has more than 64 bits
        left, right = (
            matched(
                own.rows * (own.held.sum() / (span * (window + 1) * max(1, own.rows.sum()))),
                own.others * (window / self.span),
                own.most,
                window + 1,
                random=True,
            )
            for own, window in zip(self.sides, self.windows, strict=True)
        )
        return left, right

    def error(self, left: float, right: float) -> float:
        """Return the expected standard error of the sum with so many tuples a side, over the sum.

        Infinite where a side has matches and no memory for them.
        """
        if left >= self.peaks[0] and right >= self.peaks[1]:
            return 0.0
        variance = (
            self._uniform_variance(left + right)
            if self.method == UNIFORM
            else sum(self._variance(side, own) for side, own in enumerate((left, right)))
        )
        return sqrt(variance) / self.total if variance else 0.0

    def _uniform_variance(self, memory: float) -> float:
        """Every output is in the sample with probability p, on its own."""
        squares = sum(float(own.squares.sum()) for own in self.sides)
        if not squares:
            return 0.0
        if not memory > 0:
            return inf
        p = fraction_for(memory, self.groups)
        return squares * (1 - p) / p

    def _variance(self, side: int, memory: float) -> float:
        """All outputs of a stored tuple are in the sample together: sum of (1/p - 1) Y^2."""
        own = self.classes[side]
        if not own.clusters.any() or memory >= self.peaks[side]:
            return 0.0
        if not memory > 0:
            return inf
        some = own.clusters > 0
        return float((1 / own.inclusion(memory)[some] - 1) @ own.clusters[some])

    def split(self, memory: float) -> tuple[float, float]:
        """Return the split of one memory with the least error.

        A uniform sample has one fraction, so that its sides share their memory: it is split as the
        exact join's.
        """
        if memory >= sum(self.peaks):
            return float(self.peaks[0]), float(self.peaks[1])
        if self.method == UNIFORM:
            left = memory * self.peaks[0] / sum(self.peaks)
            return left, memory - left
        needs = [bool(own.clusters.any()) for own in self.sides]
        if not all(needs):
            part = float(min(memory, self.peaks[0 if needs[0] else 1]))
            return (part, memory - part) if needs[0] else (memory - part, part)
        low, high = max(0.0, memory - self.peaks[1]), min(memory, float(self.peaks[0]))
        left = least_at(
            lambda left: min(self.error(left, memory - left), 1e300), (low, high), tolerance=1e-3
        )
        return left, memory - left

    def memory_for(self, error: float) -> float:
        """Return the least memory whose expected error is at most `error`: P5's f_i."""
        full = float(sum(self.peaks))
        needed = [(own.squares if self.method == UNIFORM else own.clusters) for own in self.sides]
        if error >= 1e300 or not full or not any(own.any() for own in needed):
            return 0.0
        if error <= _LEAST:
            return full
        if self.method == UNIFORM:
            squares = sum(float(own.squares.sum()) for own in self.sides)
            p = squares / (squares + (error * self.total) ** 2)
            return min(full, expected_memory(p, self.groups))
        if self.at(full * (1 - _PRECISE)) > error:
            return full
        if self.at(full * _PRECISE) < error:
            return full * _PRECISE
        found = brentq(
            lambda power: log(max(self.at(exp(power)), _LEAST)) - log(error),
            log(full * _PRECISE),
            log(full * (1 - _PRECISE)),
            rtol=1e-10,
        )
        return exp(found)

    def at(self, memory: float) -> float:
        """Return the error with the best split of one memory."""
        return self.error(*self.split(memory))
