"""A lane's sample: its memories, its kernel, and batches of the streams through them."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from engine.exact.checks import check_windows, first_counted, sealed
from engine.replay.settings import UNLIMITED
from engine.runtime.jit import NONE, Floats, Ints, Records
from engine.runtime.streams import StreamBatch
from engine.sampling import kernel, layout, uniform
from engine.sampling.layout import (
    SampleArrivals,
    SampledOutputs,
    SampleRules,
    empty_samples,
    first_samples,
    grown,
    no_memory,
)
from engine.sampling.lost import ALWAYS, fewer, merged
from engine.sampling.memory import ticks_held
from gpu_kernels.combine import COMBINES

METHODS = ("eq-cluster", "pps-cluster", "bottom-k", "uniform")
_FEWEST = 1024
"""Tuples that a memory has room for at first."""


class LaneSampler:
    """Samples one lane's join output, batch by batch (P5 4).

    Parameters
    ----------
    method : {"eq-cluster", "pps-cluster", "bottom-k", "uniform"}
    windows : (int, int)
        Closed windows of left and right, in ticks.
    combine : {"min", "sum", "product", "max", "mean"}
        How members' importance makes an output's.
    start_ts : int, optional
        Outputs before it are not handed out.
    seed : int
        Any integer of 64 bits; a draw depends on it, the side and the row alone.
    budget : (int, int)
        Most tuples held of each side (bottom-k); UNLIMITED: none is evicted.
    p : float
        The sampling fraction (uniform).
    chunk : int
        Most output tuples handed out at once.
    exact_measures : bool
        Whether tuples of measure 0 have no matches and, with uniform, none has more than n(x).

    Notes
    -----
    Memory: O(tuples held + keys + chunk). eq-cluster, pps-cluster: O(1) a tuple and output;
    bottom-k: O(log K); uniform: O(1) a tuple, and one walk over a key's tuples for each of its
    arrivals that has an output.

    Examples
    --------
    >>> batch = StreamBatch(np.arange(3), np.arange(3), np.zeros(3, np.int64), np.ones(3))
    >>> sampler = LaneSampler("eq-cluster", (9, 9))
    >>> ids, certain = np.zeros(3, np.int32), np.ones(3)
    >>> [out.ts.size for out in sampler.push(batch, ids, batch, ids, 1, (certain, certain))]
    [9]
    """

    def __init__(
        self,
        method: str,
        windows: tuple[int, int],
        *,
        combine: str = "min",
        start_ts: int | None = None,
        seed: int = 0,
        budget: tuple[int, int] = (UNLIMITED, UNLIMITED),
        p: float = 1.0,
        chunk: int = 262_144,
        exact_measures: bool = False,
    ) -> None:
        check_windows(*windows)
        ranked = method == "bottom-k"
        self.method = method
        self._rules = SampleRules(
            ranked=ranked,
            zeros_lose=not exact_measures,
            combine=COMBINES.index(combine),
            start_ts=first_counted(start_ts),
            window_left=windows[0],
            window_right=windows[1],
            budget_left=budget[0] if ranked else UNLIMITED,
            budget_right=budget[1] if ranked else UNLIMITED,
            seed=np.uint64(seed & 0xFFFFFFFFFFFFFFFF),
            weight=1.0 / p,
            log_q=math.log1p(-p) if p < 1.0 else -math.inf,
        )
        slot = layout.THINNED if method == "uniform" else layout.CLUSTER
        self._memories = [no_memory(slot), no_memory(slot)]
        self._keys: Records = np.zeros(0, layout.KEY)
        self._progress = np.zeros(layout.PROGRESS_COUNTERS, np.int64)
        self._out = empty_samples(chunk)
        missing = method == "uniform" and (p < 1.0 or not exact_measures)
        self._lost: list[Ints] = [ALWAYS] if missing else []

    def push(
        self,
        left: StreamBatch,
        left_ids: NDArray[np.int32],
        right: StreamBatch,
        right_ids: NDArray[np.int32],
        keys: int,
        measures: tuple[Floats, Floats],
    ) -> Iterator[SampledOutputs]:
        """Sample a batch, cut at instants, and yield its output tuples as they fill the arrays.

        Parameters
        ----------
        left, right : StreamBatch
            In arrival order, all later than what was pushed before.
        left_ids, right_ids : (n,) int32
            Dense key ids, less than `keys`.
        keys : int
            Number of ids given out so far.
        measures : ((n,) float64, (n,) float64)
            One a tuple. eq-cluster, pps-cluster: its probability to be retained; bottom-k: its
            size, 0 for those never retained; uniform: n(x), the most matches it can have.

        Yields
        ------
        SampledOutputs
            Views, valid until the next is asked for.
        """
        self._make_keys(keys)
        for side, batch in enumerate((left, right)):
            room = np.empty((batch.ts.size, 2), np.int64)
            self._memories[side] = self._memories[side]._replace(lost=room)
        a = _arrivals(left, left_ids, measures[0])
        b = _arrivals(right, right_ids, measures[1])
        run = uniform.sample if self.method == "uniform" else kernel.sample
        while True:
            stopped = run(
                self._rules, self._memories[0], self._memories[1], self._keys, a, b, self._out,
                self._progress,
            )  # fmt: skip
            if stopped in (layout.FULL, layout.DONE):
                written = int(self._progress[layout.WRITTEN])
                self._progress[layout.WRITTEN] = 0
                if written:
                    yield first_samples(self._out, written)
                if stopped == layout.DONE:
                    self._keep_lost()
                    return
            else:
                self._make_room(stopped - layout.CROWDED_LEFT)

    def _keep_lost(self) -> None:
        """Take over when outputs of this batch's tuples may be missing."""
        new = [memory.lost[: memory.n[layout.LOST]] for memory in self._memories]
        for memory in self._memories:
            memory.n[layout.LOST] = 0
        if sum(map(len, new)):
            self._lost = [fewer(merged([*self._lost, *new]))]

    def _make_room(self, side: int) -> None:
        """Give a memory twice its slots, but no more than its budget."""
        have = self._memories[side].free.size
        budget = (self._rules.budget_left, self._rules.budget_right)[side]
        capacity = min(max(2 * have, _FEWEST), budget)
        self._memories[side] = grown(self._memories[side], capacity, ranked=self._rules.ranked)

    def _make_keys(self, keys: int) -> None:
        have = self._keys.size // 2
        if keys > have:
            more = np.zeros(2 * (max(keys, 2 * have, _FEWEST) - have), layout.KEY)
            for name in ("first", "last", "arrival"):
                more[name] = NONE
            self._keys = np.concatenate([self._keys, more])

    def remap(self, old_to_new: Ints) -> None:
        """Renumber the key ids, as `KeyTable.keep` does. O(ids + tuples held).

        Parameters
        ----------
        old_to_new : (old ids,) int64
            New id of each old one; -1 for ids without an unexpired tuple, which are forgotten.
        """
        kept = np.flatnonzero(old_to_new[: self._keys.size // 2] >= 0)
        for memory in self._memories:
            held = memory.slots["seq"] != NONE
            memory.places["key"][held] = old_to_new[memory.places["key"][held]]
        self._keys = self._keys.reshape(-1, 2)[kept].reshape(-1).copy()

    @property
    def peaks(self) -> tuple[int, int]:
        """Most tuples held at once, left and right."""
        return int(self._memories[0].n[layout.PEAK]), int(self._memories[1].n[layout.PEAK])

    @property
    def held(self) -> tuple[float, float]:
        """Ticks held, summed over the tuples of left and right, up to the last instant pushed.

        Over the ticks of the streams: the mean number of tuples held.
        """
        now = int(self._progress[layout.NOW])
        left, right = (float(ticks_held(memory, now)) for memory in self._memories)
        return left, right

    @property
    def lost(self) -> Ints:
        """First and last ticks of the times when outputs may be missing: (n, 2) int64, merged."""
        return merged(self._lost)

    @property
    def residents(self) -> tuple[int, int]:
        """Tuples held now, left and right."""
        return int(self._memories[0].n[layout.COUNT]), int(self._memories[1].n[layout.COUNT])

    def retained(self) -> tuple[Ints, Ints]:
        """Return the rows held now, ascending, left and right."""
        left, right = (
            np.sort(memory.places["row"][memory.slots["seq"] != NONE]) for memory in self._memories
        )
        return left, right


def _arrivals(batch: StreamBatch, ids: NDArray[np.int32], measure: Floats) -> SampleArrivals:
    """Return a batch as the kernels read it."""
    return SampleArrivals(
        sealed(batch.ts, np.int64),
        sealed(batch.row, np.int64),
        sealed(ids, np.int32),
        sealed(batch.importance, np.float64),
        sealed(measure, np.float64),
        np.empty(batch.ts.size, np.int32),
    )
