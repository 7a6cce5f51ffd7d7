"""Probe batches of tuples by indexes, on several threads of the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.multiway.harvest.layout import (
    WHOLE,
    Admitted,
    HarvestRules,
    ProbeBatch,
    Probed,
    ReadPlan,
)
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.indexed_walk import (
    ROWS,
    Hops,
    IndexedWalk,
    begin_indexed,
    next_indexed,
)
from engine.multiway.harvest.probing.indexes import Index, Indexes
from engine.multiway.harvest.probing.prober import (
    NEXT,
    STARTED,
    WRITTEN,
    OutputBatch,
    Prober,
    Slices,
    in_chunks,
    no_results,
)
from engine.multiway.predicate import Condition, Predicate, condition
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Ints, kernel
from gpu_kernels.multiway.walk import MEMBER, STACK_COLUMNS, importance_of, write_members


@kernel
def _count_batch(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, admitted: Admitted,
    index: Index, plan: ReadPlan, whole: ReadPlan, batch: ProbeBatch, begin: int, end: int,
    walk: IndexedWalk, members: Ints, out: Probed,
) -> None:  # fmt: skip
    """Write the results of the walks of the tuples ``begin <= k < end`` of a batch."""
    for k in range(begin, end):
        place, stream, shred = batch.place[k], batch.stream[k], batch.shred[k]
        hops = Hops(out.comparisons[k], out.passes[k], out.read[k], out.candidates[k])
        outputs = 0
        total = 0.0
        own = plan if shred == WHOLE else whole
        begin_indexed(streams, rules, admitted, own, place, stream, shred, walk, hops)
        while next_indexed(
            streams, rules, condition, admitted, index, own, place, stream, shred, walk, hops
        ):
            last = walk.stack[MEMBER, hops.passes.size - 1]
            write_members(own.order[stream], walk.stack, stream, place, last, members)
            outputs += 1
            total += importance_of(rules.combine, streams.importance, members, members.size)
        out.outputs[k] = outputs
        out.importance[k] = total


@kernel
def _write_batch(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, admitted: Admitted,
    index: Index, plan: ReadPlan, whole: ReadPlan, batch: ProbeBatch, wanted: Ints,
    walk: IndexedWalk, idle: Hops, members: Ints, importance: Floats, progress: Ints,
) -> bool:  # fmt: skip
    """Write the outputs of the wanted tuples; False if there is no more room."""
    while progress[NEXT] < wanted.size:
        k = wanted[progress[NEXT]]
        place, stream, shred = batch.place[k], batch.stream[k], batch.shred[k]
        own = plan if shred == WHOLE else whole
        if progress[STARTED] == 0:
            begin_indexed(streams, rules, admitted, own, place, stream, shred, walk, idle)
            progress[STARTED] = 1
        while True:
            if progress[WRITTEN] == members.shape[0]:
                return False
            if not next_indexed(
                streams, rules, condition, admitted, index, own, place, stream, shred, walk, idle
            ):
                break
            at = progress[WRITTEN]
            last, made = walk.stack[MEMBER, idle.passes.size - 1], members[at]
            write_members(own.order[stream], walk.stack, stream, place, last, made)
            importance[at] = importance_of(rules.combine, streams.importance, made, made.size)
            progress[WRITTEN] = at + 1
        progress[NEXT] += 1
        progress[STARTED] = 0
    return True


class IndexedProber:
    """Probes on this machine's cores, by indexes on top of the physical basic windows (P4 7).

    Its outputs are those of `CpuProber`, a tuple's in another order. The predicate is one of
    `engine.multiway.harvest.probing.indexes.INDEXED`.

    Parameters
    ----------
    basic_window : int
        b, in ticks.
    """

    def __init__(
        self, streams: MultiStreams, rules: HarvestRules, predicate: Predicate, whole: ReadPlan,
        basic_window: int, threads: int,
    ) -> None:  # fmt: skip
        self._join = streams, rules, condition(predicate)
        self._whole = whole
        self._slices = Slices(threads)
        self._indexes = Indexes(streams, predicate, basic_window)

    def _bounds(self, plan: ReadPlan) -> int:
        """Return the most runs of a direction."""
        return max(1, int(np.diff(plan.first).max()), int(np.diff(self._whole.first).max()))

    def _walk(self, plan: ReadPlan) -> IndexedWalk:
        stack, bounds = np.zeros((ROWS, STACK_COLUMNS), np.int64), (self._bounds(plan), 2)
        reach = np.zeros((plan.order.shape[1], 3), np.int64)
        return IndexedWalk(stack, np.zeros(bounds, np.int64), reach)

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return the results of the walks of a batch.

        The tuples of the batch are the last admitted ones of their streams. O(comparisons).
        """
        size, hops = batch.place.size, plan.order.shape[1]
        new = np.bincount(batch.stream, minlength=admitted.number.size)
        for stream, end in enumerate((admitted.first[:-1] + admitted.number).tolist()):
            self._indexes.update(admitted, stream, end - int(new[stream]))
        room = np.zeros((2, size, hops), np.int64)
        out = no_results(size, hops)._replace(read=room[0], candidates=room[1])

        def work(begin: int, end: int) -> None:
            _count_batch(
                *self._join, admitted, self._indexes.index, plan, self._whole, batch, begin, end,
                self._walk(plan), np.zeros(hops + 1, np.int64), out,
            )  # fmt: skip

        self._slices.work_off(size, work)
        return out

    def outputs(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Return the outputs of the wanted tuples of a batch, in the order of the tuples."""
        hops = plan.order.shape[1]
        walk, idle = self._walk(plan), Hops(*np.zeros((4, hops), np.int64))

        def write(members: Ints, importance: Floats, progress: Ints) -> bool:
            return _write_batch(
                *self._join, admitted, self._indexes.index, plan, self._whole, batch, wanted, walk,
                idle, members, importance, progress,
            )  # fmt: skip

        return in_chunks(hops, write)


def on_cores(
    threads: int, indexed: int | None, streams: MultiStreams, rules: HarvestRules,
    predicate: Predicate, whole: ReadPlan,
) -> Prober:  # fmt: skip
    """Return what probes on threads: with indexes on basic windows of `indexed` ticks, if any."""
    if indexed is not None:
        return IndexedProber(streams, rules, predicate, whole, indexed, threads)
    return CpuProber(streams, rules, predicate, whole, threads)
