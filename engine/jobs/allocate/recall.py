"""Recall as a function of memory, by the age-based and the frequency-based model (P5 3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.jobs.age_curves import Curves
from engine.jobs.allocate.divide import filled
from engine.jobs.allocate.measure import JoinMeasure
from engine.models.frequency import pieces
from engine.models.rate_curve import RateCurve, from_pieces, from_points, merged, shared, side_curve
from engine.runtime.scipy_late import betainc

AGE, FREQUENCY = "age", "frequency"
_POINTS = 400
"""Of a curve."""
MARGIN = 0.01
"""Recall by which frequencies must promise more: AGE does no harm where neither model fits."""


class RecallModel(NamedTuple):
    """What memory gives in a join.

    Attributes
    ----------
    name : {"age", "frequency"}
    sides : (RateCurve, RateCurve)
        Outputs a tick of stored left and right tuples.
    both : RateCurve
        With one memory for both.
    free : float
        Outputs a tick that need no memory: of tuples that arrive together.
    peaks : (int, int)
    """

    name: str
    sides: tuple[RateCurve, RateCurve]
    both: RateCurve
    free: float
    peaks: tuple[int, int]

    @property
    def exact(self) -> float:
        """Outputs a tick of the exact join."""
        return self.both.most + self.free

    def recall(self, left: float, right: float) -> float:
        """Return the expected recall with so many tuples a side."""
        if not self.exact:
            return 1.0
        rates = [
            curve.most if memory >= peak else curve.rate_at(memory)
            for curve, memory, peak in zip(self.sides, (left, right), self.peaks, strict=True)
        ]
        return (sum(rates) + self.free) / self.exact

    def memory_for(self, recall: float) -> float:
        """Return the least memory whose expected recall is `recall`, at most 1: P5's f_i."""
        return self.both.memory_for(min(self.both.most, recall * self.exact - self.free))

    def split(self, memory: float) -> tuple[float, float]:
        """Return the split of one memory with the greatest recall (P5 3.2.2)."""
        left, right = filled(shared(self.sides, memory), self.peaks, memory)
        return left, right


def recall_model(
    name: str, found: JoinMeasure, given: Curves = (None, None), *, steady: bool = False
) -> RecallModel:
    """Return a join's recall by one of the models.

    Parameters
    ----------
    name : {"age", "frequency"}
    found : JoinMeasure
    given : (curve or None, curve or None)
        Age curves to go by in place of those measured.
    steady : bool
        Take the unexpired tuples of a key to be as many at all times, as P5 3.3 does.

    Notes
    -----
    The curves are scaled so that with all its memory each side has the matches that were counted:
    a model says how memory is worth spending, the archive how much there is to get. No curve asks
    for more memory than the peak.
    """
    left, right = (
        _scaled(_curve(name, found, given, side, steady), found.matches[side] / found.span, peak)
        for side, peak in enumerate(found.peaks)
    )
    free = (found.outputs - sum(found.matches)) / found.span
    return RecallModel(name, (left, right), merged([left, right]), free, found.peaks)


def _curve(name: str, found: JoinMeasure, given: Curves, side: int, steady: bool) -> RateCurve:
    if name == AGE:
        own = found.curves[side] if given[side] is None else np.array(given[side])
        return side_curve(own, found.windows[side], found.rows[side] / found.span)
    live, worth = pieces(found.counts, found.windows, found.span, found.rest)[side]
    return from_pieces(live, worth) if steady else varying(live, worth, found.peaks[side])


