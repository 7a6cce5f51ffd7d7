"""Replay lanes on a device, in as many launches as its memory requires."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.compiler import Kernel
from gpu_kernels.devices import Array, Device, TooLargeError
from gpu_kernels.pool import Pool
from gpu_kernels.replay import layout
from gpu_kernels.replay.kernel import replay_kernel
from gpu_kernels.replay.layout import FOREVER, PolicyFunctions
from gpu_kernels.replay.plan import (
    MOST_ROWS,
    LaneBatch,
    Need,
    Variant,
    choose_variant,
    plan_batches,
)
from gpu_kernels.replay.pool_values import pool_columns
from gpu_kernels.replay.priorities import KINDS

_COLUMNS = (
    ("ts", np.int64), ("key", np.int32), ("importance", np.float64), ("row", np.int64),
    ("peers", np.int32), ("twins", np.int32),
)  # fmt: skip
BYTES_A_ROW = sum(np.dtype(dtype).itemsize for _, dtype in _COLUMNS)
MOST_MATCHES = 2**31 - 1
"""Pairs of one key are counted by int32."""


class PartnerColumns(NamedTuple):
    """KeyLinks of all lanes' keys through facts, see `LaneStreams`; int64, int32, int64."""

    first: NDArray[np.int64]
    other: NDArray[np.int32]
    end: NDArray[np.int64]

    @property
    def bytes(self) -> int:
        """Of device memory."""
        return sum(column.nbytes for column in self)


_NO_PARTNERS = PartnerColumns(np.zeros(1, np.int64), np.zeros(1, np.int32), np.zeros(1, np.int64))


class Tabulated(NamedTuple):
    """Columns of a tabulated policy, see `layout.LaneStreams`; float64, by row but the table."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    m_column: NDArray[np.float64]
    m_table: NDArray[np.float64]


NOT_TABULATED = Tabulated(*(np.zeros(1),) * 4)


class Lanes(NamedTuple):
    """Lanes to replay under one policy."""

    integers: NDArray[np.int64]
    """(lanes, len(LANE_INTEGERS)) int64. Without the offsets in device memory, which are set here;
    ``right_pending`` is the left side's largest instant."""
    floats: NDArray[np.float64]
    """(lanes, len(LANE_FLOATS)) float64."""
    needs: Sequence[Need]
    tables: NDArray[np.float64]
    """(n,) float64. Age tables."""
    pools: Sequence[Pool] = ()
    """Of each lane, where both sides have one memory."""


class Replayed(NamedTuple):
    """The results of the lanes."""

    found: NDArray[np.int64]
    """(lanes, 4) int64. Outputs, without those between arrivals of one instant, and the peaks of
    left, right and both together."""
    importance: NDArray[np.float64]
    """(lanes,) float64. Of those outputs."""
    until: list[NDArray[np.int64]]
    """list of (left rows + right rows,) int64. For lanes that record it: the instant at which each
    tuple was dropped, its own for one never admitted, FOREVER for one that stayed until its expiry.
    Facts that end drop a tuple too. Empty for the others."""
    seconds: NDArray[np.float64]
    """(lanes,) float64. Duration of its launch and transfers, divided equally among the launch's
    lanes, without compilation."""


class DeviceStreams:
    """Columns of streams in device memory, for as many replays as there are.

    Parameters
    ----------
    device : Device
    columns : dict of str to (rows,) array
        ts, key, importance, row, peers and twins (see `layout.LaneStreams`).
    partners : PartnerColumns, optional
        What facts join, where keys are not joined by being equal.

    Raises
    ------
    TooLargeError
        If they do not fit.
    """

    def __init__(
        self,
        device: Device,
        columns: dict[str, NDArray[Any]],
        partners: PartnerColumns | None = None,
    ) -> None:
        rows = columns["ts"].size
        size = rows * BYTES_A_ROW
        needs = f"{rows} rows"
        if partners is not None:
            size += partners.bytes
            needs += f" and {partners.other.size} partners of their keys"
        if rows > MOST_ROWS:
            raise TooLargeError(f"{rows} rows are more than {MOST_ROWS}; use --device cpu")
        if size > device.free_bytes():
            raise TooLargeError(
                f"{needs} take {size} bytes of device memory and {device.free_bytes()} are "
                "free; use --device cpu, or more --lanes"
            )
        self.rows = rows
        self.arrays = [
            device.upload(columns[name].astype(dtype, copy=False) if rows else np.zeros(1, dtype))
            for name, dtype in _COLUMNS
        ]
        self.through_facts = partners is not None
        joined: tuple[NDArray[Any], ...] = partners or _NO_PARTNERS
        for column in joined:
            self.arrays.append(device.upload(column if column.size else np.zeros(1, column.dtype)))


