"""The team that replays each lane, and the batches of lanes that go to the device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from gpu_kernels.devices import TooLargeError
from gpu_kernels.pool import POOL_BYTES
from gpu_kernels.replay.layout import FOUND, LANE_FLOATS, LANE_INTEGERS, SLOT_BYTES

SHARED_BYTES = 48 * 1024
"""Shared memory that every CUDA device gives a block without being asked specially."""
SCRATCH_BYTES = 8 * (3 + 1)
"""Shared memory of a block team, a thread."""
_STATIC_BYTES = 16
"""Of a warp's kernel, which needs no scratch."""
WARP_TEAMS = 4
"""Lanes in a block of warps: few, since registers are given to whole blocks."""
MOST_ROWS = 2**31 - 1
"""Rows are numbered by int32 in the slots."""
_HEADROOM = 0.9


class Need(NamedTuple):
    """The resources that a lane needs on a device."""

    slots: int
    """K of both sides, or of one memory the most that each side may hold of it."""
    keys: int
    pending: int
    """Most arrivals of one instant, both sides."""
    kept: int = 0
    """Rows whose retention is recorded."""
    pooled: bool = False
    """Whether both sides have one memory."""


class Variant(NamedTuple):
    """How a lane is replayed."""

    kind: str
    """{"warp", "block"}."""
    per_block: int
    """Lanes in a thread block."""
    width: int
    """Threads per lane."""
    in_shared: bool
    """Whether join memories lie in shared memory."""


class LaneBatch(NamedTuple):
    """Lanes that one launch replays."""

    variant: Variant
    lanes: tuple[int, ...]
    """Positions in the list that was planned."""
    slots: int
    """Slots of every lane."""


def choose_variant(slots: int) -> Variant:
    """Return the team for a lane of so many slots: a warp, or a block as they grow.

    Examples
    --------
    >>> choose_variant(200)
    Variant(kind='warp', per_block=4, width=32, in_shared=True)
    >>> choose_variant(100_000).kind
    'block'
    """
    if SLOT_BYTES * WARP_TEAMS * slots + _STATIC_BYTES <= SHARED_BYTES:
        return Variant("warp", WARP_TEAMS, 32, in_shared=True)
    width = 128
    if slots * SLOT_BYTES + width * SCRATCH_BYTES + 64 <= SHARED_BYTES:
        return Variant("block", 1, width, in_shared=True)
    return Variant("block", 1, 256 if slots <= 8192 else 512, in_shared=False)


def simulated_variant(slots: int) -> Variant:
    """Return the team for numba's CUDA simulator, which has no shuffles and slow threads."""
    small = SLOT_BYTES * slots <= SHARED_BYTES // 2
    return Variant("block", 1, 4, in_shared=small)


def lane_bytes(need: Need, variant: Variant, counter_kinds: int) -> int:
    """Return the device memory that a lane takes beside its streams."""
    numbers = 8 * (len(LANE_INTEGERS) + len(LANE_FLOATS) + FOUND + 1)
    slots = 0 if variant.in_shared else SLOT_BYTES * need.slots
    if need.pooled:
        numbers += POOL_BYTES
    return numbers + slots + 4 * 2 * counter_kinds * need.keys + 16 * need.pending + 8 * need.kept


def plan_batches(
    needs: Sequence[Need],
    free_bytes: int,
    counter_kinds: int,
    choose: Callable[[int], Variant] = choose_variant,
) -> list[LaneBatch]:
    """Cut lanes into launches that fit in device memory.

    Parameters
    ----------
    needs : sequence of Need
    free_bytes : int
        Device memory left after the streams are uploaded.
    counter_kinds : int
        Counters per key and side.
    choose : callable
        The variant for a number of slots.

    Returns
    -------
    list of LaneBatch
        Every lane in exactly one; lanes of one variant and similar size together, the largest
        first, since they take longest.

    Raises
    ------
    TooLargeError
        If a single lane does not fit.
    """
    limit = int(free_bytes * _HEADROOM)
    order = sorted(range(len(needs)), key=lambda lane: (-needs[lane].slots, lane))
    batches: list[LaneBatch] = []
    chosen: list[int] = []
    variant = None
    taken = 0
    for lane in order:
        own = choose(needs[lane].slots)
        size = lane_bytes(needs[lane], own, counter_kinds)
        if size > limit:
            raise TooLargeError(
                f"a lane of {needs[lane].slots} slots and {needs[lane].keys} keys takes {size} "
                f"bytes of device memory and {limit} are free; give less memory, or --device cpu"
            )
        if chosen and (own != variant or taken + size > limit):
            batches.append(_batch(variant, chosen, needs))
            chosen, taken = [], 0
        variant = own
        chosen.append(lane)
        taken += size
    if chosen:
        batches.append(_batch(variant, chosen, needs))
    return batches


def _batch(variant: Variant | None, lanes: list[int], needs: Sequence[Need]) -> LaneBatch:
    assert variant is not None  # noqa: S101 - there is a lane
    return LaneBatch(variant, tuple(lanes), max(1, *(needs[lane].slots for lane in lanes)))
