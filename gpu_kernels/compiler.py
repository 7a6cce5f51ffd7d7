"""CUDA compilation in which every float64 operation is rounded by itself.

NVVM fuses ``a*b + c`` into one rounding by default, and numba-cuda has no option against it; so its
compile step is given NVVM's own ``-fma=0`` here. That covers users' functions too, whose products
no helper could reach. The compiled code is checked: a kernel with a fused float64 operation is
refused, never run.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from numba import config, cuda

from gpu_kernels.portable import register_on_gpu

SIMULATED = bool(config.ENABLE_CUDASIM)
_compiling = threading.RLock()
_FUSED = re.compile(r"\bfma\.\w+(?:\.\w+)*\.f64\b")


class FusedError(RuntimeError):
    """A compiled kernel rounds a product and a sum at once."""


def fused_operations(ptx: str) -> list[str]:
    """Return the float64 fused multiply-adds of PTX code.

    Examples
    --------
    >>> fused_operations("mul.rn.f64 %fd3, %fd1, %fd2; fma.rn.f64 %fd4, %fd1, %fd2, %fd3;")
    ['fma.rn.f64']
    """
    return _FUSED.findall(ptx)


@contextmanager
def _each_operation_rounded() -> Iterator[None]:
    """Compile without contraction inside the block."""
    if SIMULATED:
        yield
        return
    from numba.cuda.cudadrv import nvvm  # noqa: PLC0415 - not there in the simulator

    with _compiling:
        before = nvvm.compile_ir
        nvvm.compile_ir = partial(before, fma=False)
        try:
            yield
        finally:
            nvvm.compile_ir = before


def device_function(function: Callable[..., Any]) -> Any:  # noqa: ANN401 - numba's dispatcher
    """Compile `function` into the kernels that call it; it may use threads and shared memory."""
    return cuda.jit(device=True)(function)


class Kernel:
    """A CUDA kernel, compiled at its first launch.

    Parameters
    ----------
    function : callable
        Of arrays and scalars; its module has ``cuda`` as a global name, for the simulator.
    most_registers : int, optional
        Maximum registers per thread: fewer let more blocks run concurrently.
    """

    def __init__(self, function: Callable[..., None], most_registers: int | None = None) -> None:
        register_on_gpu()
        self.function = function
        options = {} if SIMULATED else {"lto": False, "max_registers": most_registers}
        self._dispatcher = cuda.jit(function, **options)  # as a decorator, it would drop `lto`
        self._checked: set[Any] = set()

    def launch(self, blocks: int, threads: int, shared: int, *arguments: Any) -> None:  # noqa: ANN401
        """Launch the kernel; returns before it ends.

        Parameters
        ----------
        blocks, threads : int
            Blocks in the grid, and threads in each block.
        shared : int
            Bytes of dynamic shared memory per block.
        *arguments
            Device arrays (numpy arrays in the simulator) and numbers.

        Raises
        ------
        FusedError
            If the compiler contracted a float64 operation.
        """
        self.prepare(*arguments)
        self._dispatcher[blocks, threads, 0, shared](*arguments)

    def prepare(self, *arguments: Any) -> None:  # noqa: ANN401
        """Compile for arguments of these types, unless that is done.

        Raises
        ------
        FusedError
            If the compiler contracted a float64 operation.
        """
        if SIMULATED:
            return
        signature = tuple(self._dispatcher.typeof_pyval(value) for value in arguments)
        if signature in self._checked:
            return
        with _each_operation_rounded():
            self._dispatcher.compile(signature)
        # what was loaded; the dispatcher's own inspect_asm would compile again for sm_90, not 90a
        found = fused_operations(self._dispatcher.overloads[signature].inspect_asm(None))
        if found:
            raise FusedError(
                f"kernel {self.function.__name__} was compiled with {len(found)} fused float64 "
                "operations, so its ranks could differ from the CPU's; use --device cpu"
            )
        self._checked.add(signature)

    def ptx(self, signature: Any, compute_capability: tuple[int, int]) -> str:  # noqa: ANN401
        """Return the PTX for argument types and a GPU generation; needs no GPU.

        Parameters
        ----------
        signature : tuple of numba types
        compute_capability : tuple of int
            Such as (9, 0).
        """
        from numba.cuda import dispatcher  # noqa: PLC0415 - not there in the simulator

        class _Device:
            pass

        device = _Device()
        device.compute_capability = compute_capability  # type: ignore[attr-defined]
        before = dispatcher.get_current_device
        dispatcher.get_current_device = lambda: device
        try:
            with _each_operation_rounded():
                text, _ = cuda.compile_ptx(self.function, signature, cc=compute_capability)
        finally:
            dispatcher.get_current_device = before
        return str(text)
