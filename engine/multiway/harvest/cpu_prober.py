"""Probe batches of tuples on several threads of the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from engine.multiway.harvest.indexes import ranges
from engine.multiway.harvest.layout import (
    WHOLE,
    Admitted,
    HarvestRules,
    ProbeBatch,
    Probed,
    ReadPlan,
)
from engine.multiway.harvest.matching import Matching, matching_of
from engine.multiway.harvest.prober import (
    NEXT,
    STARTED,
    WRITTEN,
    OutputBatch,
    Slices,
    in_chunks,
    no_results,
)
from engine.multiway.harvest.walk import Walk, begin_walk, go_on, new_walk
from engine.multiway.predicate import Condition, Predicate, condition
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Ints, kernel

KEPT = 1 << 19
"""Most outputs that a thread keeps; those of the tuples behind are found again."""
_FIRST = 4
"""Outputs of a tuple for which there is room at first."""


@kernel
def _count(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, matching: Matching,
    admitted: Admitted, plan: ReadPlan, whole: ReadPlan, batch: ProbeBatch, end: int, walk: Walk,
    members: Ints, importance: Floats, progress: Ints, out: Probed,
) -> bool:  # fmt: skip
    """Write the results of the walks of the tuples before `end` of a batch, and their outputs.

    Parameters
    ----------
    members, importance : (room, m) int64, (room,) float64
        Without room, nothing is written there.
    progress : (3,) int64
        `NEXT` is the first tuple.

    Returns
    -------
    bool
        False if there is no more room.
    """
    for k in range(progress[NEXT], end):
        own = plan if batch.shred[k] == WHOLE else whole
        if progress[STARTED] == 0:
            begin_walk(own, batch.place[k], batch.stream[k], walk)
            out.importance[k] = 0.0
            progress[STARTED] = 1
        progress[WRITTEN], out.importance[k] = go_on(
            streams, rules, condition, admitted, matching, own, batch, k, walk, members, importance,
            progress[WRITTEN], out.importance[k],
        )  # fmt: skip
        if walk.depth[0] >= 0:
            progress[NEXT] = k
            return False
        progress[STARTED] = 0
        for hop in range(walk.passes.size):
            out.comparisons[k, hop] = walk.comparisons[hop]
            out.passes[k, hop] = walk.passes[hop]
        out.outputs[k] = walk.passes[walk.passes.size - 1]
    progress[NEXT] = end
    return True


@kernel
def _write(
    streams: MultiStreams, rules: HarvestRules, condition: Condition, matching: Matching,
    admitted: Admitted, plan: ReadPlan, whole: ReadPlan, batch: ProbeBatch, wanted: Ints,
    walk: Walk, members: Ints, importance: Floats, progress: Ints,
) -> bool:  # fmt: skip
    """Write the outputs of the wanted tuples, (k,) of the batch; False if there is no more room."""
    for at in range(progress[NEXT], wanted.size):
        k = wanted[at]
        own = plan if batch.shred[k] == WHOLE else whole
        if progress[STARTED] == 0:
            begin_walk(own, batch.place[k], batch.stream[k], walk)
            progress[STARTED] = 1
        progress[WRITTEN], _ = go_on(
            streams, rules, condition, admitted, matching, own, batch, k, walk, members, importance,
            progress[WRITTEN], 0.0,
        )  # fmt: skip
        if walk.depth[0] >= 0:
            progress[NEXT] = at
            return False
        progress[STARTED] = 0
    progress[NEXT] = wanted.size
    return True


class _Kept(NamedTuple):
    """The outputs of some tuples of a batch, which were written as they were counted."""

    begin: int
    kept: int
    """`begin`, `kept`: the first of these tuples; their number."""
    first: Ints
    """(kept + 1,) int64. Where the outputs of each begin."""
    members: Ints
    importance: Floats
    """`members`, `importance`: As `OutputBatch` has them."""


def _kept(begin: int, outputs: Ints, members: Ints, importance: Floats) -> _Kept:
    first = np.concatenate([[0], np.cumsum(outputs)])
    return _Kept(begin, outputs.size, first, members[: first[-1]], importance[: first[-1]])


def _taken(kept: _Kept, wanted: Ints) -> Iterator[OutputBatch]:
    """Yield the outputs of some of these tuples, all at once."""
    begins, ends = kept.first[wanted - kept.begin], kept.first[wanted - kept.begin + 1]
    number = int((ends - begins).sum())
    if number:
        whole = number == ends[-1] - begins[0]
        rows = slice(begins[0], ends[-1]) if whole else ranges(begins, ends - begins)
        yield OutputBatch(kept.members[rows], kept.importance[rows])


def _grown(values: Any, room: int) -> Any:  # noqa: ANN401 - an array
    """Return an array of other length whose first values are the same."""
    found = np.empty((room, *values.shape[1:]), values.dtype)
    kept = min(room, values.shape[0])
    found[:kept] = values[:kept]
    return found


class CpuProber:
    """Probes on this machine's cores.

    Outputs are kept as they are counted, as far as `KEPT` goes, so that few walks are made again.

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
        self._streams, self._predicate = streams, predicate
        self._join = streams, rules, condition(predicate)
        self._whole = whole
        self._slices = Slices(threads)
        self._matching: Matching | None = None
        self._sent = np.zeros(streams.number, np.int64)
        self._kept: list[_Kept] = []
        self._each = float(_FIRST)
        self._places: Ints = self._sent[:0]

    def _walk(self, plan: ReadPlan) -> Walk:
        runs = max(plan.youngest.size, self._whole.youngest.size)
        return new_walk(self._streams, plan.order.shape[1], runs)

    def _positions(self, admitted: Admitted, new: Ints) -> Matching:
        """Bring the positions of admitted tuples up to date; the last of each stream are new."""
        if self._matching is None:
            self._matching = matching_of(self._streams, self._predicate)
        for stream, count in enumerate(new.tolist()):
            number = int(admitted.number[stream])
            at = int(admitted.first[stream])
            begin = at + min(int(self._sent[stream]), number - count)
            places = admitted.place[begin : at + number]
            self._matching.position[places] = np.arange(begin, at + number)
            self._sent[stream] = number
        return self._matching

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return the results of the walks of a batch.

        The tuples of the batch are the last admitted ones of their streams. O(outputs), and
        O(log n) for each run and block of values in it.
        """
        size, hops = batch.place.size, plan.order.shape[1]
        matching = self._positions(admitted, np.bincount(batch.stream, minlength=hops + 1))
        out = no_results(size, hops)
        kept: dict[int, _Kept] = {}

        def work(begin: int, end: int) -> None:
            walk, progress = self._walk(plan), np.array([begin, 0, 0])
            room = min(KEPT, max(1, int(self._each * (end - begin))))
            members, importance = np.empty((room, hops + 1), np.int64), np.empty(room)
            last = end
            while not _count(
                *self._join, matching, admitted, plan, self._whole, batch, end, walk, members,
                importance, progress, out,
            ):  # fmt: skip
                room = 0 if importance.size >= KEPT else 2 * importance.size
                if room == 0:
                    last = int(progress[NEXT])
                    kept[begin] = _kept(begin, out.outputs[begin:last], members, importance)
                members, importance = _grown(members, room), _grown(importance, room)
            if last == end:
                kept[begin] = _kept(begin, out.outputs[begin:end], members, importance)

        self._slices.work_off(size, work)
        self._kept = [kept[begin] for begin in sorted(kept)]
        self._places = batch.place
        # half as many again as the tuples of this batch had
        self._each = max(_FIRST, 1.5 * float(out.outputs.sum()) / max(1, size))
        return out

    def outputs(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of the wanted tuples of the batch counted last, in their order."""
        size = batch.place.size
        known = np.array_equal(self._places[:size], batch.place)
        ends = [*(own.begin for own in self._kept[1:]), size]
        for own, end in zip(self._kept, ends, strict=True) if known else ():
            low, middle, high = np.searchsorted(wanted, [own.begin, own.begin + own.kept, end])
            yield from _taken(own, wanted[low:middle])
            if middle < high:
                yield from self._again(admitted, plan, batch, wanted[middle:high])
        if not known:
            yield from self._again(admitted, plan, batch, wanted)

    def _again(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of tuples whose outputs were not kept, in chunks."""
        new = np.bincount(batch.stream, minlength=self._streams.number)
        matching, walk = self._positions(admitted, new), self._walk(plan)

        def write(members: Ints, importance: Floats, progress: Ints) -> bool:
            return _write(
                *self._join, matching, admitted, plan, self._whole, batch, wanted, walk, members,
                importance, progress,
            )  # fmt: skip

        return in_chunks(plan.order.shape[1], write)
