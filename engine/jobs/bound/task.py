"""The bound of one lane as a task, and of all lanes together, alone and beside replays."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engine.jobs.bound.found import Bounds, LaneBounds, sum_of
from engine.jobs.bound.lane import WholeLane, facts_of, one_lane
from engine.jobs.frame import JobLanes
from engine.jobs.retention import write_retained
from engine.lanes.reader import LaneFiles
from engine.optimum.bound import BoundSettings, Budget, LaneBound, bound_lane
from engine.optimum.build import pairs_of
from engine.optimum.certificate import Backend
from engine.optimum.dual import CpuDual
from engine.optimum.facts import fact_pairs
from engine.optimum.retained import Retained, states_text
from engine.optimum.settings import Effort, Objective
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.runtime.device_choice import ASKED_FOR_CPU, ON_CPU, ON_GPU, Wanted, attempt
from engine.runtime.executors import Executor, Stages
from engine.runtime.storage.disk import scratch_folder
from engine.runtime.storage.uris import Place
from gpu_kernels.devices import Choice, Device

GPU_ROWS = 1_000_000
"""Tuples of both sides from which on auto finds prices on a GPU: an estimate."""


@dataclass(frozen=True)
class BoundTask:
    """Lanes of which a memory, or one for each side, is to be bounded."""

    files: tuple[LaneFiles, ...]
    """One; several where the hash lanes of a join share its memory."""
    settings: BoundSettings
    budget: Budget
    """K of left and right, UNLIMITED for an exact side; or M of both together."""
    out: Place | None = None
    """Folder for the part of the plan; None for the bounds alone."""
    traced: bool = False
    """Return the plan's path through the memory states as text, for a small case."""
    wanted: Wanted = ASKED_FOR_CPU
    """Where the certificate's prices are found."""

    @property
    def rows(self) -> int:
        """Tuples of both sides of the lanes."""
        return sum(one.rows for one in self.files)


Memory = tuple[tuple[LaneFiles, ...], Budget]
"""The lanes that share a memory, or one for each side, and how many tuples it holds."""


def split_memories(lanes: JobLanes, budgets: Sequence[tuple[int, int]]) -> list[Memory]:
    """Return each lane with memories of its own: K of left and right."""
    return [((files,), budget) for files, budget in zip(lanes.files, budgets, strict=True)]


def one_memory(lanes: JobLanes, memories: Sequence[int]) -> list[Memory]:
    """Return the lanes of each join with one memory for all their tuples: M of each group."""
    groups = (tuple(lanes.files[lane] for lane in group) for group in lanes.groups)
    return [(files, (memory,)) for files, memory in zip(groups, memories, strict=True)]


def bound_lanes(
    memories: Sequence[Memory],
    settings: BoundSettings,
    stages: Stages,
    *,
    out: Place | None = None,
    traced: bool = False,
    wanted: Wanted = ASKED_FOR_CPU,
) -> LaneBounds:
    """Bound all lanes, the seconds allowed shared by their rows, and add up what is proven.

    Parameters
    ----------
    memories : sequence of Memory
        Of all lanes.
    out : Path, optional
        Folder for the plan's parts.
    traced : bool
        Return the plan's paths as text.
    wanted : Wanted
        Where the certificates' prices are found.
    """
    tasks = [
        BoundTask(files, settings, budget, out, traced, _searched(wanted, settings.effort, files))
        for files, budget in memories
    ]
    return sum_of(bound_each(tasks, stages))


def bound_each(tasks: Sequence[BoundTask], stages: Stages) -> list[LaneBounds]:
    """Bound lanes, the seconds allowed shared by their rows."""
    shared = _shared_effort(tasks, stages.executor)
    rows = [task.rows for task in tasks]
    return stages.mapped("bound", bound_files, shared, rows, tells=False)


def _searched(wanted: Wanted, effort: Effort, files: Sequence[LaneFiles]) -> Wanted:
    """Return the CPU where a GPU would have nothing to do, or not enough."""
    if effort.method == "states":
        return Wanted(Choice(ON_CPU, "memory states are not for a GPU"))
    rows = sum(one.rows for one in files)
    if wanted.demanded or wanted.choice.device != ON_GPU or rows >= GPU_ROWS:
        return wanted
    why = f"a certificate of {rows} tuples is found sooner on the CPU; --device gpu uses the GPU"
    return Wanted(Choice(ON_CPU, why))


