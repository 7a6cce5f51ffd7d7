"""Stands in for CuPy on a machine with several GPUs, whose memory it counts; numpy inside."""

from __future__ import annotations

import uuid
from collections import defaultdict
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

TOTAL = 80_000_000
"""Bytes of a device."""


def name_of(number: int) -> str:
    """Return a device's UUID as nvidia-smi writes it."""
    return f"GPU-{uuid.UUID(int=number + 1)}"


def fake_cupy(count: int | Exception, *, taken: int = 0) -> Any:
    """Return a module that looks like CuPy; others have `taken` bytes of each device."""
    module: Any = ModuleType("cupy")
    state = SimpleNamespace(current=0, used=defaultdict(int), limits={})

    def counted() -> int:
        if isinstance(count, Exception):
            raise count
        return count

    class Device:
        """A device by number."""

        def __init__(self, number: int) -> None:
            self.number = number

        def use(self) -> None:
            """Make it the current one."""
            if self.number >= counted():
                raise RuntimeError("cudaErrorInvalidDevice")
            state.current = self.number

    class Pool:
        """The memory pool: what is used, of the current device."""

        def free_bytes(self) -> int:
            """Say how much it keeps for later."""
            return 0

        def used_bytes(self) -> int:
            """Say what arrays have."""
            return int(state.used[state.current])

        def set_limit(self, size: int) -> None:
            """Limit it on the current device."""
            state.limits[state.current] = size

        def free_all_blocks(self) -> None:
            """Keep nothing."""

    def noted(array: Any) -> Any:
        size = state.used[state.current] + array.nbytes
        if size > state.limits.get(state.current, TOTAL):
            raise MemoryError(f"out of memory allocating {array.nbytes} bytes")
        state.used[state.current] = size
        return array

    module.state = state
    module.cuda = SimpleNamespace(
        Device=Device,
        runtime=SimpleNamespace(
            getDeviceCount=counted,
            getDevice=lambda: state.current,
            getDeviceProperties=lambda number: {
                "name": f"FakeCard {number}".encode(),
                "uuid": uuid.UUID(int=number + 1).bytes,
            },
            memGetInfo=lambda: (TOTAL - taken - state.used[state.current], TOTAL),
        ),
    )
    module.get_default_memory_pool = Pool
    module.asnumpy = np.array
    module.asarray = lambda array: noted(np.array(array))
    module.zeros = lambda shape, dtype: noted(np.zeros(shape, dtype))
    module.empty = lambda shape, dtype: noted(np.empty(shape, dtype))
    for name in ("argsort", "cumsum", "searchsorted"):
        setattr(module, name, getattr(np, name))
    return module
