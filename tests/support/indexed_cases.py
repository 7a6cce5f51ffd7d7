"""Harvested joins by indexes, run beside an oracle that counts what indexes do by brute force."""

from __future__ import annotations

from typing import Any

import grubjoin_cases
import naive_grubjoin as oracle
import numpy as np
from grubjoin_cases import Configure, Done
from multiway_cases import PREDICATES
from naive_multijoin import Member, pair_meets

from engine.multiway.harvest.learning.learner import Indexed, Learnt
from engine.multiway.harvest.probing.indexed_prober import IndexedProber
from engine.multiway.harvest.probing.indexes import entries_of
from engine.runtime.jit import Floats


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
        if self.conserve and self.knows():
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

    def _learnt(self, histograms: Floats, ages: Floats) -> Learnt:
        indexed = Indexed(self.operator.candidates, self.entries)
        return super()._learnt(histograms, ages)._replace(indexed=indexed)


def both(seed: int, kind: str, sizes: tuple[int, ...], **given: Any) -> Done:
    """Run a join in both ways, as `grubjoin_cases.both` has it."""
    made: list[Any] = []

    def prober(*own: Any) -> IndexedProber:
        return IndexedProber(*own[:-1], given["basic_window"], own[-1])

    def ready(operator: IndexedOperator, configure: ConfigureIndexed, streams: Any) -> None:
        operator.kind = kind
        configure.of(operator, entries_of(streams, PREDICATES[kind]))
        made.extend((operator, configure))

    found = grubjoin_cases.both(
        seed, kind, sizes, make=prober, operator_of=IndexedOperator,
        configure_of=ConfigureIndexed, ready=ready, probe="index", **{"scores": "ages"} | given,
    )  # fmt: skip
    operator, configure = made
    learnt = found[0]._learner.learnt  # noqa: SLF001
    assert learnt.indexed is not None
    assert (
        learnt.comparisons.tolist() == (configure.comparisons + operator.hop_comparisons).tolist()
    )
    assert learnt.indexed.candidates.tolist() == operator.candidates.tolist()
    return found


def both_by(probe: str, seed: int, kind: str, sizes: tuple[int, ...], **given: Any) -> Done:
    """Run a join by scans or by the index."""
    if probe == "index":
        return both(seed, kind, sizes, **given)
    return grubjoin_cases.both(seed, kind, sizes, **given)
