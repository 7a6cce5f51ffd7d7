"""Statistics learnt while a join runs: rates, selectivities, time correlations (P4 5.2).

P4 5.2.2 keeps a histogram a stream, of its lag behind the first, and derives all scores from them
as if lags were independent and every output counted for every direction. But direction i makes only
the outputs whose latest member is of stream i; with three streams and no time correlation at all,
the lags of all outputs are still more often short than long. So the ages of matches are also
counted for each direction and hop by themselves, which costs m - 1 additions an output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.histograms import empty_histograms, learn
from engine.multiway.harvest.layout import Admitted, ProbeBatch, Probed, ReadPlan
from engine.multiway.harvest.learning.lessons import Classes
from engine.multiway.harvest.probing.prober import Prober
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import MultiStreams, Windows, basic_counts
from engine.runtime.jit import Floats, Ints, jit, kernel


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
    (`engine.multiway.harvest.learning.learner`)."""
    indexed: Indexed | None = None
    """Where indexes are probed."""


FAINT = 1e-50
"""A count so small is scaled down no more. Products of a few smaller ones would be subnormal, which
takes a processor 100 times as long, or 0, as if nothing had ever been found."""
FEW_COMPARED = 1e-10
"""Of so few comparisons nothing is scaled down: what part of them passed, or an index gave, stays.
"""


def empty_ages(basic: Sequence[int]) -> Floats:
    """Return zero counts: (m, m - 1, greatest n) float64.

    Parameters
    ----------
    basic : m ints
        n_i: logical basic windows of each window.
    """
    m = len(basic)
    return np.zeros((m, m - 1, max(basic)))


@kernel
def _scaled(value: float, part: float) -> float:
    """Return a count scaled down, unless it is faint."""
    return value * part if value > FAINT else value


@kernel
def _scaled_down(values: Floats, part: float) -> bool:
    changed, flat = False, values.reshape(-1)
    for k in range(flat.size):
        before = flat[k]
        flat[k] = _scaled(before, part)
        changed |= flat[k] != before
    return changed


@kernel
def all_scaled_down(
    lags: Floats, ages: Floats, comparisons: Floats, passes: Floats, candidates: Floats, part: float
) -> bool:
    """Scale down all that was learnt; return whether any has changed.

    Parameters
    ----------
    lags, ages, comparisons, passes
        See `Learnt`.
    candidates : (m, m - 1) or (0, m - 1) float64
        See `Indexed`.
    """
    changed = _scaled_down(lags, part) | _scaled_down(ages, part)
    for i in range(comparisons.shape[0]):
        for hop in range(comparisons.shape[1]):
            compared = comparisons[i, hop]
            if compared > FEW_COMPARED:
                comparisons[i, hop] = _scaled(compared, part)
                changed |= comparisons[i, hop] != compared
                passes[i, hop] = _scaled(passes[i, hop], part)
                if candidates.shape[0] > 0:
                    candidates[i, hop] = _scaled(candidates[i, hop], part)
    return changed


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
    prober : Prober
        Finds their outputs again.
    entries : (m,) float64, optional
        Where indexes are probed: of a tuple of each stream (`indexes.entries_of`).
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

    @property
    def classes(self) -> Classes:
        """The classes in which outputs are counted."""
        window, settings = self._windows.size, self._settings
        basic = np.array(self._basic, np.int64)
        buckets = self.learnt.histograms.shape[1]
        return Classes(settings.basic_window, basic, window, buckets)
