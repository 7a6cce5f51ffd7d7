"""Statistics learnt while a join runs: rates, selectivities, time correlations (P4 5.2).

P4 5.2.2 keeps a histogram a stream, of its lag behind the first, and derives all scores from them
as if lags were independent and every output counted for every direction. But direction i makes only
the outputs whose latest member is of stream i; with three streams and no time correlation at all,
the lags of all outputs are still more often short than long. So the ages of matches are also
counted for each direction and hop by themselves, which costs m - 1 additions an output.

Prior knowledge comes from profiles of pairs of streams. A profile counts the matches of an
equi-join of two streams. It stands for what the learner would hold if it had learnt from such
matches for ever, at the rate at which it samples: with a part `forget` kept at an adaptation,
``shred * adapt_every / (1 - forget)`` ticks of them, at most all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.histograms import decay, empty_histograms, learn
from engine.multiway.fractions.profile import JoinProfile
from engine.multiway.harvest.layout import Admitted, ProbeBatch, Probed, ReadPlan
from engine.multiway.harvest.prober import Prober
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import MultiStreams, Windows, basic_counts
from engine.runtime.jit import Floats, Ints, jit


class Indexed(NamedTuple):
    """Statistics on which the cost of indexed hops depends."""

    candidates: Floats
    """(m, m - 1) float64. By direction and hop: those of the tuples compared by a scan that indexes
    gave."""
    entries: Floats
    """(m,) float64. Of a tuple of each stream, on average."""


class Learnt(NamedTuple):
    """Statistics learnt from sampled tuples."""

    histograms: Floats
    """(m, buckets) float64. Of outputs by the time of stream i's member less that of stream 0's."""
    comparisons: Floats
    passes: Floats
    """`comparisons`, `passes`: (m, m - 1) float64. By direction and hop; comparisons as a scan
    makes them."""
    rates: Floats
    """(m,) float64. Pushes a tick in the last interval that had any."""
    ages: Floats
    """(m, m - 1, n) float64. Of outputs, by direction and hop
    (`engine.multiway.harvest.learner`)."""
    indexed: Indexed | None = None
    """Where indexes are probed."""


def empty_ages(basic: Sequence[int]) -> Floats:
    """Return zero counts: (m, m - 1, greatest n) float64.

    Parameters
    ----------
    basic : m ints
        n_i: logical basic windows of each window.
    """
    m = len(basic)
    return np.zeros((m, m - 1, max(basic)))


@jit
def _learn(ages: Floats, ts: Ints, orders: Ints, basic_window: int, basic: Ints) -> None:
    for row in range(ts.shape[0]):
        latest = 0
        for stream in range(1, ts.shape[1]):
            if ts[row, stream] >= ts[row, latest]:
                latest = stream
        for hop in range(orders.shape[1]):
            other = orders[latest, hop]
            k = (ts[row, latest] - ts[row, other]) // basic_window
            ages[latest, hop, min(k, basic[other] - 1)] += 1.0


def learn_ages(
    ages: Floats, ts: Ints, orders: Sequence[Sequence[int]] | Ints, basic_window: int,
    basic: Sequence[int],
) -> None:  # fmt: skip
    """Count outputs by the logical basic windows that their latest member found the others in.

    Parameters
    ----------
    ages : (m, m - 1, n) float64
        By direction and hop; changed in place.
    ts : (outputs, m) int64
        T(t^(i)); of equal times the stream of greater number came later.
    orders : m sequences of m - 1 ints
    basic_window : int
        b, in ticks.
    basic : m ints

    Examples
    --------
    >>> seen = empty_ages([3, 3])
    >>> learn_ages(seen, np.array([[9, 4], [9, 3], [5, 5]]), [[1], [0]], 2, [3, 3])
    >>> seen.tolist()
    [[[0.0, 0.0, 2.0]], [[1.0, 0.0, 0.0]]]
    """
    _learn(ages, ts, np.array(orders, np.int64), basic_window, np.array(basic, np.int64))


def age_scores(
    ages: Floats, orders: Sequence[Sequence[int]], basic: Sequence[int]
) -> list[list[Floats]]:
    """Return the scores of every hop's logical basic windows; flat where nothing was counted.

    Parameters
    ----------
    ages : (m, m - 1, n) float64
    orders, basic
        See `learn_ages`.

    Returns
    -------
    m lists of m - 1 arrays (n,) float64
        As `engine.multiway.fractions.profile.JoinProfile` takes them.
    """
    found = []
    for i, order in enumerate(orders):
        hops = [ages[i, hop, : basic[other]] for hop, other in enumerate(order)]
        found.append([own.copy() if own.any() else np.ones(own.size) for own in hops])
    return found


class Learner:
    """Learns from sampled tuples, which window shredding joins without bias.

    Parameters
    ----------
    streams : MultiStreams
    windows : Windows
    settings : HarvestSettings
    prober : Prober
        Finds their outputs again.
    entries : (m,) float64, optional
        Where indexes are probed: of a tuple of each stream (`indexes.entries_of`).

    Attributes
    ----------
    learnt : Learnt
    """

    def __init__(
        self, streams: MultiStreams, windows: Windows, settings: HarvestSettings, prober: Prober,
        entries: Floats | None = None,
    ) -> None:  # fmt: skip
        m = streams.number
        self._streams, self._windows, self._settings = streams, windows, settings
        self._prober = prober
        spans = -(-(windows.size.max(initial=0) + windows.size[0]) // settings.basic_window)
        self._basic = basic_counts(windows, settings.basic_window)
        self.learnt = Learnt(
            empty_histograms(windows.size, max(1, int(spans)) * settings.buckets),
            np.zeros((m, m - 1)),
            np.zeros((m, m - 1)),
            np.zeros(m),
            empty_ages(self._basic),
            None if entries is None else Indexed(np.zeros((m, m - 1)), entries),
        )

    def learn(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, probed: Probed, sampled: Ints
    ) -> None:
        """Learn from the sampled tuples of a batch that was joined."""
        if not sampled.size:
            return
        learnt = self.learnt
        read = probed.comparisons
        if learnt.indexed is not None:
            read = probed.read
            np.add.at(learnt.indexed.candidates, batch.stream[sampled], probed.candidates[sampled])
        np.add.at(learnt.comparisons, batch.stream[sampled], read[sampled])
        np.add.at(learnt.passes, batch.stream[sampled], probed.passes[sampled])
        found = sampled[probed.outputs[sampled] > 0]
        if found.size:
            for part in self._prober.outputs(admitted, plan, batch, found):
                times = self._streams.ts[part.members]
                learn(learnt.histograms, self._windows.size, times)
                learn_ages(learnt.ages, times, plan.order, self._settings.basic_window, self._basic)

    def adapted(self, pushes: Ints) -> None:
        """Record an interval's pushes, and scale older observations down."""
        some = pushes > 0
        self.learnt.rates[some] = pushes[some] / self._settings.adapt_every
        learnt = self.learnt
        for values in (learnt.histograms, learnt.ages, learnt.comparisons, learnt.passes):
            decay(values, self._settings.forget)
        if self.learnt.indexed is not None:
            decay(self.learnt.indexed.candidates, self._settings.forget)


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
