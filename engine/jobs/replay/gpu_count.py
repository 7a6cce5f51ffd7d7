"""Exact joins counted on a GPU: on which device, and what the arrivals of lanes match."""

from __future__ import annotations

from collections.abc import Sequence

from engine.exact.counted import Matches
from engine.jobs.replay.lane_task import ReplayTask, counted_file
from engine.lanes.reader import whole_lane
from engine.runtime.device_choice import ON_CPU, ON_GPU, Wanted, prefer_gpu_count
from gpu_kernels.devices import Choice, Device


def counting_device(tasks: Sequence[ReplayTask], wanted: Wanted, slots: int) -> Wanted:
    """Return the device that counts the exact joins of a job's lanes.

    Parameters
    ----------
    tasks : sequence of ReplayTask
    wanted : Wanted
        Of the job.
    slots : int
        Tasks that run at once elsewhere, 0 for this machine's cores.
    """
    if wanted.choice.device != ON_GPU or not tasks:
        return wanted
    first = tasks[0]
    if first.files.facts is not None:
        why = "joins through facts are counted on the CPU"
    elif first.approximate and first.settings.policy == "age":
        why = "matches by age are counted on the CPU"
    else:
        return prefer_gpu_count(wanted, sum(task.rows for task in tasks), slots)
    return Wanted(Choice(ON_CPU, why))


def lane_matches(
    device: Device, tasks: Sequence[ReplayTask]
) -> list[tuple[Matches, Matches] | None]:
    """Return what the arrivals of lanes match, None where their exact join need not be counted.

    Parameters
    ----------
    device : Device
    tasks : sequence of ReplayTask
        Of one job, none through facts. The lanes, or their slices, are read whole.

    Raises
    ------
    TooLargeError
        If they do not fit in this machine's memory, or an instant's window not in the device's.
    """
    from engine.device.batches import check_host_memory  # noqa: PLC0415 - loads numba.cuda
    from engine.device.exact import match_lanes  # noqa: PLC0415 - the same

    needed = [_uncounted(task) for task in tasks]
    those = [task for task, need in zip(tasks, needed, strict=True) if need]
    check_host_memory(sum(task.rows for task in those))
    lanes = []
    for task in those:
        between = None if task.slice is None else task.slice.read(task.settings.windows)
        lane = whole_lane(task.files.left, task.files.right, between)
        lanes.append((lane.left, lane.right))
    found = iter(match_lanes(device, lanes, tasks[0].settings))
    return [next(found) if need else None for need in needed]


def _uncounted(task: ReplayTask) -> bool:
    file = counted_file(task)
    return task.counts_exact and (file is None or file.read() is None)
