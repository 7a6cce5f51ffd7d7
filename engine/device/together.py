"""Harvested joins that run side by side, and whose probes a GPU makes in one launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from threading import Lock

from engine.device.walks import DeviceJoins, Probe
from engine.multiway.harvest.layout import Admitted, HarvestRules, ProbeBatch, Probed, ReadPlan
from engine.multiway.harvest.probing.prober import OutputBatch
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Ints
from engine.runtime.rendezvous import Rendezvous
from gpu_kernels.devices import Device


class JoinsTogether:
    """Harvested joins that threads run side by side, whose probes a GPU makes in one launch.

    Each thread waits with its batch until all others wait, or have ended.

    Parameters
    ----------
    streams : sequence of MultiStreams
        Of each join.
    """

    def __init__(self, streams: Sequence[MultiStreams]) -> None:
        self._streams, self._lock = streams, Lock()
        self._joins: DeviceJoins | None = None
        self._meeting = Rendezvous(self._all, len(streams))

    def prober(
        self, join: int, device: Device, rules: HarvestRules, predicate: Predicate, whole: ReadPlan
    ) -> SharedProber:
        """Return what probes for one of the joins; the first call takes the device's memory."""
        with self._lock:
            if self._joins is None:
                self._joins = DeviceJoins(device, self._streams, rules, predicate)
        return SharedProber(self._meeting, join, whole)

    def left(self) -> None:
        """Say that one of the joins has ended."""
        self._meeting.leave()

    def _all(self, asked: list[tuple[Probe, bool]]) -> list[Probed | list[OutputBatch]]:
        joins = self._joins
        assert joins is not None  # noqa: S101 - who asks has a prober
        found: list[Probed | list[OutputBatch]] = [[] for _ in asked]
        counted, written = (
            [i for i, own in enumerate(asked) if own[1] is w] for w in (False, True)
        )
        if counted:
            probed = joins.count([asked[i][0] for i in counted])
            for i, own in zip(counted, probed, strict=True):
                found[i] = own
        if written:
            parts: list[list[OutputBatch]] = [[] for _ in written]
            for at, part in joins.outputs([asked[i][0] for i in written]):
                parts[at].append(part)
            for i, outputs in zip(written, parts, strict=True):
                found[i] = outputs
        return found


class SharedProber:
    """Probes for one of several joins together with the others, see `JoinsTogether`."""

    def __init__(
        self, meeting: Rendezvous[tuple[Probe, bool], Probed | list[OutputBatch]], join: int,
        whole: ReadPlan,
    ) -> None:  # fmt: skip
        self._meeting, self._join, self._whole = meeting, join, whole

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return what the walks of a batch come to. O(comparisons)."""
        probe = Probe(self._join, self._whole, admitted, plan, batch)
        found = self._meeting.bring((probe, False))
        assert isinstance(found, Probed)  # noqa: S101 - counts were asked for
        return found

    def outputs(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of the wanted tuples of a batch, in their order."""
        some = ProbeBatch._make(values[wanted] for values in batch)
        probe = Probe(self._join, self._whole, admitted, plan, some)
        found = self._meeting.bring((probe, True))
        assert isinstance(found, list)  # noqa: S101 - outputs were asked for
        yield from found
