"""A GPU made up: kernels are compiled and assembled for it as for a real one, and never run."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.cuda import dispatcher
from numba.cuda.cudadrv import devices, driver

from gpu_kernels.compiler import Kernel
from gpu_kernels.devices import SimulatedDevice

REGISTERS, SHARED = 64 * 1024, 48 * 1024
"""Registers of a multiprocessor, and bytes of shared memory that a block is given unasked."""


def make_up_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let numba-cuda compile for an H200 that is not there, up to loading onto it."""
    telling = partial(driver.LinkerOptions, ptxas_options=["-v"])
    monkeypatch.setattr(driver, "LinkerOptions", telling)
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
        used = assembled(loaded)
        assert threads * used.registers <= REGISTERS, "a block has more registers than there are"
        assert used.shared + shared <= SHARED, "more shared memory than a block is given"
        name = kernel.function.__name__
        self.compiled.append(name)
        if name in self.instead:
            self.instead[name](*arguments)


class Resources(NamedTuple):
    """What the machine code of a kernel takes."""

    registers: int
    """Of a thread, as they are given: a multiple of eight."""
    shared: int
    """Bytes of shared memory of a block, beside those that a launch gives it."""


def assembled(loaded: Any) -> Resources:
    """Assemble what numba-cuda would load onto the device, and return what it takes.

    Without link-time optimisation: that generates other code than the PTX that was checked.
    """
    library = loaded._codelibrary  # noqa: SLF001 - what would be loaded
    library.get_cubin()
    (told,) = library._linkerinfo_cache.values()  # noqa: SLF001 - what the assembler says
    assert "LTOIR" not in told, "the kernel is linked from other code than was checked"
    registers = max(int(found) for found in re.findall(r"Used (\d+) registers", told))
    shared = max((int(found) for found in re.findall(r"(\d+) bytes smem", told)), default=0)
    return Resources(-(-registers // 8) * 8, shared)
