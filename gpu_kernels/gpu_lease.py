"""Which of the machine's GPUs a task may use, and how much of its memory.

A scheduler that gives its tasks GPUs calls `grant` before each task; whatever opens a device then
takes the one that was meant. A worker process runs tasks with different addresses one after the
other, so nothing here is decided for a process's whole life.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import NamedTuple

SHARE = "WINNOW_GPU_SHARE"
"""Environment variable: the part of a GPU's memory for all Python workers on it together."""
VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"


class GpuLeaseError(RuntimeError):
    """A GPU was given that is not there, or an invalid share of memory."""


class GpuLease(NamedTuple):
    """What a scheduler grants a task of the GPUs.

    Attributes
    ----------
    addresses : tuple of str
        GPUs that the scheduler gave it, as nvidia-smi numbers or names (UUID) them; none if it
        gives none.
    turn : int
        Number of the piece, by which devices are dealt out where there is no address.
    at_once : int
        Pieces that run at once beside each other, this one included.
    gpus : int
        GPUs that these have together; 0 for all that are visible.
    each : float
        GPUs that a piece counts for; 0 if nobody counts.
    share : float
        Part of a GPU's memory for all pieces on it together, above 0 and at most 1.
    attempt : int
        How often the piece has failed before.
    again : bool
        Whether it will be tried again, in another process, if it fails now.
    """

    addresses: tuple[str, ...] = ()
    turn: int = 0
    at_once: int = 1
    gpus: int = 0
    each: float = 0.0
    share: float = 1.0
    attempt: int = 0
    again: bool = False


_leases: list[GpuLease] = []


def grant(lease: GpuLease) -> None:
    """Set the lease of the tasks to come; loads nothing and looks for no GPU.

    Notes
    -----
    Addresses are numbers in the order of the bus, as nvidia-smi has them; CUDA would put the
    fastest first, so the order is set, unless the environment has one.
    """
    if lease.addresses:
        os.environ.setdefault(ORDER, "PCI_BUS_ID")
    _leases[:] = [lease]


def current_lease() -> GpuLease | None:
    """Return the lease in force, None where the process has the machine for itself."""
    return _leases[0] if _leases else None


def memory_share(text: str | None) -> float:
    """Return the part of a GPU's memory that `SHARE` says, all of it by default.

    Raises
    ------
    GpuLeaseError
        If it is no such part.

    Examples
    --------
    >>> memory_share("0.25"), memory_share(None)
    (0.25, 1.0)
    """
    if not text:
        return 1.0
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 < share <= 1:
        raise GpuLeaseError(f"{SHARE} is {text}: it must be a number above 0 and at most 1")
    return share


def chosen(lease: GpuLease, visible: str | None, names: Sequence[str]) -> int:
    """Return the number of the device, among those that CUDA shows this process.

    Parameters
    ----------
    lease : GpuLease
    visible : str or None
        ``CUDA_VISIBLE_DEVICES``: what the user or the cluster manager has set. It wins; an address
        only says which of its devices, if it is among them.
    names : sequence of str
        UUIDs of the devices shown, as nvidia-smi has them.

    Raises
    ------
    GpuLeaseError
        If the address is of no device that is shown.

    Examples
    --------
    >>> chosen(GpuLease(("3",)), None, ["GPU-a", "GPU-b", "GPU-c", "GPU-d"])
    3
    >>> chosen(GpuLease(("3",)), "2,3", ["GPU-c", "GPU-d"])
    1
    >>> chosen(GpuLease(turn=5), None, ["GPU-a", "GPU-b"])
    1
    """
    shown = [part.strip() for part in (visible or "").split(",") if part.strip()]
    for address in lease.addresses[:1]:
        if address in shown:
            number = shown.index(address)
            if number < len(names):
                return number
        if shown:
            break
        if address in names:
            return names.index(address)
        if address.isdecimal() and int(address) < len(names):
            return int(address)
        raise GpuLeaseError(
            f"Spark gave GPU {address} and CUDA shows {len(names)} device(s): correct the "
            f"discovery script, or set {VISIBLE} where the executors start"
        )
    return lease.turn % len(names)


def sharers(lease: GpuLease, count: int) -> int:
    """Return how many tasks may be on one device at once.

    Parameters
    ----------
    lease : GpuLease
    count : int
        Devices that are shown.

    Examples
    --------
    >>> sharers(GpuLease(at_once=8, gpus=2, each=0.25), 2)
    4
    >>> sharers(GpuLease(at_once=8, each=0.001), 2)
    4
    """
    beside = math.ceil(lease.at_once / max(1, lease.gpus or count))
    if lease.each:
        beside = min(beside, math.floor(1 / lease.each + 1e-9))
    return max(1, beside)


def allowance(total_bytes: int, lease: GpuLease, count: int) -> int:
    """Return the bytes of a device of `total_bytes` that one task may take.

    Examples
    --------
    >>> allowance(80_000, GpuLease(at_once=4, gpus=1, each=0.25, share=0.5), 1)
    10000
    """
    return int(total_bytes * lease.share) // sharers(lease, count)
