"""One lane under some cells as a task: a pure function, run here or by a Spark worker.

On a GPU each cell is a lane of the kernels' own.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from engine.jobs.sweep.cells import (
    Cell,
    CellResult,
    Exact,
    ExactCounter,
    count_exact,
    replay_cells,
)
from engine.lanes.reader import LaneFiles, lane_batches
from engine.policies import Structure, age
from engine.replay.settings import ReplaySettings
from engine.runtime.device_choice import ASKED_FOR_CPU, ON_GPU, Wanted, attempt
from engine.runtime.executors import rows_done
from engine.runtime.host import half_of_memory
from engine.sampling.sizes import Sampling
from gpu_kernels.devices import Choice, Device

_BYTES_A_TUPLE = 450
"""Of a join memory, all structures taken together, at most."""
_BYTES_A_KEY = 160
"""Of a key on both sides, in arrays that may be twice as long as needed."""


@dataclass(frozen=True)
class SweepTask:
    """A lane and the cells to replay it under."""

    files: LaneFiles
    cells: tuple[Cell, ...]
    exact: tuple[ReplaySettings, ...]
    """Windows under which to count the exact join."""
    threads: int = 1
    """Cells replayed at once."""
    beside: int = 1
    """Such tasks at once, which share this machine's memory."""
    wanted: Wanted = ASKED_FOR_CPU
    """The device that replays the cells; the exact joins are counted here."""


class SweepOutcome(NamedTuple):
    """What the cells of a task came to: one line a cell, and one a pair of windows."""

    lane: int
    cells: list[CellResult]
    exact: dict[tuple[int, int], Exact]
    """By windows."""
    device: Choice
    """Where the cells were replayed, and why there."""


def sweep_lane(task: SweepTask) -> SweepOutcome:
    """Replay a lane under the cells of a task and count its exact joins.

    The lane is read once, or as often as the cells' memories need to fit into that of the machine.
    With a GPU it is read once for each device, at the same time.

    Raises
    ------
    DeviceError
        If the GPU was demanded and could not.
    """
    counters = [ExactCounter(settings) for settings in task.exact]
    if task.wanted.choice.device != ON_GPU:
        results, device = _on_cpu(task, counters), task.wanted.choice
    else:
        with ThreadPoolExecutor(1) as beside:
            counted = beside.submit(count_exact, task.files, counters, task.threads)
            results, device = attempt(
                task.wanted,
                lambda gpu: replay_cells_on_gpu(task.files, task.cells, gpu),
                lambda: _on_cpu(task, ()),
            )
            counted.result()
    found = {counter.windows: counter.found for counter in counters}
    return SweepOutcome(task.files.lane, results, found, device)


def _on_cpu(task: SweepTask, counters: Sequence[ExactCounter]) -> list[CellResult]:
    results: list[CellResult] = []
    for i, run in enumerate(within(task.cells, half_of_memory() // task.beside)):
        results += replay_cells(task.files, run, task.threads, () if i else counters)
    return results


def replay_cells_on_gpu(
    files: LaneFiles, cells: Sequence[Cell], device: Device
) -> list[CellResult]:
    """Replay a lane under every cell, reading it once; it lies on the device once.

    Parameters
    ----------
    files : LaneFiles
    cells : sequence of Cell
    device : Device

    Returns
    -------
    list of CellResult
        In the order of the cells, each equal to the cell's own replay. The seconds of a launch are
        shared equally by its cells.

    Raises
    ------
    TooLargeError
        If the lane, or a cell, does not fit in the memory of the device or on the way to it.
    """
    from engine.device.batches import (  # noqa: PLC0415 - numba's CUDA, only where it is used
        check_host_memory,
        columns_of,
    )
    from engine.device.replay import (  # noqa: PLC0415 - the same
        Setting,
        load_lanes,
        replay_on_device,
    )
    from engine.device.through_facts import windows_to_link  # noqa: PLC0415 - the same

    if not cells:
        return []
    check_host_memory(sum(side.rows for side in cells[0].profile))
    links = files.links(windows_to_link([cell.settings for cell in cells]))
    (lane,) = columns_of([(lane_batches(files.left, files.right), links)])
    replays = [
        Setting(
            cell.settings,
            cell.profile,
            cell.budget,
            age.as_arrays(cell.curves),
            sampling=cell.sampling or Sampling(),
        )
        for cell in cells
    ]
    outcomes = replay_on_device(device, load_lanes(device, [lane]), replays)
    rows_done(lane.rows * len(cells))
    return [
        CellResult(
            cell.number,
            found.outputs,
            found.importance,
            found.peaks,
            sum(found.peaks),
            found.seconds,
        )
        for cell, found in zip(cells, outcomes, strict=True)
    ]


def cost(cell: Cell) -> float:
    """Return how long a cell takes, roughly, in passes over the lane by a static policy."""
    if cell.settings.structure is Structure.RERANK:
        return 1.0 + sum(_held(cell)) / 20
    return 1.5 if cell.settings.structure in (Structure.KEYED, Structure.DECAY) else 1.0


def _held(cell: Cell) -> tuple[int, int]:
    rules = cell.settings.rules(cell.profile, cell.budget, emit=False)
    return rules.budget_left, rules.budget_right


def _bytes(cell: Cell) -> int:
    keys = sum(
        side.rows if cell.settings.estimator == "history" else side.peak for side in cell.profile
    )
    return _BYTES_A_TUPLE * sum(_held(cell)) + _BYTES_A_KEY * keys


def deal(cells: Sequence[Cell], groups: int) -> list[list[Cell]]:
    """Deal cells over groups that take about as long as each other, by their cost.

    Cells of one policy, neighbours in the grid, go to different groups.
    """
    dealt: list[list[Cell]] = [[] for _ in range(groups)]
    least = [(0.0, group) for group in range(groups)]
    for cell in sorted(cells, key=lambda cell: -cost(cell)):
        spent, group = heapq.heappop(least)
        dealt[group].append(cell)
        heapq.heappush(least, (spent + cost(cell), group))
    return [group for group in dealt if group]


def within(cells: Sequence[Cell], room: int) -> list[list[Cell]]:
    """Cut cells into runs whose memories fit into `room` bytes, a run a pass over the lane."""
    runs: list[list[Cell]] = [[]]
    taken = 0
    for cell in cells:
        size = _bytes(cell)
        if runs[-1] and taken + size > room:
            runs.append([])
            taken = 0
        runs[-1].append(cell)
        taken += size
    return runs
