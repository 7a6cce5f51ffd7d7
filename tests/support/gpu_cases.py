"""A GPU made up: kernels are compiled for it as for a real one, and never run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba.cuda import dispatcher
from numba.cuda.cudadrv import devices

from gpu_kernels.compiler import Kernel
from gpu_kernels.devices import SimulatedDevice


def make_up_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let numba-cuda compile for an H200 that is not there, up to loading onto it."""
    device = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    monkeypatch.setattr(devices, "get_context", lambda *_: SimpleNamespace(device=device))
    monkeypatch.setattr(dispatcher._Kernel, "bind", lambda _: None)  # noqa: SLF001 - loads it


class CompilingDevice(SimulatedDevice):
    """Compiles every kernel for the arguments it is launched with; memory holds zeros."""

    name = "made up"
    simulated = False

    def __init__(self) -> None:
        self.compiled: list[str] = []
        self.instead: dict[str, Callable[..., None]] = {}
        """What a kernel of a name is taken to do to its arguments; nothing, if it is not here."""

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Any:
        """Return zeros: no kernel will fill them."""
        return np.zeros(shape, dtype)

    def launch(
        self,
        kernel: Kernel,
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        shared: int = 0,
    ) -> None:
        """Compile a kernel and check what a launch would be refused for."""
        assert 1 <= blocks < 2**31
        assert 1 <= threads <= 1024
        kernel.prepare(*arguments)
        loaded = [*kernel._dispatcher.overloads.values()][-1]  # noqa: SLF001 - what would run
        fixed = static_shared(loaded.inspect_asm(None))
        assert fixed + shared <= 48 * 1024, "more shared memory than a block is given"
        name = kernel.function.__name__
        self.compiled.append(name)
        if name in self.instead:
            self.instead[name](*arguments)


def static_shared(ptx: str) -> int:
    """Return the bytes of shared memory that PTX code declares itself."""
    found = 0
    for line in ptx.splitlines():
        if line.startswith((".shared", "\t.shared", ".visible .shared")) and "[" in line:
            size = line[line.rindex("[") + 1 : line.rindex("]")]
            found += int(size) if size else 0
    return found
