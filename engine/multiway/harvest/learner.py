"""What a harvested join learns while it runs: rates, selectivities, time correlations (P4 5.2)."""

from __future__ import annotations

import numpy as np

from engine.multiway.fractions.ages import empty_ages, learn_ages
from engine.multiway.fractions.histograms import decay, empty_histograms, learn
from engine.multiway.harvest.adapt import Indexed, Learnt, basic_counts
from engine.multiway.harvest.layout import Admitted, Batch, Plan, Probed
from engine.multiway.harvest.prober import Prober
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import Floats, Ints, MultiStreams, Windows


class Learner:
    """Learns from the tuples that were drawn for it, which window shredding joins without bias.

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
        self, admitted: Admitted, plan: Plan, batch: Batch, probed: Probed, sampled: Ints
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
        """Take note of an interval's pushes, and let what was learnt before count for less."""
        some = pushes > 0
        self.learnt.rates[some] = pushes[some] / self._settings.adapt_every
        learnt = self.learnt
        for values in (learnt.histograms, learnt.ages, learnt.comparisons, learnt.passes):
            decay(values, self._settings.forget)
        if self.learnt.indexed is not None:
            decay(self.learnt.indexed.candidates, self._settings.forget)