def replay_lanes(
    device: Device,
    policy: PolicyFunctions,
    streams: DeviceStreams,
    lanes: Lanes,
    tabulated: Tabulated = NOT_TABULATED,
    choose: Callable[[int], Variant] = choose_variant,
) -> Replayed:
    """Replay lanes under one policy (contract, sections 2 and 3).

    Parameters
    ----------
    device : Device
    policy : PolicyFunctions
    streams : DeviceStreams
    lanes : Lanes
    tabulated : Tabulated
    choose : callable
        The variant for a number of slots.

    Raises
    ------
    TooLargeError
        If a lane does not fit in device memory.
    """
    count = len(lanes.needs)
    result = Replayed(
        np.zeros((count, layout.FOUND), np.int64),
        np.zeros(count),
        [np.empty(0, np.int64)] * count,
        np.zeros(count),
    )
    shared = [device.upload(array) for array in (*tabulated, _filled(lanes.tables))]
    for batch in plan_batches(lanes.needs, device.free_bytes(), KINDS, choose):
        kernel = replay_kernel(policy, *batch.variant, facts=streams.through_facts)
        _replay_batch(device, kernel, [*streams.arrays, *shared], lanes, batch, result)
        device.release()
    return result


def _filled(array: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the array, or one zero: kernels get no empty arrays."""
    return array if array.size else np.zeros(1)


def _offsets(sizes: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    ends = np.cumsum(np.array(sizes, np.int64))
    return ends - np.array(sizes, np.int64), int(ends[-1])


def _replay_batch(
    device: Device, kernel: Kernel, columns: list[Array], lanes: Lanes, batch: LaneBatch,
    result: Replayed,
) -> None:  # fmt: skip
    begun = time.perf_counter()
    chosen = list(batch.lanes)
    needs = [lanes.needs[lane] for lane in chosen]
    integers = lanes.integers[chosen]
    variant = batch.variant
    integers[:, layout.COUNTERS_AT], counters = _offsets([2 * KINDS * n.keys for n in needs])
    pendings, pending = _offsets([n.pending for n in needs])
    integers[:, layout.SLOTS_AT], slots = _offsets([n.slots for n in needs])
    begins, kept = _offsets([n.kept for n in needs])
    lefts = integers[:, layout.END] - integers[:, layout.BEGIN]
    records = np.array([n.kept > 0 for n in needs])
    integers[:, layout.UNTIL] = np.where(records, begins, -1)
    integers[:, layout.UNTIL + 1] = np.where(records, begins + lefts, -1)
    integers[:, layout.PENDING] = pendings
    integers[:, layout.PENDING + 1] += pendings
    integers[:, layout.SLOTS + 1] = integers[:, layout.BUDGET]
    if variant.in_shared:
        slots = 1
    pools = pool_columns([lanes.pools[lane] for lane in chosen] if lanes.pools else [])
    until = device.zeros(max(kept, 1), np.int64)
    until += FOREVER
    found = device.zeros((len(chosen), layout.FOUND), np.int64)
    importance = device.zeros(len(chosen), np.float64)
    arguments = [
        device.upload(integers),
        device.upload(lanes.floats[chosen]),
        *columns,
        device.zeros(max(counters, 1), np.int32),
        device.empty(max(slots, 1), np.float64),
        device.empty(max(slots, 1), np.float64),
        device.empty(max(slots, 1), np.int32),
        device.empty(max(slots, 1), np.int32),
        batch.slots,
        *(device.upload(array) for array in pools),
        device.empty(max(pending, 1), np.float64),
        device.empty(max(pending, 1), np.float64),
        until,
        found,
        importance,
    ]
    compiling = time.perf_counter()
    kernel.prepare(*arguments)
    begun += time.perf_counter() - compiling
    blocks = -(-len(chosen) // variant.per_block)
    shared = layout.SLOT_BYTES * variant.per_block * batch.slots if variant.in_shared else 0
    device.launch(kernel, blocks, variant.per_block * variant.width, arguments, shared)
    result.found[chosen] = device.download(found)
    if not lanes.pools:
        peaks = result.found[:, layout.LEFT_PEAK : layout.PEAK]
        result.found[chosen, layout.PEAK] = peaks[chosen].sum(axis=1)
    result.importance[chosen] = device.download(importance)
    if kept:
        recorded = device.download(until)
        for lane, first, need in zip(chosen, begins, needs, strict=True):
            result.until[lane] = recorded[first : first + need.kept].copy()
    result.seconds[chosen] = (time.perf_counter() - begun) / len(chosen)