def varying(memory: NDArray[np.float64], worth: NDArray[np.float64], peak: int) -> RateCurve:
    """Return what tuples taken by worth yield where those of a key are now more, now fewer.

    Parameters
    ----------
    memory : (n,) float64
        Unexpired tuples of each key on average.
    worth : (n,) float64
        Outputs a tick that each of them adds.
    peak : int
        Memory beyond which nothing is gained.

    Notes
    -----
    Of the N unexpired tuples of the i best keys, min(N, K) are held. Each tuple is of these keys
    with the same probability, so that N is binomial; the mean of min(N, K), times what key i is
    worth more than the next, is added up over i. Memory that just holds the mean is often too
    little or too much: P5's curve, with a corner there, promises a few hundredths more.

    Examples
    --------
    >>> corner = varying(np.array([100.0, 300.0]), np.array([1.0, 0.0]), 400)
    >>> round(corner.rate_at(100.0), 2), round(corner.rate_at(50.0), 2)
    (96.55, 50.0)
    """
    values, at = np.unique(-worth, return_inverse=True)
    mean = np.cumsum(np.bincount(at, memory, values.size))
    if not mean.size or not peak or not mean[-1]:
        return from_pieces(memory, worth)
    more = np.diff(values, append=0.0)
    grid = np.unique(np.linspace(0, peak, min(peak, _POINTS) + 1).round())
    rate = np.zeros(grid.size)
    for gain, middle in zip(more, mean, strict=True):
        rate += gain * (middle - _beyond(mean[-1], middle / mean[-1], grid))
    return from_points(grid[1:], np.maximum.accumulate(rate)[1:])


def _beyond(n: float, p: float, k: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of max(N - k, 0), N binomial of `n` tuples, for whole k from 0 on."""
    b = np.maximum(n - k + 1.0, 1e-9)
    at_least = np.where(k > 0, betainc(np.maximum(k, 1.0), b, p), 1.0)
    but_one = np.where(k > 1, betainc(np.maximum(k - 1.0, 1.0), b, p), 1.0)
    found: NDArray[np.float64] = np.where(k < n, n * p * but_one - k * at_least, 0.0)
    return np.maximum(found, 0.0)


def _scaled(curve: RateCurve, most: float, peak: int) -> RateCurve:
    """Return a curve that ends at the rate `most`, and at no more memory than `peak`."""
    if not curve.most:
        return curve
    rate = curve.rate * (most / curve.most)
    rate[-1] = most
    return RateCurve(curve.memory * min(1.0, peak / curve.full), rate)


def better(found: JoinMeasure, memory: float, given: Curves = (None, None)) -> dict[str, float]:
    """Return the recall that each model may be expected to reach with a memory.

    Returns
    -------
    dict
        By name. Of the frequency-based model it is what its counts of the first half of the span
        reach in the second, where they are known: keys that do not come again are worth nothing.
    """
    age = recall_model(AGE, found, given)
    frequency = recall_model(FREQUENCY, found)
    whole = frequency.exact
    if not whole:
        return {AGE: 1.0, FREQUENCY: 1.0}
    parts = frequency.split(memory)
    rates = [
        frequency.sides[side].most * learned_share(found, side, parts[side]) for side in (0, 1)
    ]
    return {
        AGE: age.recall(*age.split(memory)),
        FREQUENCY: (sum(rates) + frequency.free) / whole,
    }


def learned_share(found: JoinMeasure, side: int, memory: float) -> float:
    """Return the share of the second half's matches that the first half's counts find.

    Tuples of the second half are taken by the tuples that the other side had of their key in the
    first; those of one count together.
    """
    if found.halves is None:
        curve = recall_model(FREQUENCY, found).sides[side]
        return curve.rate_at(memory) / curve.most if curve.most else 0.0
    first, second = found.halves
    own, other = (second.left, second.right)[side], (second.left, second.right)[1 - side]
    learned = (first.left, first.right)[1 - side]
    values, at = np.unique(-learned, return_inverse=True)
    ticks = max(1, found.span - found.span // 2)
    held = np.bincount(at, own * (found.windows[side] / ticks), values.size)
    gained = np.bincount(at, own * (other / ticks), values.size)
    total = gained.sum()
    if not total:
        return 0.0
    steps = np.concatenate([[0.0], np.cumsum(held)])
    return float(np.interp(memory, steps, np.concatenate([[0.0], np.cumsum(gained)])) / total)


def chosen_model(found: JoinMeasure, expected: dict[str, float]) -> str:
    """Return the model that a profile prefers, else that which promises more."""
    if found.fits is not None:
        return found.fits
    return FREQUENCY if expected[FREQUENCY] > expected[AGE] + MARGIN else AGE
