"""What a cluster must be given for a replay, from what a profile knows of its streams."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from engine.device.columns import HOST_BYTES_A_ROW
from engine.jobs.exact.key_totals import COUNTS, REMEMBERED
from engine.jobs.replay.gpu_groups import GROUP_ROWS
from engine.jobs.size.dealing import Lanes, lanes_chosen, lanes_expected, speed_up
from engine.lanes.reader import BATCH_ROWS
from engine.lanes.split import SPLIT_BYTES, rows_a_split
from engine.models.profile.model import ArrivalProfile
from engine.options.budget import Amount, Amounts
from engine.options.deciding import FALLBACK
from engine.options.streams import REFERENCES, check_reference
from engine.policies import Policy, Structure, policy_named
from engine.replay.allocate import join_memory
from engine.replay.layout import KEY
from engine.runtime.errors import SpecError
from engine.runtime.key_table import IDLE
from gpu_kernels.replay.layout import SLOT_BYTES

Pair = tuple[float, float]
MIB = 1 << 20
GIB = 1 << 30

START = 290 * MIB
"""Resident memory of a Python worker with the kernels in it; measured, see docs/size.md."""
COMPILE = 400 * MIB
"""More while kernels are compiled, once for a kind of processor; measured likewise."""
WRITE = 130 * MIB
"""More where columns of the archives are read along and written; measured likewise."""
READ_BYTES = 400
"""Of memory for each row of a batch, from the file to the last kernel; measured likewise."""
SPLIT_ROW = 160
"""Of memory for each row that a preparation sorts, beside three copies of what is written."""
RING_BYTES, HEAD_BYTES, NAME_BYTES = 24, 16, 128
"""Of a tuple's slot in the exact count; of a key there; of a key in the table of ids, at most."""
HEAP = 768 * MIB
"""Of an executor's or driver's JVM: tasks go through Python, and the JVM holds next to nothing."""
_GROWS = 1.5  # an array that grows is there twice for a moment, half as long at first
_PAYLOAD, _BATCHES = 2, 5.5  # copies of the payload of a window and of a batch at most
_ON_DEVICE = 36 + 8  # columns of a tuple, and until when it stays
_HEADROOM = 0.9  # of device memory


