"""Harvested joins by indexes, run beside an oracle that counts what indexes do by brute force."""

from __future__ import annotations

from typing import Any

import naive_grubjoin as oracle
import numpy as np
from grubjoin_cases import MEETS, PURPOSES, Configure, ages_of, tuples_of
from multiway_cases import PREDICATES, random_streams
from naive_multijoin import Member, pair_meets

from engine.multiway.harvest.adapt import setting_of
from engine.multiway.harvest.indexed_prober import IndexedProber
from engine.multiway.harvest.indexes import entries_of
from engine.multiway.harvest.learner import Indexed, Learnt
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.prober import MakeProber
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import MultiStreams, windows_of
from engine.runtime.randomness import uniforms


def looked_up(kind: str, x: Any, u: Any) -> int:
    """Return how often the index gives u to x, by the definition of its entries."""
    if kind == "equi":
        return int(x == u)
    if kind == "band":
        return int(abs(x - u) <= PREDICATES["band"].bound)
    if kind == "distance":
        return int((x[0] - u[0]) ** 2 <= PREDICATES["distance"].bound ** 2)
    return len(set(x) & set(u))


class IndexedOperator(oracle.Operator):
    """The oracle, but for what it counts: searches in physical basic windows, and candidates."""

    kind = ""

    def __init__(self, streams: Any, *rest: Any, **given: Any) -> None:
        super().__init__(streams, *rest, **given)
        m = len(streams)
        self.every: list[list[Member]] = [[] for _ in range(m)]
        self.candidates = np.zeros((m, m - 1))

    def _adapt(self) -> None:
        super()._adapt()
        if self.conserve:
            self.every = [
                [u for u in window if not self._is_beyond_horizon(u)] for window in self.every
            ]

    def _runs(self, x: Member, j: int, shredded: bool) -> list[list[Member]]:
        """Return the tuples of neighbouring logical basic windows that are read."""
        other = self.orders[x.stream][j]
        in_reach = [u for u in self.held[other] if self._is_in_reach(u, x)]
        n = oracle.basic_windows(self.windows[other], self.basic)
        count, ranking = self.setting.counts[x.stream][j], self.setting.rankings[x.stream][j]
        chosen = set(range(n)) if shredded else set(ranking[:count])
        runs: list[list[Member]] = []
        for k in range(n):
            if k in chosen:
                if k - 1 not in chosen:
                    runs.append([])
                runs[-1] += [u for u in in_reach if min(n - 1, (x.ts - u.ts) // self.basic) == k]
        return runs

    def _window(self, u: Member) -> int:
        return (u.ts - self.t0) // self.basic

    def _searched(self, x: Member, j: int, shredded: bool) -> int:
        """Return the comparisons of one partial result at a hop."""
        other = self.orders[x.stream][j]
        made = 0
        for run in self._runs(x, j, shredded):
            for window in {self._window(u) for u in run}:
                there = [u for u in self.every[other] if self._window(u) == window]
                entries = sum(len(u.value) if self.kind == "inner" else 1 for u in there)
                searches = len(x.value) if self.kind == "inner" else 1
                made += searches * entries.bit_length()
                made += sum(looked_up(self.kind, x.value, u.value) for u in there)
        return made

    def _probe(self, x: Member) -> int:
        i, hops = x.stream, len(self.orders[x.stream])
        sampled = self.omega > 0 and self.draws(oracle.SHRED, i, x.row) < self.omega
        shredded = sampled and self.z < 1
        made = 0
        if shredded or 0 not in self.setting.counts[i]:
            partial = [[x]]
            for j in range(hops):
                read = self._read(x, j, shredded)
                made += len(partial) * self._searched(x, j, shredded)
                given = sum(looked_up(self.kind, x.value, u.value) for u in read)
                if sampled:
                    self.hop_comparisons[i][j] += len(partial) * len(read)
                    self.candidates[i, j] += len(partial) * given
                partial = [
                    [*bound, u]
                    for bound in partial
                    for u in read
                    if all(
                        pair_meets(self.meets, u, v)
                        for v in (bound if self.graph == "clique" else [x])
                    )
                ]
                if sampled:
                    self.hop_passes[i][j] += len(partial)
            for members in partial:
                self._emit(members, sampled)
        self.every[i].append(x)
        return made


class ConfigureIndexed(Configure):
    """Makes settings by the engine's rule, with the candidates that the oracle has counted."""

    def of(self, operator: IndexedOperator, entries: Any) -> None:
        """Take note of who counts, and of the entries of a tuple of each stream."""
        self.operator, self.entries = operator, entries

    def __call__(self, state: oracle.State) -> oracle.Setting:
        """Return what is in force from the adaptation on."""
        windows, orders, settings = self.fixed
        self.comparisons += state.comparisons
        self.passes += state.passes
        pushes = np.array(state.pushes)
        self.rates = np.where(pushes > 0, pushes / state.interval, self.rates)
        histograms = np.array([own.counts for own in state.histograms], np.float64)
        learnt = Learnt(
            histograms, self.comparisons, self.passes, self.rates, ages_of(state),
            Indexed(self.operator.candidates, self.entries),
        )  # fmt: skip
        chosen = setting_of(learnt, windows, orders, state.z, settings)
        rankings = [[hop.tolist() for hop in hops] for hops in chosen.rankings]
        return oracle.Setting(chosen.counts.tolist(), rankings)


def prober_of(basic_window: int, threads: int) -> MakeProber:
    """Return what makes probers of a number of threads."""

    def make(*own: Any) -> IndexedProber:
        streams, rules, predicate, whole = own
        return IndexedProber(streams, rules, predicate, whole, basic_window, threads)

    return make


def rows_of(join: GrubJoin, streams: MultiStreams) -> list[Any]:
    """Run a join; return its outputs as the oracle has them."""
    rows = []
    for part in join.run():
        latest = streams.ts[part.members].max(axis=1)
        for places, ts, importance in zip(part.members, latest, part.importance, strict=True):
            rows.append((tuple(streams.row[places].tolist()), int(ts), float(importance)))
    return sorted(rows, key=lambda row: (row[1], row[0]))


def both(
    seed: int, kind: str, sizes: tuple[int, ...], *, graph: str = "clique", combine: str = "min",
    start: int | None = None, keep: list[float] | None = None, window: int = 12, span: int = 60,
    threads: int = 1, **given: Any,
) -> tuple[GrubJoin, list[Any], oracle.Harvest]:  # fmt: skip
    """Run a join in both ways; return the engine's, its rows, and the oracle's."""
    streams = random_streams(seed, sizes, kind, span=span)
    m = len(sizes)
    rng = np.random.default_rng(seed)
    orders = [rng.permutation([j for j in range(m) if j != i]).tolist() for i in range(m)]
    windows = windows_of(rng.integers(max(0, window - 5), window + 6, m).tolist())
    settings = HarvestSettings(forget=1.0, buckets=2, probe="index", **given)
    join = GrubJoin(
        streams, windows, PREDICATES[kind], settings, orders, graph=graph, combine=combine,
        start_ts=start, keep=keep,
        prober=prober_of(settings.basic_window, threads),
    )  # fmt: skip
    rows = rows_of(join, streams)
    draws = {
        name: [uniforms(settings.seed, own, i, streams.row[streams.part(i)]) for i in range(m)]
        for name, own in PURPOSES.items()
    }
    configure = ConfigureIndexed(windows, orders, settings)
    operator = IndexedOperator(
        tuples_of(streams, kind), [("ticks", int(w)) for w in windows.size], MEETS[kind], graph,
        orders=orders, basic=settings.basic_window, capacity=settings.capacity,
        per_second=settings.per_second, buffer=settings.buffer if settings.capacity else None,
        delta=settings.adapt_every, gamma=settings.boost, throttle=settings.throttle,
        omega=settings.shred, buckets=join._learner.learnt.histograms.shape[1],  # noqa: SLF001
        draws=lambda purpose, stream, row: float(draws[purpose][stream][row]), keep=keep,
        conserve=settings.admission == "conserve",
        configure=configure if settings.shedding == "harvest" else None,
        combine=combine, start_ts=start,
    )  # fmt: skip
    operator.kind = kind
    configure.of(operator, entries_of(streams, PREDICATES[kind]))
    naive = operator.run()
    learnt = join._learner.learnt  # noqa: SLF001
    assert learnt.indexed is not None
    assert (
        learnt.comparisons.tolist() == (configure.comparisons + operator.hop_comparisons).tolist()
    )
    assert learnt.indexed.candidates.tolist() == operator.candidates.tolist()
    return join, rows, naive
