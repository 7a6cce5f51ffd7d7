"""Which of the machine's GPUs a task may use, and how much of its memory.

A scheduler that assigns GPUs to tasks calls `grant` before each task; `open_device` then takes the
GPU that was assigned. A worker process runs tasks with different addresses one after the other, so
nothing here is fixed for the lifetime of a process.
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
    """A lease names a GPU that is not there, or an invalid share of memory."""


class GpuLease(NamedTuple):
    """The GPUs that a scheduler grants a task."""

    addresses: tuple[str, ...] = ()
    """GPUs that the scheduler assigned, by nvidia-smi's numbers or UUIDs; empty if it assigns
    none."""
    turn: int = 0
    """Number of the task, by which devices are distributed if there are no addresses."""
    at_once: int = 1
    """Tasks that run at once, including this one."""
    gpus: int = 0
    """GPUs that these have together; 0 for all that are visible."""
    each: float = 0.0
    """GPUs per task; 0 if unknown."""
    share: float = 1.0
    """Share of a GPU's memory for all tasks on it together, above 0 and at most 1."""
    attempt: int = 0
    """Number of earlier failed attempts."""
    again: bool = False
    """Whether it will be retried, in another process, if it fails now."""


_leases: list[GpuLease] = []


def grant(lease: GpuLease) -> None:
    """Set the lease of the next tasks; this loads nothing and looks for no GPU.

    Notes
    -----
    Addresses are numbers in bus order, as in nvidia-smi. CUDA would number the fastest first, so
    the order is set unless the environment sets it.
    """
    if lease.addresses:
        os.environ.setdefault(ORDER, "PCI_BUS_ID")
    _leases[:] = [lease]


def current_lease() -> GpuLease | None:
    """Return the current lease, None if the process has the machine for itself."""
    return _leases[0] if _leases else None


def memory_share(text: str | None) -> float:
    """Return the part of a GPU's memory that `SHARE` says, all of it by default.

    Raises
    ------
    GpuLeaseError
        If it is invalid.

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
    """Return the number of the device, among those that CUDA shows to this process.

    Parameters
    ----------
    lease : GpuLease
    visible : str or None
        ``CUDA_VISIBLE_DEVICES``: as set by the user or the cluster manager. It takes precedence; an
        address selects one of its devices, if it is among them.
    names : sequence of str
        UUIDs of the visible devices, as in nvidia-smi.

    Raises
    ------
    GpuLeaseError
        If no visible device has the address.

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
        Number of visible devices.

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
