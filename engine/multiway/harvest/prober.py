"""Probe batches of tuples on several threads of the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, Protocol

import numpy as np

from engine.multiway.harvest.layout import (
    WHOLE,
    Admitted,
    HarvestRules,
    ProbeBatch,
    Probed,
    ReadPlan,
)
from engine.multiway.predicate import Condition, Predicate, condition
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Integer, Ints, inlined, kernel
from gpu_kernels.multiway.walk import (
    MEMBER,
    STACK_COLUMNS,
    STACK_ROWS,
    begin_walk,
    find_runs,
    next_output,
)
from gpu_kernels.multiway.walk import importance_of as folded

NEXT, STARTED, WRITTEN = range(3)
"""Of `progress`: the tuple to be written next, whether its walk has begun, outputs in the chunk."""


@inlined
def _prepare(
    streams: MultiStreams, rules: HarvestRules, admitted: Admitted, plan: ReadPlan, place: Integer,
    stream: Integer, stack: Ints, bounds: Ints,
) -> None:  # fmt: skip
    begin, end = plan.first[stream], plan.first[stream + 1]
    find_runs(
        int(streams.ts[place]), stream, plan.order[stream], plan.runs[stream],
        plan.youngest[begin:end], plan.oldest[begin:end], rules.window,
        admitted.first, admitted.gone, admitted.number, admitted.ts, bounds,
    )  # fmt: skip
    begin_walk(stack, bounds, plan.runs[stream], plan.order.shape[1])


@inlined
def _step(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, admitted: Admitted,
    plan: ReadPlan, place: Integer, stream: Integer, shred: float, stack: Ints, bounds: Ints,
    comparisons: Ints, passes: Ints,
) -> bool:  # fmt: skip
    own = streams.attributes
    return next_output(
        place, stack, bounds, plan.runs[stream], plan.order.shape[1], rules.clique, shred,
        admitted.place, condition.kind, condition.bound, condition.theta,
        own.code, own.value, own.first, own.item, own.weight, comparisons, passes,
    )  # fmt: skip


@inlined
def write_members(order: Ints, stack: Ints, stream: Integer, place: Integer, members: Ints) -> None:
    """Write the members of the current output, by stream."""
    members[stream] = place
    for hop in range(order.size):
        members[order[hop]] = stack[MEMBER, hop]


@inlined
def importance_of(streams: MultiStreams, rules: HarvestRules, members: Ints) -> Integer:
    """Return the importance of an output, folded in the streams' order."""
    return folded(rules.combine, streams.importance, members, members.size)


@kernel
def count_batch(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, admitted: Admitted,
    plan: ReadPlan, whole: ReadPlan, batch: ProbeBatch, begin: int, end: int, stack: Ints,
    bounds: Ints, members: Ints, out: Probed,
) -> None:  # fmt: skip
    """Write the results of the walks of the tuples ``begin <= k < end`` of a batch.

    Parameters
    ----------
    stack : (4, 8) int64
    bounds : (runs, 2) int64
    members : (m,) int64
        Room to work in, of one thread.
    """
    for k in range(begin, end):
        place, stream, shred = batch.place[k], batch.stream[k], batch.shred[k]
        comparisons, passes = out.comparisons[k], out.passes[k]
        comparisons[:] = 0
        passes[:] = 0
        outputs = 0
        total = 0.0
        own = plan if shred == WHOLE else whole
        _prepare(streams, rules, admitted, own, place, stream, stack, bounds)
        while _step(
            streams, rules, condition, admitted, own, place, stream, shred, stack, bounds,
            comparisons, passes,
        ):  # fmt: skip
            write_members(own.order[stream], stack, stream, place, members)
            outputs += 1
            total += importance_of(streams, rules, members)
        out.outputs[k] = outputs
        out.importance[k] = total


