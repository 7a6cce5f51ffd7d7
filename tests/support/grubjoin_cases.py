"""What the oracle of the harvested join is given, made from what the engine is given."""

from __future__ import annotations

from typing import Any

import naive_grubjoin as oracle
import naive_vectors as vectors
import numpy as np
from multiway_cases import values
from naive_multijoin import Tuple, band, distance, equi, inner

from engine.multiway.harvest.adapt import setting_of
from engine.multiway.harvest.learner import Learnt
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import MultiStreams, Windows
from gpu_kernels.philox import PURPOSE_SHED, PURPOSE_SHRED

MEETS = {
    "equi": equi(),
    "band": band(1.0),
    "distance": distance(1.5),
    "inner": inner(2.0),
    "theta": lambda a, b: a[0] < b[0] + 1.0,
    "cosine": vectors.meets("cosine", 0.8),
    "dense": vectors.meets("inner", 4.0),
    "keyed": vectors.keyed(vectors.meets("cosine", 0.7)),
}
PURPOSES = {oracle.SHED: PURPOSE_SHED, oracle.SHRED: PURPOSE_SHRED}


def tuples_of(streams: MultiStreams, kind: str) -> list[list[Tuple]]:
    found = []
    for stream, own in enumerate(values(streams, kind)):
        part = streams.part(stream)
        columns = (streams.ts[part], streams.row[part], own, streams.importance[part])
        found.append(
            [Tuple(int(t), int(r), v, float(i)) for t, r, v, i in zip(*columns, strict=True)]
        )
    return found


def ages_of(state: oracle.State) -> np.ndarray[Any, Any]:
    """Return what the oracle has counted by age as the engine has it."""
    m = len(state.ages)
    most = max(len(counts) for hops in state.ages for counts in hops)
    found = np.zeros((m, m - 1, most))
    for i, hops in enumerate(state.ages):
        for hop, counts in enumerate(hops):
            found[i, hop, : len(counts)] = counts
    return found


class Configure:
    """Makes the oracle's settings by the engine's rule, from what the oracle has learnt."""

    def __init__(
        self, windows: Windows, orders: list[list[int]], settings: HarvestSettings
    ) -> None:
        m = len(orders)
        self.fixed = windows, orders, settings
        self.comparisons, self.passes = np.zeros((m, m - 1)), np.zeros((m, m - 1))
        self.rates = np.zeros(m)

    def __call__(self, state: oracle.State) -> oracle.Setting:
        """Return what is in force from the adaptation on."""
        windows, orders, settings = self.fixed
        self.comparisons += state.comparisons
        self.passes += state.passes
        pushes = np.array(state.pushes)
        self.rates = np.where(pushes > 0, pushes / state.interval, self.rates)
        histograms = np.array([own.counts for own in state.histograms], np.float64)
        ages = ages_of(state)
        learnt = Learnt(histograms, self.comparisons, self.passes, self.rates, ages)
        chosen = setting_of(learnt, windows, orders, state.z, settings)
        rankings = [[hop.tolist() for hop in hops] for hops in chosen.rankings]
        return oracle.Setting(chosen.counts.tolist(), rankings)
