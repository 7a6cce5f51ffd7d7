"""A partition's replay decided on the task's GPU: lanes are spooled, and decided in groups."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pyarrow as pa

from engine.jobs.replay.gpu_groups import GROUP_ROWS
from engine.lanes.profile import LaneProfile
from engine.lanes.reader import LaneBatch
from engine.policies import age
from engine.replay.ranks import RetentionPlan as Decided
from engine.runtime.device_choice import ON_CPU, ON_GPU, Wanted, attempt, prefer_gpu, wanted_device
from gpu_kernels.devices import Choice, Device
from spark_plugin.lanes import LaneName
from spark_plugin.spool import HELD_BYTES, Spool
from spark_plugin.worker import Keys, Plan, lanes_in, linked, replay_lane, replay_partition, untils

_log = logging.getLogger("winnow")


class _Aside(NamedTuple):
    """A spooled lane."""

    name: LaneName
    spool: Spool
    profile: LaneProfile

    @property
    def rows(self) -> int:
        """Tuples of both sides."""
        return self.profile.rows


def replay_on(
    plan: Plan, device: str, source: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the output tuples of every lane of a partition, decided where `device` says.

    Parameters
    ----------
    plan : Plan
    device : {"auto", "cpu", "gpu"}
    source : iterator of pyarrow.RecordBatch

    Raises
    ------
    DeviceError
        If a GPU is required and there is none, or the work does not fit.
    GpuFaultError
        If the GPU failed and Spark will try the task again.
    """
    wanted = wanted_device(device)
    if wanted.choice.device != ON_GPU or plan.memory == (None, None):
        yield from replay_partition(plan, source)
        return
    lanes = lanes_in(plan, source)
    ended = False
    while not ended:
        with ExitStack() as stack:
            group, ended = _gathered(plan, lanes, stack)
            if group:  # none in an empty partition
                yield from _replayed(plan, wanted, group)


def _gathered(
    plan: Plan, lanes: Iterator[tuple[LaneName, Iterator[LaneBatch]]], stack: ExitStack
) -> tuple[list[_Aside], bool]:
    """Spool lanes until they have `GROUP_ROWS` rows; return whether those were the last.

    Memory: `HELD_BYTES` for all of them together; the rest is on Spark's local disk.
    """
    group: list[_Aside] = []
    rows, room = 0, HELD_BYTES
    for name, batches in lanes:
        spool = stack.enter_context(Spool(room))
        for batch in batches:
            spool.add(batch)
        aside = _Aside(name, spool, spool.profile(plan.windows, untils(plan)))
        group.append(aside)
        rows, room = rows + aside.rows, max(0, room - spool.held)
        if rows >= GROUP_ROWS:
            return group, False
    return group, True


def _replayed(plan: Plan, wanted: Wanted, group: list[_Aside]) -> Iterator[pa.RecordBatch]:
    """Decide a group on the device and follow each lane."""

    def decide(device: Device) -> list[Decided | None]:
        return [*_decided(plan, device, group)]

    wanted = prefer_gpu(wanted, len(group), cores=1)
    plans, choice = attempt(wanted, decide)
    _tell(wanted, choice)
    for lane, found in zip(group, plans or [None] * len(group), strict=True):
        links = linked(plan, lane.spool)
        yield from replay_lane(plan, lane.name, lane.profile, iter(lane.spool), links, found)


def _tell(wanted: Wanted, choice: Choice) -> None:
    """Log that the GPU was not used as intended, since there is no report."""
    if wanted.choice.device == ON_GPU and choice.device == ON_CPU:
        _log.warning("device auto: %s", choice.reason)


def _decided(plan: Plan, device: Device, group: list[_Aside]) -> list[Decided]:
    from engine.device.batches import (  # noqa: PLC0415 - numba's CUDA, only where it is used
        Undecided,
        decided,
    )

    lanes = (
        Undecided(
            _coded(plan, lane.spool), linked(plan, lane.spool), plan.settings, lane.profile,
            plan.budget(lane.name, lane.profile), age.as_arrays(plan.curves),
        )
        for lane in group
    )  # fmt: skip
    return decided(device, [lane.profile for lane in group], lanes)


def _coded(plan: Plan, spool: Spool) -> Iterator[LaneBatch]:
    """Yield a lane with codes for join attributes: one per value throughout the lane."""
    if plan.facts is not None:
        yield from spool
        return
    keys = Keys(plan, None, forgets=False)
    for batch in spool:
        yield LaneBatch(*keys.coded(batch, keys.intern(batch, [])), None, None)