@kernel
def write_batch(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, admitted: Admitted,
    plan: ReadPlan, whole: ReadPlan, batch: ProbeBatch, wanted: Ints, stack: Ints, bounds: Ints,
    idle: Ints, members: Ints, importance: Floats, progress: Ints,
) -> bool:  # fmt: skip
    """Write the outputs of the wanted tuples; False if there is no more room.

    Parameters
    ----------
    wanted : (k,) int64
        Tuples of the batch.
    idle : (m - 1,) int64
        Takes counts that are not read.
    members : (room, m) int64
    importance : (room,) float64
    progress : (3,) int64
    """
    while progress[NEXT] < wanted.size:
        k = wanted[progress[NEXT]]
        place, stream, shred = batch.place[k], batch.stream[k], batch.shred[k]
        own = plan if shred == WHOLE else whole
        if progress[STARTED] == 0:
            _prepare(streams, rules, admitted, own, place, stream, stack, bounds)
            progress[STARTED] = 1
        while True:
            if progress[WRITTEN] == members.shape[0]:
                return False
            if not _step(
                streams, rules, condition, admitted, own, place, stream, shred, stack, bounds,
                idle, idle,
            ):  # fmt: skip
                break
            at = progress[WRITTEN]
            write_members(own.order[stream], stack, stream, place, members[at])
            importance[at] = importance_of(streams, rules, members[at])
            progress[WRITTEN] = at + 1
        progress[NEXT] += 1
        progress[STARTED] = 0
    return True


CHUNK = 1 << 16
"""Outputs that are handed out at once."""
_SLICE = 32
"""Fewest tuples of a batch for which a thread is used."""


class OutputBatch(NamedTuple):
    """A batch of outputs."""

    members: Ints
    """(n, m) int64. Places, by stream."""
    importance: Floats
    """(n,) float64."""


class Prober(Protocol):
    """Probes batches of tuples, on the CPU's threads or on a GPU."""

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return the results of the walks of a batch."""

    def outputs(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of the wanted tuples of a batch, in their order."""


def no_results(tuples: int, hops: int) -> Probed:
    """Return empty results of the walks of some tuples."""
    return Probed(
        np.zeros((tuples, hops), np.int64),
        np.zeros((tuples, hops), np.int64),
        np.zeros(tuples, np.int64),
        np.zeros(tuples),
    )


MakeProber = Callable[[MultiStreams, HarvestRules, Predicate, ReadPlan], Prober]


class Slices:
    """A thread pool that processes slices of a batch."""

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


def in_chunks(hops: int, write: Callable[[Ints, Floats, Ints], bool]) -> Iterator[OutputBatch]:
    """Yield what ``write(members, importance, progress)`` writes, until it returns True."""
    progress = np.zeros(3, np.int64)
    done = False
    while not done:
        members, importance = np.empty((CHUNK, hops + 1), np.int64), np.empty(CHUNK)
        progress[WRITTEN] = 0
        done = write(members, importance, progress)
        if progress[WRITTEN]:
            yield OutputBatch(members[: progress[WRITTEN]], importance[: progress[WRITTEN]])


class CpuProber:
    """Probes on this machine's cores.

    Parameters
    ----------
    streams : MultiStreams
    rules : HarvestRules
    predicate : Predicate
    whole : ReadPlan
        What shredded tuples read, but for the first hop.
    threads : int
    """

    def __init__(
        self, streams: MultiStreams, rules: HarvestRules, predicate: Predicate, whole: ReadPlan,
        threads: int,
    ) -> None:  # fmt: skip
        self._join = streams, rules, condition(predicate)
        self._whole = whole
        self._slices = Slices(threads)

    def _bounds(self, plan: ReadPlan) -> Ints:
        """Return room for the positions of a direction's runs: (runs, 2) int64."""
        runs = max(1, int(np.diff(plan.first).max()), int(np.diff(self._whole.first).max()))
        return np.zeros((runs, 2), np.int64)

    def _room(self, plan: ReadPlan) -> tuple[Ints, Ints]:
        return np.zeros((STACK_ROWS, STACK_COLUMNS), np.int64), self._bounds(plan)

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return the results of the walks of a batch. O(comparisons)."""
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
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Return the outputs of the wanted tuples of a batch, in their order."""
        hops = plan.order.shape[1]
        room, idle = self._room(plan), np.zeros(hops, np.int64)

        def write(members: Ints, importance: Floats, progress: Ints) -> bool:
            return write_batch(
                *self._join, admitted, plan, self._whole, batch, wanted, *room, idle, members,
                importance, progress,
            )  # fmt: skip

        return in_chunks(hops, write)
