"""Windows of harvested joins on a device, those of one join or of several."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.harvest.layout import (
    WHOLE,
    Admitted,
    HarvestRules,
    ProbeBatch,
    Probed,
    ReadPlan,
)
from engine.multiway.harvest.probing.prober import OutputBatch
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Attributes, MultiStreams
from engine.runtime.jit import Ints
from gpu_kernels.devices import Device
from gpu_kernels.multiway.predicates import Columns, Condition, Directions, Tuples


class Probe(NamedTuple):
    """Tuples of one of the joins that are to be probed."""

    join: int
    whole: ReadPlan
    """What shredded tuples read, but for the first hop."""
    admitted: Admitted
    """The last of each stream are those of the batch; before them nothing has changed."""
    plan: ReadPlan
    batch: ProbeBatch


class DeviceJoins:
    """Joins of one predicate and as many streams, whose windows lie on a device.

    Streams and attributes are copied once, admitted tuples as they come, plans as they are set.

    Parameters
    ----------
    device : Device
    streams : sequence of MultiStreams
        Of each join.
    rules : HarvestRules
    predicate : Predicate

    Raises
    ------
    TooLargeError
        If the streams do not fit in the device's memory.
    """

    def __init__(
        self, device: Device, streams: Sequence[MultiStreams], rules: HarvestRules,
        predicate: Predicate,
    ) -> None:  # fmt: skip
        from gpu_kernels.multiway.on_device import DeviceWalks  # noqa: PLC0415 - loads numba.cuda

        bound = predicate.bound
        condition = Condition(
            predicate.code, bound * bound if predicate.kind == "distance" else bound,
            predicate.function, rules.clique, rules.combine,
        )  # fmt: skip
        self._m = streams[0].number
        self._base = np.cumsum([0, *(own.ts.size for own in streams)])
        firsts = [own.first[:-1] + at for own, at in zip(streams, self._base, strict=False)]
        first = np.concatenate([*firsts, self._base[-1:]]).astype(np.int64)
        columns = Columns(
            np.concatenate([own.ts for own in streams]),
            np.concatenate([own.importance for own in streams]),
            *_side_by_side([own.attributes for own in streams]),
        )
        self._device = device
        self._walks = DeviceWalks(device, columns, first, rules.window, condition)
        self._sent, self._gone, self._number = np.zeros((3, len(streams), self._m), np.int64)
        self._found = np.zeros(int(self._base[-1]), np.int64)
        none = np.zeros(0, np.int64)
        blank = ReadPlan(
            np.zeros((self._m, self._m - 1), np.int64), np.zeros((self._m, self._m), np.int64),
            np.zeros(self._m + 1, np.int64), none, none,
        )  # fmt: skip
        self._plans = [(blank, blank)] * len(streams)

    def count(self, probes: Sequence[Probe]) -> list[Probed]:
        """Return what the walks of batches come to. O(comparisons).

        Parameters
        ----------
        probes : sequence of Probe
            Of different joins.
        """
        hops = self._m - 1
        self._device.enter()
        self._admit(probes)
        self._set(probes)
        tuples = self._tuples(probes)
        counts, total = self._walks.count(tuples)
        self._found[tuples.place] = counts[:, 2 * hops]
        ends = np.cumsum([own.batch.place.size for own in probes])[:-1]
        found = []
        for number, gained in zip(np.split(counts, ends), np.split(total, ends), strict=True):
            compared, passed = (np.ascontiguousarray(number[:, at : at + hops]) for at in (0, hops))
            found.append(Probed(compared, passed, number[:, 2 * hops].copy(), gained.copy()))
        return found

    def outputs(self, probes: Sequence[Probe]) -> Iterator[tuple[int, OutputBatch]]:
        """Yield which of the probes has outputs, and some of them, in order.

        Their tuples were counted before, with the same plans.
        """
        self._device.enter()
        self._set(probes)
        tuples = self._tuples(probes)
        numbers = self._found[tuples.place]
        sizes = np.cumsum([own.batch.place.size for own in probes])
        ends = np.concatenate([[0], np.cumsum(numbers)])[sizes]
        at = begin = 0
        for members, importance in self._walks.outputs(tuples, numbers):
            done = 0
            while done < importance.size:
                end = min(importance.size, int(ends[at]) - begin)
                if end > done:
                    own = members[done:end] - self._base[probes[at].join]
                    yield at, OutputBatch(own, importance[done:end])
                done = end
                at += done < importance.size
            begin += importance.size

    def _admit(self, probes: Sequence[Probe]) -> None:
        """Copy the admitted tuples that have changed: those of the batch, and any before them."""
        at, place, times = ([np.zeros(0, np.int64)] for _ in range(3))
        for probe in probes:
            own, base = probe.admitted, self._base[probe.join]
            new = np.bincount(probe.batch.stream, minlength=self._m)
            for stream, count in enumerate(new.tolist()):
                number = int(own.number[stream])
                begin = max(0, min(int(self._sent[probe.join, stream]), number - count))
                part = slice(int(own.first[stream]) + begin, int(own.first[stream]) + number)
                at.append(np.arange(part.start, part.stop) + base)
                place.append(own.place[part] + base)
                times.append(own.ts[part])
                self._sent[probe.join, stream] = number
        where = np.concatenate(at)
        if where.size:
            self._walks.admit(where, np.concatenate(place), np.concatenate(times))

    def _set(self, probes: Sequence[Probe]) -> None:
        changed = False
        for own in probes:
            self._gone[own.join], self._number[own.join] = own.admitted.gone, own.admitted.number
            before = self._plans[own.join]
            changed |= before[0] is not own.plan or before[1] is not own.whole
            self._plans[own.join] = own.plan, own.whole
        self._walks.limit(self._gone.ravel(), self._number.ravel())
        if changed:
            flat = [plan for both in self._plans for plan in both]
            order, runs, youngest, oldest = (
                np.concatenate([plan[field] for plan in flat]) for field in (0, 1, 3, 4)
            )
            lengths = np.concatenate([np.diff(plan.first) for plan in flat])
            starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            self._walks.direct(Directions(order, runs, starts, youngest, oldest))

    def _tuples(self, probes: Sequence[Probe]) -> Tuples:
        place, direction = [], []
        for own in probes:
            stream, shred = own.batch.stream, own.batch.shred
            side = 2 * self._m * own.join + np.where(shred == WHOLE, 0, self._m)
            direction.append(stream + side)
            place.append(own.batch.place + self._base[own.join])
        shreds = np.concatenate([own.batch.shred for own in probes])
        return Tuples(np.concatenate(place), np.concatenate(direction), shreds)


def _side_by_side(parts: Sequence[Attributes]) -> Attributes:
    """Return the attributes of all tuples, one join's behind the other's."""
    if len(parts) == 1:
        return parts[0]
    if not any(own.item.size for own in parts):
        first = parts[0].first[:1]
    else:
        before = np.cumsum([0, *(own.item.size for own in parts)])
        starts = [own.first[:-1] + at for own, at in zip(parts, before, strict=False)]
        first = np.concatenate([*starts, before[-1:]]).astype(np.int64)
    code, value, item, weight = (
        np.concatenate([own[field] for own in parts]) for field in (0, 1, 3, 4)
    )
    return Attributes(code, value, first, item, weight)


class GpuProber:
    """Probes on a GPU, a warp a tuple.

    Parameters
    ----------
    joins : DeviceJoins
    join : int
        Which of them it is.
    whole : ReadPlan
        What shredded tuples read, but for the first hop.
    """

    def __init__(self, joins: DeviceJoins, join: int, whole: ReadPlan) -> None:
        self._joins, self._join, self._whole = joins, join, whole

    @classmethod
    def alone(
        cls, streams: MultiStreams, rules: HarvestRules, predicate: Predicate, whole: ReadPlan,
        device: Device,
    ) -> GpuProber:  # fmt: skip
        """Return what probes for a single join."""
        return cls(DeviceJoins(device, [streams], rules, predicate), 0, whole)

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return what the walks of a batch come to. O(comparisons)."""
        probe = Probe(self._join, self._whole, admitted, plan, batch)
        return self._joins.count([probe])[0]

    def outputs(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of the wanted tuples of a batch, in their order."""
        some = ProbeBatch._make(values[wanted] for values in batch)
        for _, part in self._joins.outputs([Probe(self._join, self._whole, admitted, plan, some)]):
            yield part
