"""Recall as a function of memory, by the age-based and the frequency-based model (P5 3).

A model's curve is scaled until it goes through what replays measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

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
    """What memory gives in a join."""

    name: str
    """{"age", "frequency"}."""
    sides: tuple[RateCurve, RateCurve]
    """Outputs a tick of stored left and right tuples."""
    both: RateCurve
    """With one memory for both."""
    free: float
    """Outputs a tick that need no memory: of tuples that arrive together."""
    peaks: tuple[int, int]

    @property
    def exact(self) -> float:
        """Outputs a tick of the exact join."""
        return self.both.most + self.free

    @property
    def knots(self) -> NDArray[np.float64]:
        """Memories between which recall is linear."""
        return self.both.memory

    def curve(self, memory: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected recall of the best splits of memories."""
        if not self.exact:
            return np.ones(memory.size)
        rates = np.interp(memory, self.both.memory, self.both.rate)
        found: NDArray[np.float64] = (rates + self.free) / self.exact
        return found

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
    live, value = pieces(found.counts, found.windows, found.span, found.rest)[side]
    return from_pieces(live, value) if steady else varying(live, value, found.peaks[side])


def varying(memory: NDArray[np.float64], value: NDArray[np.float64], peak: int) -> RateCurve:
    """Return what tuples taken by value yield where those of a key are now more, now fewer.

    Parameters
    ----------
    memory : (n,) float64
        Unexpired tuples of each key on average.
    value : (n,) float64
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
    values, at = np.unique(-value, return_inverse=True)
    mean = np.cumsum(np.bincount(at, memory, values.size))
    if not mean.size or not peak or not mean[-1]:
        return from_pieces(memory, value)
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
        reach in the second, where they are known: keys that do not come again add nothing.
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


class ByMemory(Protocol):
    """Recall as a function of one memory."""

    @property
    def peaks(self) -> tuple[int, int]:
        """What the exact join needs."""

    @property
    def knots(self) -> NDArray[np.float64]:
        """Memories between which recall is linear."""

    def curve(self, memory: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the expected recall of memories."""


class MeasuredCurve(NamedTuple):
    """Recall by memory, as replays have it where there are any."""

    memory: NDArray[np.float64]
    """(n,) float64. Tuples of both sides, increasing from 0 to the peak."""
    recall: NDArray[np.float64]
    """(n,) float64. Non-decreasing; linear in between."""

    def at(self, memory: float) -> float:
        """Return the recall to expect of so many tuples."""
        return float(np.interp(memory, self.memory, self.recall))

    def memory_for(self, recall: float) -> float:
        """Return the least memory whose expected recall is `recall`; the peak if none is."""
        place = int(np.searchsorted(self.recall, recall))
        if place == 0:
            return 0.0
        if place == self.recall.size:
            return float(self.memory[-1])
        around = slice(place - 1, place + 1)
        return float(np.interp(recall, self.recall[around], self.memory[around]))


def calibrated(model: ByMemory, replays: Mapping[int, float]) -> MeasuredCurve:
    """Return a model's curve times measured / predicted recall, which is known at the replays.

    Parameters
    ----------
    replays : mapping
        Recall by memory, of replays with the model's split of it.

    Notes
    -----
    The factor is linear between the replays. Below them it is that of the least, above them it
    goes to 1 at the peak, which is exact whatever the model says. More memory never promises less:
    the curve stays where the product would fall.

    Examples
    --------
    A key of 100 live tuples was to give all outputs, and half of its memory gave 0.4 of them:

    >>> from engine.models.rate_curve import from_pieces
    >>> side, none = (from_pieces(np.array([n]), np.array([1.0])) for n in (100.0, 0.0))
    >>> model = RecallModel("frequency", (side, none), side, 0.0, (100, 0))
    >>> curve = calibrated(model, {50: 0.4})
    >>> [round(curve.at(memory), 9) for memory in (0, 25, 50, 75, 100)]
    [0.0, 0.2, 0.4, 0.675, 1.0]
    >>> round(curve.memory_for(0.4), 9)
    50.0
    """
    peak = sum(model.peaks)
    wanted = np.array(sorted(replays), np.float64)
    grid = np.unique(np.concatenate([model.knots, wanted, np.linspace(0, peak, _POINTS + 1)]))
    predicted = model.curve(grid)
    factors = {
        memory: replays[memory] / value
        for memory, value in zip(sorted(replays), model.curve(wanted), strict=True)
        if value > 0
    } | {peak: 1.0}
    at = np.array(sorted(factors), np.float64)
    factor = np.interp(grid, at, np.array([factors[memory] for memory in sorted(factors)]))
    return MeasuredCurve(grid, np.maximum.accumulate(np.minimum(1.0, predicted * factor)))