def bound_files(task: BoundTask) -> LaneBounds:
    """Bound lanes, which are held in memory whole, and write their plan."""
    begun = time.perf_counter()
    lane = one_lane(task.files)
    facts = facts_of(task.files)
    with scratch_folder("winnow-bound-") as scratch:

        def bounded(backend: Backend = CpuDual) -> LaneBound:
            return bound_lane(
                lane.left, lane.right, task.settings, task.budget, facts=facts,
                scratch=scratch, backend=backend,
            )  # fmt: skip

        found, device = attempt(task.wanted, lambda gpu: bounded(_dual_on(gpu)))
        if found is None:
            found = bounded()
    parts: dict[str, int] = {}
    if task.out is not None:
        name = f"part-{task.files[0].lane:05d}.{uuid.uuid4().hex[:8]}.parquet"
        write_retained(task.out / name, (lane.left, lane.right), found.retained)
        parts = {name: sum(until.size for until in found.retained)}
    return LaneBounds(
        found.lower,
        found.upper,
        found.plan,
        found.exact,
        dict(Counter(found.methods)),
        time.perf_counter() - begun,
        parts,
        (_trace(task, lane, found.retained),) if task.traced else (),
        (device,),
    )


def _dual_on(device: Device) -> Backend:
    from engine.device.optimum import dual_on  # noqa: PLC0415 - numba's CUDA, only where it is used

    return dual_on(device)


def _trace(task: BoundTask, lane: WholeLane, retained: Retained) -> str:
    """Return the plan's path as P1's printing procedure has it."""
    settings, facts = task.settings, facts_of(task.files)
    if facts is None:
        pairs = list(pairs_of(lane.left, lane.right, settings.windows, settings.start_ts))
    else:
        pairs = fact_pairs(
            lane.left, lane.right, facts, *settings.windows, start_ts=settings.start_ts
        )
    return states_text(
        lane.left,
        lane.right,
        pairs,
        settings.objective,
        retained,
        after_admission=settings.after_admission,
        keys=lane.keys(task.files),
    )


def bound_settings(settings: ReplaySettings, effort: Effort) -> BoundSettings:
    """Return what a replay's best possible importance is bounded by."""
    return BoundSettings(
        *settings.windows,
        Objective(combine=settings.combine),
        settings.probe,
        settings.start_ts,
        effort,
    )


def _shared_effort(tasks: Sequence[BoundTask], executor: Executor) -> list[BoundTask]:
    """Share the seconds allowed for all tasks, and the cores, among them."""
    at_once = max(1, min(len(tasks), executor.slots or executor.threads))
    cores = max(1, executor.threads // at_once) if not executor.slots else 1
    rows = max(1, sum(task.rows for task in tasks))
    return [
        replace(
            task,
            settings=replace(
                task.settings,
                effort=_part_of(task.settings.effort, at_once * task.rows / rows),
                threads=cores,
            ),
        )
        for task in tasks
    ]


def _part_of(effort: Effort, share: float) -> Effort:
    return replace(effort, seconds=effort.seconds * min(1.0, share))


def bounds_beside(
    lanes: JobLanes,
    settings: BoundSettings,
    budgets: Sequence[tuple[int, int]],
    shared: Sequence[int],
    *,
    pooled: bool = False,
    wanted: Wanted = ASKED_FOR_CPU,
) -> Bounds:
    """Bound the best possible importance within a memory, split as it is and in any way.

    The second is not sought where the split loses nothing: then nothing is better.

    Parameters
    ----------
    settings : BoundSettings
        Their seconds are for both; half of them, or less, for the first.
    budgets : sequence of (int, int)
        K of left and right of each lane.
    shared : sequence of int
        M of both sides of each group of lanes.
    pooled : bool
        Whether it is not split: then there is but one best possible.
    wanted : Wanted
        Where the certificates' prices are found.
    """
    effort = settings.effort
    if pooled:
        best = bound_lanes(one_memory(lanes, shared), settings, lanes.stages, wanted=wanted)
        return Bounds(best, best)
    deadline = time.perf_counter() + effort.seconds
    first = replace(settings, effort=replace(effort, seconds=effort.seconds / 2))
    own = bound_lanes(split_memories(lanes, budgets), first, lanes.stages, wanted=wanted)
    if own.plan == own.exact:
        return Bounds(own, own)
    if UNLIMITED in shared:
        return Bounds(own, None)
    left = max(0.0, deadline - time.perf_counter())
    rest = replace(settings, effort=replace(effort, seconds=left))
    best = bound_lanes(one_memory(lanes, shared), rest, lanes.stages, wanted=wanted)
    return Bounds.of_both(own, best)
