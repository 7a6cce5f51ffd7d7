"""The cells of a sweep on one lane, replayed at once on a GPU, where each is a lane."""

from __future__ import annotations

from collections.abc import Sequence

from engine.jobs.sweep.cells import Cell, CellResult
from engine.lanes.reader import LaneFiles, lane_batches
from engine.policies import age
from engine.sampling.sizes import Sampling
from gpu_kernels.devices import Device


def replay_cells_on_gpu(
    files: LaneFiles, cells: Sequence[Cell], device: Device
) -> list[CellResult]:
    """Replay a lane under every cell, reading it once; it lies on the device once.

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
    check_host_memory(cells[0].profile.rows)
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
    return [
        CellResult(
            cell.number,
            found.outputs,
            found.importance,
            found.peaks,
            found.peak,
            found.seconds,
        )
        for cell, found in zip(cells, outcomes, strict=True)
    ]
