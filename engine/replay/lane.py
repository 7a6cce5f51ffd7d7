"""A lane's replay: its join memories, its kernel, and batches of the streams through them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.exact.checks import sealed
from engine.facts.index import FactIndex
from engine.facts.key_links import KeyLinks, without_counts
from engine.lanes.profile import LaneProfile
from engine.policies import Structure
from engine.replay import kernel, layout
from engine.replay.allocate import (
    Ready,
    SlidingWindow,
    drawn,
    empty_keys,
    empty_outputs,
    join_memory,
    parts_of,
    set_tables,
)
from engine.replay.common import Kernels
from engine.replay.layout import Arrivals, Outputs, ReplayRules, Tallies, Window
from engine.replay.ranks import RetentionPlan
from engine.replay.renumber import carry_counts, renumbered
from engine.replay.settings import ReplaySettings, arrival_callback, now_callback
from engine.replay.tournament import check_arrivals
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE, Floats, Ints, Records
from engine.runtime.streams import StreamBatch
from engine.value_model.estimate import estimate_of
from gpu_kernels import pool
from gpu_kernels.philox import PURPOSE_PRIORITY


class LaneReplay:
    """Replays one lane within its budget, batch by batch.

    Parameters
    ----------
    settings : ReplaySettings
    profile : LaneProfile
        Of the whole lane: its peaks bound the memories, and DGL's loss is its mean importance's.
    budget : tuple of int
        K of left and right; UNLIMITED for an exact side.
    curves : tuple of (n,) float64 or None
        Age curves of left and right, for AGE.
    emit : bool
        Write output tuples, or only count them.
    bin_edges : (b,) int64
        Left edges of the time bins of the tallies.
    chunk : int
        Output tuples handed out at once.
    plan : RetentionPlan, optional
        Followed in place of the policy.
    key_links : (KeyLinks, KeyLinks), optional
        What facts join, where an id's partner is not the opposite one of the same id.
    facts : FactIndex, optional
        These facts, for a policy that learns from all that arrives.
    spares : bool, optional
        Given where few tuples are replayed: whether the kernel for all policies may be compiled.

    Notes
    -----
    Memory: O(K_left + K_right + keys + chunk), and the windows' (ts, key) with
    ``estimator="window"``. O(log K) a tuple (see the structures' modules).
    """

    def __init__(
        self,
        settings: ReplaySettings,
        profile: LaneProfile,
        budget: tuple[int, int],
        *,
        curves: tuple[Floats | None, Floats | None] = (None, None),
        emit: bool = True,
        bin_edges: Ints | None = None,
        chunk: int = 262_144,
        plan: RetentionPlan | None = None,
        key_links: tuple[KeyLinks, KeyLinks] | None = None,
        facts: FactIndex | None = None,
        spares: bool | None = None,
    ) -> None:
        structure = settings.structure if plan is None else Structure.PLANNED
        counts = settings.counts and structure is not Structure.PLANNED
        self.settings = settings if counts else replace(settings, estimator="memory")
        rules = self.settings.rules(profile, budget, emit=emit)
        self.rules: ReplayRules = layout.RULES[structure](*rules._replace(structure=int(structure)))
        self._structure, self._plan = structure, plan
        self._partners: tuple[KeyLinks | None, KeyLinks | None] = key_links or (None, None)
        self._linked, self._followed = False, [0, 0]
        self._kernel: Callable[..., bool] = kernel.replay
        terms = settings.terms if structure is Structure.VALUED else None
        self._estimate = None if terms is None else estimate_of(terms, facts)
        buckets = 1 if terms is None else terms.buckets
        self._pool = self.settings.pool(profile, budget)
        if self._pool is not None and plan is not None:
            self._pool = self._pool._replace(calibrated=False)
        counted = self._pool is not None and self._pool.calibrated and not self._pool.corrected
        classes = pool.CLASSES if counted else 0
        kept = partial(join_memory, structure=structure, buckets=buckets, classes=classes)
        self._memories = (
            kept(self.rules.budget_left, curve=curves[0], window=settings.window_left),
            kept(self.rules.budget_right, curve=curves[1], window=settings.window_right),
        )
        self._kernels = Kernels(self.rules, self._pool, profile.rows, spares=spares)
        self._windows = (SlidingWindow(), SlidingWindow())
        self._keys: Records = np.zeros(0, layout.KEY)
        self._edges = edges = np.zeros(1, np.int64) if bin_edges is None else bin_edges
        self.by_key = np.zeros(0, np.int64)
        self.importance_by_key = np.zeros(0)
        self.by_bin = np.zeros(edges.size, np.int64)
        self.importance_by_bin = np.zeros(edges.size)
        self._progress = np.zeros(layout.PROGRESS_COUNTERS, np.int64)
        self._sums = np.zeros(2)
        self._facts = key_links is not None
        self._out = empty_outputs(chunk if emit else 0, facts=self._facts)
        self._at_arrival = arrival_callback(settings.the_policy)
        self._now = now_callback(settings.the_policy, settings.parameters)
        self._draws = settings.draws and not settings.samples and plan is None

    def push(
        self,
        left: StreamBatch,
        left_ids: NDArray[np.int32],
        right: StreamBatch,
        right_ids: NDArray[np.int32],
        keys: int,
        ready: Ready | None = None,
    ) -> Iterator[Outputs]:
        """Replay a batch, cut at instants, and yield its output tuples as they fill the arrays.

        Parameters
        ----------
        left, right : StreamBatch
            In arrival order, all later than what was pushed before.
        left_ids, right_ids : (n,) int32
            Dense key ids, less than `keys`.
        keys : int
            Number of ids given out so far.
        ready : Ready, optional
            What has been computed of the batch: by `ready`, or for several replays at once.

        Yields
        ------
        Outputs
            Views, valid until the next is asked for; none when only counting.
        """
        self._grow(keys)
        ready = ready or self.ready(left, right)
        valued = ready.valued
        draws = ready.draws or (None, None) if valued is None else valued.values
        arrivals = (
            self._arrivals(0, left, left_ids, draws[0]),
            self._arrivals(1, right, right_ids, draws[1]),
        )
        windows = self._slid(arrivals, ready.windows)
        tallies = Tallies(
            self.by_key, self.importance_by_key, self._edges, self.by_bin, self.importance_by_bin
        )
        for part in parts_of(arrivals, valued):
            set_tables(self._memories, part[2])
            done, ends = False, None
            while not done:
                between: tuple[Any, ...] = (
                    *self._memories, self._keys, *self._partners, part[0], part[1], *windows,
                    self._out, tallies, self._progress, self._sums, self._at_arrival, self._now,
                )  # fmt: skip
                ends = ends or self._kernels.choose(part[0].ts.size + part[1].ts.size, between)
                done = self._kernel(ends[0], *between, ends[1])
                if not done and self._progress[layout.WRITTEN]:
                    yield self._emptied()
                elif not done:
                    self._out = empty_outputs(2 * self._out.ts.size + 1024, facts=self._facts)
        if self._progress[layout.WRITTEN]:
            yield self._emptied()

    def _emptied(self) -> Outputs:
        """Return what has been written to the output arrays, which are used again."""
        written = int(self._progress[layout.WRITTEN])
        self._progress[layout.WRITTEN] = 0
        return Outputs._make(column[:written] for column in self._out)

    def ready(self, left: StreamBatch, right: StreamBatch) -> Ready:
        """Return what no join memory changes of a batch, for `push`; batch by batch, in order.

        In any thread: the batches before may still be under way.
        """
        return Ready(
            drawn(PURPOSE_PRIORITY, self.settings.seed, left, right) if self._draws else None,
            valued=None if self._estimate is None else self._estimate.push(left, right),
        )

    def _slid(
        self, arrivals: tuple[Arrivals, Arrivals], ready: tuple[Window, ...]
    ) -> tuple[Window, ...]:
        """Return what the window estimator counts in, with the arrivals."""
        if self.settings.estimator != "window":
            return tuple(window.none for window in self._windows)
        if not ready:
            return tuple(
                self._windows[side].append(a.ts, a.key, self._memories[side])
                for side, a in enumerate(arrivals)
            )
        for memory in self._memories:
            memory.n[layout.WINDOW_AT] = 0
        return ready

    def _grow(self, keys: int) -> None:
        have = self._keys.size // 2
        if keys <= have:
            return
        size = max(keys, 2 * have, 16)
        grown = empty_keys(size)
        grown[: self._keys.size] = self._keys
        self._keys = grown
        if not self._linked:
            self.by_key = np.append(self.by_key, np.zeros(size - have, np.int64))
            self.importance_by_key = np.append(self.importance_by_key, np.zeros(size - have))

    def link(self, links: tuple[KeyLinks, KeyLinks], old_to_new: tuple[Ints, Ints]) -> None:
        """Go on with other links, of an id a tuple; outputs are not counted by key. O(ids + K).

        Parameters
        ----------
        links : (KeyLinks, KeyLinks)
            Of left and right: stretches of ids, or the same with room for match counts of all.
        old_to_new : ((old ids,) int64, (old ids,) int64)
            Of left and right, as `remap` takes it; the same unless `links` are stretches.
        """
        old, self._linked = self._partners[0], True
        if old is not None:
            self._renumber(old_to_new, links[0].ids)
            carry_counts(old, links, old_to_new, self._keys, self.rules.estimator)
        self._partners = links
        in_memory = self.settings.estimator == "memory"
        counted = links if in_memory else tuple(map(without_counts, links))
        left, right = self._memories
        self._memories = left._replace(counted=counted[0]), right._replace(counted=counted[1])

    def remap(self, old_to_new: Ints) -> None:
        """Renumber the key ids, as `KeyTable.keep` does. O(ids + K).

        Parameters
        ----------
        old_to_new : (old ids,) int64
            New id of each old one; -1 for ids without an unexpired tuple, which are forgotten.
        """
        kept = np.flatnonzero(old_to_new[: self._keys.size // 2] >= 0)
        self._renumber((old_to_new, old_to_new), kept.size)
        self.by_key = self.by_key[kept]
        self.importance_by_key = self.importance_by_key[kept]

    def _renumber(self, old_to_new: tuple[Ints, Ints], size: int) -> None:
        both, keyed = (self._memories, self._windows), self._structure is Structure.KEYED
        self._keys = renumbered(self._keys, *both, old_to_new, size, keyed=keyed)

    def _arrivals(
        self, side: int, batch: StreamBatch, ids: NDArray[np.int32], draw: Floats | None
    ) -> Arrivals:
        n = batch.ts.size
        check_arrivals(self._memories[side], n)
        if self._plan is not None:
            begin = self._followed[side]
            self._followed[side] += n
            draw = self._plan[side][begin : begin + n]
        elif draw is None and self._structure is Structure.SAMPLED:
            raise SpecError(
                f"policy {self.settings.policy} ranks tuples by what is drawn from their sizes: "
                "give their priorities (engine.sampling.sizes)"
            )
        elif draw is None:
            draw = np.empty(n)
        return Arrivals(
            sealed(batch.ts, np.int64),
            sealed(batch.row, np.int64),
            sealed(ids, np.int32),
            sealed(batch.importance, np.float64),
            draw,
            np.empty(n),
            np.empty(n, np.int32),
        )

    @property
    def outputs(self) -> int:
        """Output tuples counted so far."""
        return int(self.by_bin.sum())

    @property
    def importance(self) -> float:
        """Their importance."""
        return float(self._sums[0] + self._sums[1])

    @property
    def peaks(self) -> tuple[int, int]:
        """Most tuples held at once, left and right."""
        if self._pool is not None:
            left, right = self._pool.n[pool.NUMBERS, pool.MOST : pool.MOST + 2].tolist()
            return left, right
        return int(self._memories[0].n[layout.PEAK]), int(self._memories[1].n[layout.PEAK])

    @property
    def peak(self) -> int:
        """Most tuples of both sides held at once; of two memories, the sum of their peaks."""
        if self._pool is not None:
            return int(self._pool.n[pool.NUMBERS, pool.MOST_BOTH])
        return sum(self.peaks)

    def retained(self) -> tuple[Ints, Ints]:
        """Return the rows in each join memory now, ascending."""
        return tuple(  # type: ignore[return-value]
            np.sort(memory.slots["row"][memory.slots["seq"] != NONE]) for memory in self._memories
        )
