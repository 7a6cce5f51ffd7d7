"""A deterministic scheduler for numba's CUDA simulator, and the warp operations it lacks.

The simulator runs each CUDA thread as an operating system thread and polls them. Here each is a
greenlet: a thread runs to its next barrier, then the next one in an order that is drawn from a
seed, so that a missing barrier shows as a wrong result and shows again. Also a thousand times
faster.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import greenlet
import numpy as np
from numba.cuda.simulator import kernel as simulated_kernel
from numba.cuda.simulator import kernelapi
from numba.cuda.simulator.kernelapi import Dim3, FakeCUDAModule

SEED = 0
"""Of the order in which the threads of a block run; tests may change it."""


class DivergedError(AssertionError):
    """Some threads of a block or warp wait at a barrier that others do not reach."""


class _Thread:
    """One CUDA thread of a block."""

    def __init__(self, function: Callable[[], None], block: Dim3, place: Dim3, number: int) -> None:
        self.blockIdx = block
        self.threadIdx = place
        self.thread_id = number
        self.told: Any = None
        self.waits: str = "the start"
        self.block: _Block | None = None
        self.greenlet = greenlet.greenlet(function)

    def wait(self, what: str) -> None:
        self.waits = what
        self.greenlet.parent.switch()

    def syncthreads(self) -> None:
        """Wait for the whole block."""
        self.wait("block")

    def _vote(self, value: Any, reduced: Callable[[list[Any]], int]) -> int:
        """Return what the block makes of everybody's value."""
        assert self.block is not None
        self.told = value
        self.wait("block vote")
        found = reduced([other.told for other in self.block.threads])
        self.wait("block vote read")
        return found

    def syncthreads_count(self, value: Any) -> int:
        return self._vote(value, lambda told: sum(bool(x) for x in told))

    def syncthreads_and(self, value: Any) -> int:
        return self._vote(value, lambda told: int(all(told)))

    def syncthreads_or(self, value: Any) -> int:
        return self._vote(value, lambda told: int(any(told)))

    def syncwarp(self) -> None:
        """Wait for the threads of the warp."""
        self.wait(f"warp {self.thread_id // 32}")

    def exchanged(self, value: Any, source: int) -> Any:
        """Return what the thread of lane `source` of the warp gives; its own if there is none."""
        assert self.block is not None
        first = self.thread_id // 32 * 32
        self.told = value
        self.wait(f"warp {self.thread_id // 32} shuffle")
        found = value
        if first + source < len(self.block.threads) and 0 <= source < 32:
            found = self.block.threads[first + source].told
        self.wait(f"warp {self.thread_id // 32} shuffle read")
        return found


class _Block:
    """Runs a block: every thread to its next barrier, in a random order, until all have ended."""

    def __init__(self, function: Any, grid_dim: Any, block_dim: Any, debug: bool) -> None:
        del grid_dim, debug
        self.function = function
        self.shape = block_dim
        self.threads: list[_Thread] = []

    def run(self, block: tuple[int, ...], *arguments: Any) -> None:
        """Run all threads of one block."""
        places = list(np.ndindex(*self.shape))
        ordered = sorted(places, key=lambda p: (p[2], p[1], p[0]))
        self.threads = [
            _Thread(lambda: self.function(*arguments), Dim3(*block), Dim3(*place), number)
            for number, place in enumerate(ordered)
        ]
        for thread in self.threads:
            thread.block = self
        order = random.Random(f"{SEED}/{block}")  # noqa: S311 - an order of threads
        alive = list(self.threads)
        while alive:
            in_warps = [thread for thread in alive if not thread.waits.startswith("block")]
            ready = in_warps or list(alive)
            order.shuffle(ready)
            for thread in ready:
                _current.thread = thread
                thread.greenlet.switch()
            _current.thread = None
            alive = [thread for thread in alive if not thread.greenlet.dead]
            self._check(alive)

    def _check(self, alive: list[_Thread]) -> None:
        """Raise an error unless the threads of each warp, and of the block, wait for one thing."""
        by_warp: dict[int, set[str]] = {}
        for thread in alive:
            by_warp.setdefault(thread.thread_id // 32, set()).add(thread.waits)
        told = sorted({thread.waits for thread in alive})
        if any(len(found) > 1 for found in by_warp.values()):
            raise DivergedError(f"threads of a warp wait for {told}")
        at_block = [wait for wait in told if wait.startswith("block")]
        if len(at_block) > 1 or (at_block and len(alive) < len(self.threads)):
            raise DivergedError(f"some threads have ended or wait elsewhere, others for {told}")


class _Current:
    """Stands in for the `threading` of the simulator."""

    thread: _Thread | None = None

    def current_thread(self) -> _Thread:
        assert self.thread is not None
        return self.thread

    def __getattr__(self, name: str) -> Any:
        return getattr(threading, name)


_current = _Current()


def _shuffle(source: Callable[[int, int], int]) -> Callable[..., Any]:
    def operation(self: Any, mask: int, value: Any, by: int) -> Any:
        del self
        assert mask in {-1, 0xFFFFFFFF}
        thread = _current.current_thread()
        return thread.exchanged(value, source(thread.thread_id % 32, by))

    return operation


def _ballot(self: Any, mask: int, predicate: Any) -> int:
    del self, mask
    thread = _current.current_thread()
    assert thread.block is not None
    first = thread.thread_id // 32 * 32
    thread.told = bool(predicate)
    thread.wait("warp ballot")
    mates = thread.block.threads[first : first + 32]
    found = sum(1 << i for i, mate in enumerate(mates) if mate.told)
    thread.wait("warp ballot read")
    return found


def _syncwarp(self: Any, mask: int = -1) -> None:
    del self, mask
    _current.current_thread().syncwarp()


def install() -> None:
    """Put the scheduler and the warp operations into the simulator of this process."""
    kernelapi.threading = _current
    simulated_kernel.BlockManager = _Block
    FakeCUDAModule.syncwarp = _syncwarp
    FakeCUDAModule.shfl_xor_sync = _shuffle(lambda lane, by: lane ^ by)
    FakeCUDAModule.shfl_down_sync = _shuffle(lambda lane, by: lane + by)
    FakeCUDAModule.shfl_up_sync = _shuffle(lambda lane, by: lane - by)
    FakeCUDAModule.shfl_sync = _shuffle(lambda _, by: by)
    FakeCUDAModule.ballot_sync = _ballot
