"""What the oracle of the harvested join is given, made from what the engine is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import naive_grubjoin as oracle
import numpy as np
import pytest
from multiway_cases import MEETS, PREDICATES, random_streams, values
from naive_multijoin import Tuple

from engine.multiway.harvest.learning.adapt import setting_of
from engine.multiway.harvest.learning.learner import Learnt
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import MultiStreams, Windows, windows_of
from engine.runtime.jit import Floats
from engine.runtime.randomness import uniforms
from gpu_kernels.philox import PURPOSE_SHED, PURPOSE_SHRED

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
        learnt = self._learnt(histograms, ages_of(state))
        chosen = setting_of(learnt, windows, orders, state.z, settings)
        rankings = [[hop.tolist() for hop in hops] for hops in chosen.rankings]
        return oracle.Setting(chosen.counts.tolist(), rankings)

    def _learnt(self, histograms: Floats, ages: Floats) -> Learnt:
        return Learnt(histograms, self.comparisons, self.passes, self.rates, ages)


def rows_of(join: GrubJoin, streams: MultiStreams) -> list[Any]:
    """Run a join; return its outputs as the oracle has them."""
    rows = []
    for part in join.run():
        latest = streams.ts[part.members].max(axis=1)
        for places, ts, importance in zip(part.members, latest, part.importance, strict=True):
            rows.append((tuple(streams.row[places].tolist()), int(ts), float(importance)))
    return sorted(rows, key=lambda row: (row[1], row[0]))


Done = tuple[GrubJoin, list[Any], oracle.Harvest]
"""The engine's join, its rows, and what the oracle has found."""


def both(
    seed: int, kind: str, sizes: tuple[int, ...], *, graph: str = "clique", combine: str = "min",
    start: int | None = None, keep: list[float] | None = None, window: int = 12, span: int = 60,
    threads: int = 1, distinct: int = 4, make: Callable[..., Any] = CpuProber,
    operator_of: Callable[..., Any] | None = None, configure_of: Any = Configure,
    ready: Callable[[Any, Any, MultiStreams], None] | None = None, **given: Any,
) -> Done:  # fmt: skip
    """Run a join in both ways.

    Parameters
    ----------
    make : callable
        Makes the prober, of what `MakeProber` is given and the number of threads.
    operator_of, configure_of : callable
        Make the oracle, if it is another one, and what gives it its settings.
    ready : callable, optional
        Called with both, and the streams, before the oracle runs.
    **given
        As `HarvestSettings` has them.
    """
    streams = random_streams(seed, sizes, kind, span=span, distinct=distinct)
    m = len(sizes)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation([j for j in range(m) if j != i]).tolist() for i in range(m)]
    windows = windows_of(rng.integers(max(0, window - 5), window + 6, m).tolist())
    given.setdefault("scores", ["ages", "streams"][seed % 2])
    settings = HarvestSettings(forget=1.0, buckets=2, **given)
    join = GrubJoin(
        streams, windows, PREDICATES[kind], settings, orders, graph=graph, combine=combine,
        start_ts=start, keep=keep, prober=lambda *own: make(*own, threads),
    )  # fmt: skip
    rows = rows_of(join, streams)
    draws = {
        name: [uniforms(settings.seed, own, i, streams.row[streams.part(i)]) for i in range(m)]
        for name, own in PURPOSES.items()
    }
    configure = configure_of(windows, orders, settings)
    streams_told = tuples_of(streams, kind), [("ticks", int(w)) for w in windows.size]
    rules = {
        "orders": orders, "basic": settings.basic_window, "capacity": settings.capacity,
        "per_second": settings.per_second, "delta": settings.adapt_every,
        "buffer": settings.buffer if settings.capacity else None, "gamma": settings.boost,
        "throttle": settings.throttle, "keep": keep,
        "omega": settings.shred if settings.shedding == "harvest" else 0.0,
        "buckets": join._learner.learnt.histograms.shape[1],  # noqa: SLF001
        "draws": lambda purpose, stream, row: float(draws[purpose][stream][row]),
        "conserve": settings.admission == "conserve", "combine": combine, "start_ts": start,
        "configure": configure if settings.shedding == "harvest" else None,
    }  # fmt: skip
    if operator_of is None:
        operator = oracle.Operator(*streams_told, MEETS[kind], graph, **rules)
    else:
        operator = operator_of(*streams_told, MEETS[kind], graph, **rules)
    if ready is not None:
        ready(operator, configure, streams)
    return join, rows, operator.run()


def check(join: GrubJoin, rows: list[Any], naive: oracle.Harvest) -> None:
    """Hold the join equal to the oracle."""
    assert rows == naive.outputs
    assert (join.outputs, join.comparisons) == (len(naive.outputs), naive.comparisons)
    assert join.pushes.tolist() == naive.pushes
    assert join.pops.tolist() == naive.pops
    assert join.drops.tolist() == naive.dropped
    assert join.shed.tolist() == naive.shed
    assert join.peak == naive.peak
    assert join.importance == pytest.approx(sum(row[2] for row in rows), rel=1e-12)
    bucket_counts = [own.counts for own in naive.histograms[1:]]
    assert join._learner.learnt.histograms[1:].tolist() == bucket_counts  # noqa: SLF001
