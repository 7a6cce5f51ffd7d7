"""Batches of tuples probed on the CPU, by several threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np

from engine.multiway.harvest.layout import Admitted, Batch, Plan, Probed, Rules
from engine.multiway.harvest.probe import WRITTEN, count_batch, write_batch
from engine.multiway.meets import condition
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Floats, Ints, MultiStreams
from gpu_kernels.multiway.walk import STACK_COLUMNS, STACK_ROWS

CHUNK = 1 << 16
"""Outputs that are handed out at once."""
_SLICE = 32
"""Tuples of a batch that are worth a thread."""


class Outputs(NamedTuple):
    """Some outputs.

    Attributes
    ----------
    members : (n, m) int64
        Places, by stream.
    importance : (n,) float64
    """

    members: Ints
    importance: Floats


class Prober(Protocol):
    """Whatever probes batches of tuples: the CPU's threads, or a GPU."""

    def count(self, admitted: Admitted, plan: Plan, batch: Batch) -> Probed:
        """Return what the walks of a batch come to."""
        ...

    def outputs(
        self, admitted: Admitted, plan: Plan, batch: Batch, wanted: Ints
    ) -> Iterator[Outputs]:
        """Yield the outputs of the wanted tuples of a batch, in their order."""
        ...


def no_results(tuples: int, hops: int) -> Probed:
    """Return room for what the walks of some tuples come to."""
    return Probed(
        np.zeros((tuples, hops), np.int64),
        np.zeros((tuples, hops), np.int64),
        np.zeros(tuples, np.int64),
        np.zeros(tuples),
    )


class Slices:
    """Slices of a batch, worked off by threads side by side.

    Parameters
    ----------
    threads : int
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def work_off(self, size: int, work: Callable[[int, int], None]) -> None:
        """Call ``work(begin, end)`` for slices that are all of `size` tuples together."""
        parts = min(4 * self._threads, size // _SLICE)
        if self._pool is None or parts < 2:
            work(0, size)
            return
        edges = np.linspace(0, size, parts + 1).astype(np.int64).tolist()
        list(self._pool.map(work, edges[:-1], edges[1:]))


def in_chunks(hops: int, write: Callable[[Ints, Floats, Ints], bool]) -> Iterator[Outputs]:
    """Yield what ``write(members, importance, progress)`` writes, until it says that it is done."""
    progress = np.zeros(3, np.int64)
    done = False
    while not done:
        members, importance = np.empty((CHUNK, hops + 1), np.int64), np.empty(CHUNK)
        progress[WRITTEN] = 0
        done = write(members, importance, progress)
        if progress[WRITTEN]:
            yield Outputs(members[: progress[WRITTEN]], importance[: progress[WRITTEN]])


class CpuProber:
    """Probes on this machine's cores.

    Parameters
    ----------
    streams : MultiStreams
    rules : Rules
    predicate : Predicate
    whole : Plan
        What shredded tuples read, but for the first hop.
    threads : int
    """

    def __init__(
        self, streams: MultiStreams, rules: Rules, predicate: Predicate, whole: Plan, threads: int
    ) -> None:
        self._join = streams, rules, condition(predicate)
        self._whole = whole
        self._slices = Slices(threads)

    def _room(self, plan: Plan) -> tuple[Ints, Ints]:
        runs = max(1, int(np.diff(plan.first).max()), int(np.diff(self._whole.first).max()))
        return np.zeros((STACK_ROWS, STACK_COLUMNS), np.int64), np.zeros((runs, 2), np.int64)

    def count(self, admitted: Admitted, plan: Plan, batch: Batch) -> Probed:
        """Return what the walks of a batch come to. O(comparisons)."""
        size, hops = batch.place.size, plan.order.shape[1]
        out = no_results(size, hops)

        def work(begin: int, end: int) -> None:
            members = np.zeros(hops + 1, np.int64)
            count_batch(
                *self._join, admitted, plan, self._whole, batch, begin, end, *self._room(plan),
                members, out,
            )  # fmt: skip

        self._slices.work_off(size, work)
        return out

    def outputs(
        self, admitted: Admitted, plan: Plan, batch: Batch, wanted: Ints
    ) -> Iterator[Outputs]:
        """Return the outputs of the wanted tuples of a batch, in their order."""
        hops = plan.order.shape[1]
        room, idle = self._room(plan), np.zeros(hops, np.int64)

        def write(members: Ints, importance: Floats, progress: Ints) -> bool:
            return write_batch(
                *self._join, admitted, plan, self._whole, batch, wanted, *room, idle, members,
                importance, progress,
            )  # fmt: skip

        return in_chunks(hops, write)
