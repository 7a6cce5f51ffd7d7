"""Prior knowledge of a harvested join: what profiles say of pairs of its streams.

A profile counts the matches of an equi-join of two streams. It stands for what the learner would
hold if it had learnt from such matches for ever, at the rate at which it samples: with a part
`forget` kept at an adaptation, ``shred * adapt_every / (1 - forget)`` ticks of them, at most all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.profile import JoinProfile
from engine.multiway.harvest.learning.learner import Learnt
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import Windows, basic_counts
from engine.runtime.jit import Floats, Ints


class PairPrior(NamedTuple):
    """A profile of streams `first` and `second`."""

    first: int
    second: int
    rates: tuple[float, float]
    """Tuples a tick."""
    ticks: int
    """Of the profile's span."""
    selectivity: float
    edges: Ints
    """(n + 1,) int64. Of ``second.ts - first.ts``: bin j holds the lags
    ``edges[j] <= lag < edges[j + 1]``."""
    matches: Ints
    """(n,) int64."""

    def turned(self) -> PairPrior:
        """Return the same of `second` and `first`."""
        return PairPrior(
            self.second, self.first, self.rates[::-1], self.ticks, self.selectivity,
            1 - self.edges[::-1], self.matches[::-1],
        )  # fmt: skip


def spread(edges: Ints, matches: Ints, bounds: Floats) -> Floats:
    """Return matches by lag in other bins, those of each bin spread evenly over its lags.

    Parameters
    ----------
    edges, matches
        See `PairPrior`; a bin holds whole ticks, lag a from a - 1/2 to a + 1/2.
    bounds : (m + 1,) float64
        Of the bins wanted, increasing; what lies outside is left out.

    Examples
    --------
    >>> spread(np.array([0, 1, 5]), np.array([3, 8]), np.array([-0.5, 2.5, 4.5])).tolist()
    [7.0, 4.0]
    """
    below = np.concatenate([[0.0], np.cumsum(matches)])
    found: Floats = np.diff(np.interp(bounds, edges - 0.5, below))
    return found


def known(priors: Sequence[PairPrior], m: int) -> bool:
    """Return whether the rate of every stream is known."""
    return {own for prior in priors for own in prior[:2]} == set(range(m))


def begin(
    learnt: Learnt, priors: Sequence[PairPrior], windows: Windows, orders: Sequence[Sequence[int]],
    settings: HarvestSettings,
) -> None:  # fmt: skip
    """Write the statistics of profiles to `learnt`, in place."""
    for prior in priors:
        weight = _weight(prior, settings)
        for pair in (prior, prior.turned()):
            learnt.rates[pair.first] = pair.rates[0]
            _ages(learnt, pair, weight, windows, orders, settings.basic_window)
            if pair.first == 0:
                size = windows.size[pair.second]
                edges = learnt.histograms.shape[1] + 1
                bounds = np.linspace(-float(size), float(windows.size[0]), edges)
                bounds[0], bounds[-1] = bounds[0] - 0.5, bounds[-1] + 0.5
                lags = spread(pair.edges, pair.matches, bounds)
                learnt.histograms[pair.second] += weight * lags


def _weight(prior: PairPrior, settings: HarvestSettings) -> float:
    """Return the part of the profile's matches that stands for what was learnt from them."""
    kept = 1.0 - settings.forget
    ticks = settings.shred * settings.adapt_every / kept if kept else np.inf
    return float(min(1.0, ticks / max(1, prior.ticks)))


def _ages(
    learnt: Learnt, pair: PairPrior, weight: float, windows: Windows,
    orders: Sequence[Sequence[int]], b: int,
) -> None:  # fmt: skip
    """Add the matches that direction `first` finds in the window of `second`.

    They have ``second.ts - first.ts <= 0``; of equal times the stream of greater number came later.
    """
    direction, other = pair.first, pair.second
    hop = list(orders[direction]).index(other)
    newest = 0 if direction > other else 1
    size, n = int(windows.size[other]), basic_counts(windows, b)[other]
    bounds = np.array([*(b * k for k in range(n)), size + 1], np.float64) - 0.5
    ages = spread(1 - pair.edges[::-1], pair.matches[::-1], np.maximum(bounds, newest - 0.5))
    learnt.ages[direction, hop, :n] += weight * ages
    found = weight * float(ages.sum())
    learnt.passes[direction, hop] += found
    if pair.selectivity > 0:
        learnt.comparisons[direction, hop] += found / pair.selectivity
        if learnt.indexed is not None:
            learnt.indexed.candidates[direction, hop] += found


def first_throttle(
    learnt: Learnt, priors: Sequence[PairPrior], windows: Windows, orders: Sequence[Sequence[int]],
    settings: HarvestSettings,
) -> float:  # fmt: skip
    """Return the throttle fraction at which the whole cost is expected to meet the capacity."""
    if settings.capacity is None:
        return 1.0
    m = len(orders)
    selectivities = np.ones((m, m))
    for prior in priors:
        selectivities[prior.first, prior.second] = prior.selectivity
        selectivities[prior.second, prior.first] = prior.selectivity
    join = JoinProfile(
        (learnt.rates * settings.per_second).tolist(),
        ((windows.size + 1) / settings.per_second).tolist(),
        basic_counts(windows, settings.basic_window),
        orders,
        selectivities.tolist(),
    )
    return min(1.0, settings.capacity / join.full_cost) if join.full_cost else 1.0
