"""Plans of lanes, decided on a GPU and followed by the CPU, which writes the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from engine.device.columns import (
    HOST_BYTES_A_PARTNER,
    HOST_BYTES_A_ROW,
    LaneColumns,
    SideColumns,
    lane_columns,
)
from engine.device.replay import Curves, Outcome, Setting, load_lanes, replay_on_device
from engine.facts.links import Links
from engine.lanes.profile import LaneProfile
from engine.lanes.reader import LaneBatch
from engine.replay.ranks import RetentionPlan
from engine.replay.settings import ReplaySettings
from engine.runtime.host import half_of_memory
from engine.runtime.jit import Floats, Ints
from gpu_kernels.devices import Device, TooLargeError
from gpu_kernels.replay.layout import FOREVER


class Undecided(NamedTuple):
    """A lane whose replay is to be decided."""

    batches: Iterable[LaneBatch]
    """The whole lane, in arrival order, cut between instants."""
    links: Links | None
    """What joins its tuples through facts."""
    settings: ReplaySettings
    profile: LaneProfile
    budget: tuple[int, int]
    """K of left and right."""
    curves: Curves = (None, None)
    """tuple of (n,) float64 or None. For AGE."""


def decided(
    device: Device, profiles: Sequence[LaneProfile], lanes: Iterable[Undecided]
) -> list[RetentionPlan]:
    """Return the plans of lanes whose streams are read one after the other.

    Parameters
    ----------
    device : Device
    profiles : sequence of LaneProfile
        Of every lane, to find out before any is read whether they fit.
    lanes : iterable of Undecided

    Raises
    ------
    TooLargeError
        If they do not fit in this machine's memory, or a lane not in the device's.
    """
    check_host_memory(sum(side.rows for profile in profiles for side in profile))
    replays: list[Setting] = []

    def read() -> Iterable[tuple[Iterable[LaneBatch], Links | None]]:
        for lane in lanes:
            replays.append(Setting(lane.settings, lane.profile, lane.budget, lane.curves))
            yield lane.batches, lane.links

    columns = columns_of(read())
    return plans_on_device(device, columns, replays)


def check_host_memory(rows: int) -> None:
    """Find out before reading whether lanes of so many tuples fit in this machine's memory.

    Raises
    ------
    TooLargeError
        If they would take more than half of it.
    """
    room = half_of_memory()
    if rows * HOST_BYTES_A_ROW > room:
        raise TooLargeError(
            f"{rows} rows take {rows * HOST_BYTES_A_ROW} bytes of this machine's memory on their "
            f"way to the device and {room} are allowed; use --device cpu, or more --lanes"
        )


def columns_of(lanes: Iterable[tuple[Iterable[LaneBatch], Links | None]]) -> list[LaneColumns]:
    """Read lanes whole.

    Parameters
    ----------
    lanes : iterable of (batches, Links or None)
        One after the other, and what joins their tuples through facts.

    Raises
    ------
    TooLargeError
        If what joins them takes more than half of this machine's memory.
    """
    room = half_of_memory()
    found: list[LaneColumns] = []
    taken = 0
    for batches, links in lanes:
        if links is not None:
            taken += HOST_BYTES_A_PARTNER * links.key_links[0].other.size
            if taken > room:
                raise TooLargeError(
                    f"what joins the lanes takes {taken} bytes of this machine's memory on its "
                    f"way to the device and {room} are allowed; use --device cpu, or more --lanes"
                )
        found.append(lane_columns(((batch.left, batch.right) for batch in batches), links))
    return found


def plans_on_device(
    device: Device, lanes: Sequence[LaneColumns], replays: Sequence[Setting]
) -> list[RetentionPlan]:
    """Decide on a device who stays until when.

    Parameters
    ----------
    device : Device
    lanes : sequence of LaneColumns
    replays : sequence of Setting
        One for each lane.

    Raises
    ------
    TooLargeError
        If a lane does not fit in device memory.
    """
    loaded = load_lanes(device, lanes)
    settled = [replay._replace(lane=i) for i, replay in enumerate(replays)]
    outcomes = replay_on_device(device, loaded, settled, record=True)
    return [_plan(lane, outcome) for lane, outcome in zip(lanes, outcomes, strict=True)]


def _plan(lane: LaneColumns, outcome: Outcome) -> RetentionPlan:
    instants = np.union1d(lane.left.ts, lane.right.ts)
    sides = (lane.left, outcome.until[0]), (lane.right, outcome.until[1])
    left, right = (_leaves(side, until, instants) for side, until in sides)
    return RetentionPlan(left, right)


def _leaves(side: SideColumns, until: Ints, instants: Ints) -> Floats:
    """Return the number of the instant at which each tuple leaves."""
    if until.size == 0:
        return np.full(side.ts.size, np.inf)
    numbers = (np.searchsorted(instants, until) + 1).astype(np.float64)
    return np.where(until == FOREVER, np.inf, numbers)