@dataclass(frozen=True)
class Wanted:
    """A replay and the cluster it is for.

    Raises
    ------
    SpecError
        If a number is invalid, or the policy is unknown or samples.
    """

    memory: Amounts = (None, None)
    """As of a replay; (None, None) for an exact join."""
    policy: str = FALLBACK
    lanes: int | None = None
    """None: as many as keep the cores busy."""
    cores: int = 8
    """Tasks that are to run at once."""
    executor_cores: int = 4
    """Of them, those of one executor."""
    row_bytes: Pair = (0.0, 0.0)
    """(float, float). Of the columns of left and right that are written, decoded; 0 for ids
    alone."""
    gpu_memory: float | None = None
    """GiB of one GPU; None without."""
    reference: str = REFERENCES[0]
    """{"exact", "none"}. Whether the exact join is counted beside a replay."""

    def __post_init__(self) -> None:
        policy_named(self.policy)
        check_reference(self.reference, exact=self.exact)
        for name in ("lanes", "cores", "executor_cores"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= 100_000:
                option = name.replace("_", "-")
                raise SpecError(f"--{option} is {value}; give a whole number from 1 to 100000")
        if not all(0 <= own < math.inf for own in self.row_bytes):
            given = ",".join(f"{own:g}" for own in dict.fromkeys(self.row_bytes))
            raise SpecError(f"--row-bytes is {given}; give bytes, 0 or more")
        if self.gpu_memory is not None and not 0 < self.gpu_memory < math.inf:
            raise SpecError(f"--gpu-memory is {self.gpu_memory}; give the GiB of a GPU, above 0")

    @property
    def exact(self) -> bool:
        """Whether neither side has a budget."""
        return self.memory == (None, None)


def slot_bytes(policy: Policy) -> float:
    """Return the bytes that a policy's join memory takes a tuple of its budget."""
    if policy.structure is Structure.VALUED:
        sizes = [_bytes_of(join_memory(k, policy.structure, None, 0, 50)) for k in (1024, 2048)]
    else:
        sizes = [_bytes_of(join_memory(k, policy.structure, None, 0)) for k in (1024, 2048)]
    return (sizes[1] - sizes[0]) / 1024


def _bytes_of(memory: Any) -> int:  # noqa: ANN401 - a named tuple of arrays
    arrays = zip(memory._fields, memory, strict=True)
    others = ("links", "classes", "counted")  # cells as other types, and links of the streams
    return sum(int(array.nbytes) for name, array in arrays if name not in others)


def worker_memory(profile: ArrivalProfile, wanted: Wanted, lanes: Lanes) -> dict[str, float]:
    """Return what a Python worker takes at its peak, bytes by what for.

    ``peak`` is of the lane that takes most, and of a preparation if that takes more; the others
    are of the replay of that lane. Compiling comes on top, once.
    """
    found = [_lane_memory(profile, wanted, lanes, at) for at in range(lanes.keys.size)]
    most = max(found, key=lambda parts: sum(parts.values()))
    sizes = [stream.rows for stream in profile.streams]
    rows = min(rows_a_split(sum(sizes)), max(sizes))
    prepare = START + rows * SPLIT_ROW + 3 * min(rows * max(wanted.row_bytes), SPLIT_BYTES)
    return {
        "start": float(START),
        **most,
        "prepare": prepare,
        "peak": max(START + sum(most.values()), prepare),
    }


def _lane_memory(
    profile: ArrivalProfile, wanted: Wanted, lanes: Lanes, at: int
) -> dict[str, float]:
    """Return what a lane's replay holds: exact count, budget, keys, payload, a batch."""
    alone = lanes.keys.size == 1
    peaks = [
        _fluctuating(stream.peak, float(lanes.shares[side, at]), alone=alone)
        for side, stream in enumerate(profile.streams)
    ]
    rows = [s.rows * float(lanes.shares[i, at]) for i, s in enumerate(profile.streams)]
    batch = [min(BATCH_ROWS * own / max(1.0, sum(rows)), own) for own in rows]
    slots = 2 ** math.ceil(
        math.log2(max(2048.0, 2 * max(map(sum, zip(peaks, batch, strict=True)))))
    )
    exact, compares = wanted.exact, wanted.reference == REFERENCES[0]
    budget = sum(
        _budget(amount, peak, stream.peak, alone=alone)
        for amount, peak, stream in zip(wanted.memory, peaks, profile.streams, strict=True)
    )
    keys = float(lanes.keys[at])
    ids = min(keys, max(IDLE, 2 * min(keys, sum(peaks))) + sum(batch))
    a_key = HEAD_BYTES + NAME_BYTES + 2 * 32 + (0 if exact else 2 * KEY.itemsize + 2 * 16)
    idle = min(keys, REMEMBERED) if keys > IDLE and compares else 0.0
    payload = sum(
        width * (_PAYLOAD * peak + _BATCHES * arriving)
        for width, peak, arriving in zip(wanted.row_bytes, peaks, batch, strict=True)
    )
    return {
        "exact_count": _GROWS * RING_BYTES * slots if compares else 0.0,
        "join_memory": 0.0 if exact else budget * slot_bytes(policy_named(wanted.policy)),
        "keys": a_key * ids + 2 * COUNTS.itemsize * idle,
        "payload": payload + (WRITE if payload else 0),
        "batch": READ_BYTES * sum(batch),
    }


def _fluctuating(peak: int, share: float, *, alone: bool) -> float:
    """Return a lane's peak: its share, and four standard deviations more, for it comes and goes."""
    own = peak * share
    return float(peak) if alone else min(float(peak), own + 4 * math.sqrt(own))


def _budget(amount: Amount | None, peak: float, whole: int, *, alone: bool) -> float:
    """Return the tuples that a lane has room for; a lane worth more gets twice its part."""
    if amount is None:
        return 0.0
    if amount.share is not None:
        part = float(amount.share) * peak
    else:
        part = (amount.tuples or 0) * (1.0 if alone else peak / max(1, whole))
    return part if alone else min(peak, 2 * part)


def sized(profile: ArrivalProfile, wanted: Wanted) -> dict[str, Any]:
    """Return what a replay needs of a cluster; docs/size.md explains every field.

    Returns
    -------
    dict
        As JSON holds it. Memory is in MiB, rounded up.
    """
    number = wanted.lanes or lanes_chosen(profile, wanted.cores)
    lanes = lanes_expected(profile, number)
    rows = np.array([stream.rows for stream in profile.streams], np.float64)
    shares = rows @ lanes.shares / max(1.0, rows.sum())
    each = min(wanted.cores, wanted.executor_cores)
    executors = -(-wanted.cores // each)
    worker = worker_memory(profile, wanted, lanes)
    gpu = None if wanted.gpu_memory is None else _gpu(profile, wanted, lanes)
    python = worker["peak"] + COMPILE + (0.0 if gpu is None else gpu["host_bytes"])
    overhead = each * _mib(python) + 128
    counts = profile.frequencies.counts
    heaviest = int((counts.left + counts.right).max(initial=0)) / max(1.0, float(rows.sum()))
    return {
        "lanes": {
            "count": number,
            "heaviest_lane": float(shares.max()),
            "heaviest_key": heaviest,
            "speed_up": speed_up(profile, lanes, wanted.cores),
        },
        "worker": {name: _mib(size) for name, size in worker.items()}
        | {"compile": _mib(COMPILE)},
        "gpu": None if gpu is None else {
            "device": _mib(gpu["device_bytes"]),
            "host": _mib(gpu["host_bytes"]),
            "tasks": gpu["tasks"],
        },
        "settings": {
            "spark.executor.instances": executors,
            "spark.executor.cores": each,
            "spark.executor.memory": f"{_mib(HEAP)}m",
            "spark.executor.memoryOverhead": f"{overhead}m",
            "spark.driver.memory": f"{_mib(HEAP)}m",
            "spark.executorEnv.NUMBA_NUM_THREADS": 1,
        },
    }  # fmt: skip


def _gpu(profile: ArrivalProfile, wanted: Wanted, lanes: Lanes) -> dict[str, Any]:
    """Return what a task takes of a GPU and of the host, and how many tasks fit on one GPU."""
    all_rows = float(sum(stream.rows for stream in profile.streams))
    rows = np.array([stream.rows for stream in profile.streams], np.float64) @ lanes.shares
    group = max(float(rows.max(initial=0)), min(float(GROUP_ROWS), all_rows))
    peaks = sum(stream.peak for stream in profile.streams)
    budget = sum(
        _budget(amount, stream.peak, stream.peak, alone=True)
        for amount, stream in zip(wanted.memory, profile.streams, strict=True)
    )
    device = _ON_DEVICE * group + SLOT_BYTES * min(budget, peaks) + 24 * float(lanes.keys.sum())
    room = (wanted.gpu_memory or 0.0) * GIB * _HEADROOM
    return {
        "device_bytes": device,
        "host_bytes": HOST_BYTES_A_ROW * group,
        "tasks": int(room // device) if device else wanted.executor_cores,
    }


def _mib(size: float) -> int:
    return math.ceil(size / MIB)
