"""Probe batches of tuples on several threads of the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from engine.multiway.exact.join import constant_of
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
from engine.multiway.harvest.probing.found import NOT_FOUND, Finder, Found, Slice
from engine.multiway.harvest.probing.matching import matching_of
from engine.multiway.harvest.probing.prober import (
    CHUNK,
    WRITTEN,
    OutputBatch,
    OutputRooms,
    Slices,
    no_results,
)
from engine.multiway.harvest.probing.ranked import RankedMatches
from engine.multiway.harvest.probing.tiled import tiled
from engine.multiway.harvest.probing.walk import walk_on
from engine.multiway.harvest.probing.walk_layout import WalkJoin, new_walk
from engine.multiway.predicate import Predicate, condition
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Ints


class CpuProber:
    """Probes on this machine's cores.

    Parameters
    ----------
    whole : ReadPlan
        What shredded tuples read, but for the first hop.
    """

    def __init__(
        self, streams: MultiStreams, rules: HarvestRules, predicate: Predicate, whole: ReadPlan,
        threads: int,
    ) -> None:  # fmt: skip
        self._streams, self._rules, self._predicate = streams, rules, predicate
        self._whole = whole
        self.condition, self.constant = condition(predicate), constant_of(streams, rules.combine)
        self.tiles = tiled(streams, predicate)
        self.finder: Finder | None = self.tiles
        if predicate.kind == "band":
            self.finder = RankedMatches(streams, rules.window, predicate.bound)
        self.threads, self._slices = threads, Slices(threads)
        self._join: WalkJoin | None = None
        self._plan: ReadPlan | None = None
        self._sent = np.zeros(streams.number, np.int64)
        self._rooms = OutputRooms(streams.number, self.constant, 6 * threads)

    def joined(self, admitted: Admitted, plans: Plans) -> WalkJoin:
        """Return the join by some plans, of windows to which all tuples were admitted."""
        if self._join is None:
            streams, rules = self._streams, self._rules
            lengths = None if self.tiles is None else self.tiles.lengths
            matching = matching_of(streams, rules.window, self._predicate, lengths)
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

        def work(begin: int, end: int) -> None:
            list(self.walked(join, NOT_FOUND, tuples, (begin, end), out, emit=False))

        self._slices.work_off(size, work)
        return out

    def outputs(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of the wanted tuples of the batch counted last, in their order."""
        new = np.bincount(batch.stream, minlength=self._streams.number)
        join = self._with(admitted, plan, new)
        tuples = _tuples_of(ProbeBatch._make(own[wanted] for own in batch))
        out = no_results(wanted.size, plan.order.shape[1])
        return self.walked(join, NOT_FOUND, tuples, (0, wanted.size), out, emit=True)

    def walked(
        self, join: WalkJoin, found: Found, tuples: Tuples, cut: Slice, out: Probed, *, emit: bool
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of some tuples, or count them; write the results of their walks.

        Parameters
        ----------
        found : Found
            `NOT_FOUND` if their matches are to be found as they walk.
        cut : Slice
            Which of them.
        """
        progress = np.array([cut[0], 0, 0])
        walk = new_walk(self._streams, join.plans, found.place if found.begin.size else None)
        room = CHUNK if emit else 0
        done = cut[0] == cut[1]
        while not done:
            members, importance = self._rooms.take(room)
            progress[WRITTEN] = 0
            done = walk_on(
                join, self.condition, found, tuples, cut[1], walk, members, importance, progress,
                out,
            )  # fmt: skip
            rows = int(progress[WRITTEN])
            if 2 * rows > room:
                yield OutputBatch(members[:rows], importance[:rows])
            elif rows:  # a batch that is kept should not keep much more
                yield OutputBatch(members[:rows].copy(), importance[:rows].copy())


def _tuples_of(batch: ProbeBatch) -> Tuples:
    """Return the tuples of a batch: those that are shredded walk by the first of two plans."""
    plan = (batch.shred == WHOLE).astype(np.int64)
    return Tuples(batch.place, batch.stream, plan, batch.shred)
