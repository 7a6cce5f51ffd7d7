"""Probe batches of tuples on several threads of the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from engine.multiway.exact.join import constant_of
from engine.multiway.harvest.found import NOT_FOUND, Finder
from engine.multiway.harvest.indexes import ranges
from engine.multiway.harvest.layout import (
    WHOLE,
    Admitted,
    HarvestRules,
    Plans,
    ProbeBatch,
    Probed,
    ReadPlan,
    Tuples,
    alone,
    together,
)
from engine.multiway.harvest.matching import matching_of
from engine.multiway.harvest.prober import (
    NEXT,
    OutputBatch,
    Slices,
    in_chunks,
    no_results,
    room_for,
)
from engine.multiway.harvest.ranked import RankedMatches
from engine.multiway.harvest.tiled import tiled
from engine.multiway.harvest.walk import walk_on
from engine.multiway.harvest.walk_layout import WalkJoin, new_walk
from engine.multiway.predicate import Predicate, condition
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Ints

KEPT = 1 << 19
"""Most outputs that a thread keeps; those of the tuples behind are found again."""
_FIRST = 4
"""Outputs of a tuple for which there is room at first."""


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


def _grown(values: Any, found: Any) -> Any:  # noqa: ANN401 - arrays
    """Return an array of other length with the same first values."""
    kept = min(found.shape[0], values.shape[0])
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
        self._streams, self._rules, self._predicate = streams, rules, predicate
        self._whole = whole
        self.condition, self.constant = condition(predicate), constant_of(streams, rules.combine)
        self.finder: Finder | None = tiled(streams, predicate)
        if predicate.kind == "band":
            self.finder = RankedMatches(streams, rules.window, predicate.bound)
        self.threads, self._slices = threads, Slices(threads)
        self._join: WalkJoin | None = None
        self._plan: ReadPlan | None = None
        self._sent = np.zeros(streams.number, np.int64)
        self._kept: list[_Kept] = []
        self._each = float(_FIRST)
        self._places: Ints = self._sent[:0]

    def joined(self, admitted: Admitted, plans: Plans) -> WalkJoin:
        """Return the join by some plans, of windows to which all tuples were admitted."""
        if self._join is None:
            streams, rules = self._streams, self._rules
            matching = matching_of(streams, rules.window, self._predicate)
            matching.position[:] = admitted.place
            self._join = WalkJoin(
                streams, rules, self.constant,
                matching, admitted, plans,
            )  # fmt: skip
        return self._join._replace(plans=plans)

    def _with(self, admitted: Admitted, plan: ReadPlan, new: Ints) -> WalkJoin:
        """Return the join with the positions of admitted tuples up to date; the last are new."""
        if self._join is None:
            self._join = self.joined(admitted, alone(self._whole))
        for stream, count in enumerate(new.tolist()):
            number = int(admitted.number[stream])
            at = int(admitted.first[stream])
            begin = at + min(int(self._sent[stream]), number - count)
            places = admitted.place[begin : at + number]
            self._join.matching.position[places] = np.arange(begin, at + number)
            self._sent[stream] = number
        if plan is not self._plan:
            self._plan, self._join = (
                plan,
                self._join._replace(plans=together([alone(self._whole), alone(plan)])),
            )
        return self._join

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return the results of the walks of a batch.

        The tuples of the batch are the last admitted ones of their streams. O(outputs), and
        O(log n) for each run and block of values in it.
        """
        size, hops = batch.place.size, plan.order.shape[1]
        join = self._with(admitted, plan, np.bincount(batch.stream, minlength=hops + 1))
        out, tuples = no_results(size, hops), _tuples_of(batch)
        kept: dict[int, _Kept] = {}

        def work(begin: int, end: int) -> None:
            walk, progress = new_walk(self._streams, join.plans), np.array([begin, 0, 0])
            room = min(KEPT, max(1, int(self._each * (end - begin))))
            members, importance = room_for(room, hops + 1, join.constant)
            last = end
            while not walk_on(
                join,
                self.condition,
                NOT_FOUND,
                tuples,
                end,
                walk,
                members,
                importance,
                progress,
                out,
            ):
                room = 0 if importance.size >= KEPT else 2 * importance.size
                if room == 0:
                    last = int(progress[NEXT])
                    kept[begin] = _kept(begin, out.outputs[begin:last], members, importance)
                more = room_for(room, hops + 1, join.constant)
                members, importance = _grown(members, more[0]), _grown(importance, more[1])
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
        join, hops = self._with(admitted, plan, new), plan.order.shape[1]
        tuples = _tuples_of(ProbeBatch._make(own[wanted] for own in batch))
        walk, out = new_walk(self._streams, join.plans), no_results(wanted.size, hops)

        def write(members: Ints, importance: Floats, progress: Ints) -> bool:
            return walk_on(
                join,
                self.condition,
                NOT_FOUND,
                tuples,
                wanted.size,
                walk,
                members,
                importance,
                progress,
                out,
            )

        return in_chunks(hops, write, join.constant)


def _tuples_of(batch: ProbeBatch) -> Tuples:
    """Return the tuples of a batch: those that are shredded walk by the first of two plans."""
    plan = (batch.shred == WHOLE).astype(np.int64)
    return Tuples(batch.place, batch.stream, plan, batch.shred)
