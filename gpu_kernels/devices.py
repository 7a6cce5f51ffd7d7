"""The GPU behind the drivers: its interface, its detection, and the choice of a device."""

from __future__ import annotations

import os
import threading
import uuid
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.gpu_lease import VISIBLE, GpuLease, allowance, chosen, current_lease

Array = Any
"""An array in a device's memory: CuPy's on a GPU, numpy's in the simulator."""


class Choice(NamedTuple):
    """The device chosen and the reason, for the report."""

    device: str
    reason: str


class NoGpuError(RuntimeError):
    """A GPU was requested, and no usable one exists."""


class TooLargeError(RuntimeError):
    """Work does not fit in a device's memory, however it is split."""


class Device(Protocol):
    """A device that runs kernels: a GPU, the CUDA simulator, or a test's."""

    simulated: bool
    xp: Any
    """The array module of its memory: sort, cumsum, searchsorted and so on."""

    @property
    def name(self) -> str:
        """What it is, for reports."""
        ...

    def enter(self) -> None:
        """Let the calling thread use it; one that opened it does already."""
        ...

    def free_bytes(self) -> int:
        """Return the free device memory."""
        ...

    def upload(self, array: NDArray[Any]) -> Array:
        """Return a copy of a host array in device memory."""
        ...

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Array:  # noqa: ANN401 - numpy's
        """Return a new device array of zeros."""
        ...

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:  # noqa: ANN401 - numpy's
        """Return a new device array whose content is undefined."""
        ...

    def download(self, array: Array) -> NDArray[Any]:
        """Return a host copy of a device array, once all work before is done."""
        ...

    def launch(
        self,
        kernel: Any,  # noqa: ANN401 - gpu_kernels.compiler.Kernel, not loaded without a GPU
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        shared: int = 0,
    ) -> None:
        """Start a kernel on `blocks` blocks of `threads` threads."""
        ...

    def release(self) -> None:
        """Return the memory of freed arrays."""
        ...


class CudaDevice:
    """A CUDA device, through CuPy and numba-cuda.

    Parameters
    ----------
    lease : GpuLease, optional
        The lease that selects it; without one it is CuPy's current device, with all of its memory.

    Attributes
    ----------
    number : int
        Among the devices that CUDA shows this process.
    allowed : int or None
        Bytes of its memory for this process; None for all.

    Raises
    ------
    GpuLeaseError
        If the leased device is not there.

    Notes
    -----
    The device becomes CuPy's current one. numba-cuda has none of its own: at every call it uses the
    driver's current context, and it compiles kernels per device.
    """

    simulated = False

    def __init__(self, lease: GpuLease | None = None) -> None:
        import cupy  # noqa: PLC0415 - optional, and slow to import
        from numba import config  # noqa: PLC0415 - the same

        config.CUDA_ARRAY_INTERFACE_SYNC = 0  # CuPy and numba share the default stream
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # few lanes take few blocks
        self.xp = cupy
        runtime = cupy.cuda.runtime
        self.number = runtime.getDevice()
        self.allowed: int | None = None
        if lease is not None:
            count = runtime.getDeviceCount()
            names = [_named(runtime.getDeviceProperties(i)) for i in range(count)]
            self.number = chosen(lease, os.environ.get(VISIBLE), names)
            cupy.cuda.Device(self.number).use()
            self.allowed = allowance(runtime.memGetInfo()[1], lease, count)
            cupy.get_default_memory_pool().set_limit(size=self.allowed)
        self.name = runtime.getDeviceProperties(self.number)["name"].decode()

    def enter(self) -> None:
        """Let the calling thread use it: CUDA's current device is each thread's own."""
        self.xp.cuda.Device(self.number).use()

    def free_bytes(self) -> int:
        """Return the free device memory, CuPy's own pool included."""
        pool = self.xp.get_default_memory_pool()
        free = int(self.xp.cuda.runtime.memGetInfo()[0]) + int(pool.free_bytes())
        if self.allowed is None:
            return free
        return max(0, min(free, self.allowed - int(pool.used_bytes())))

    def upload(self, array: NDArray[Any]) -> Array:
        """Return a copy of a host array in device memory."""
        return self.xp.asarray(np.ascontiguousarray(array))

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Array:  # noqa: ANN401
        """Return a new device array of zeros."""
        return self.xp.zeros(shape, dtype)

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:  # noqa: ANN401
        """Return a new device array whose content is undefined."""
        return self.xp.empty(shape, dtype)

    def download(self, array: Array) -> NDArray[Any]:
        """Return a host copy of a device array, once all work before is done."""
        found: NDArray[Any] = self.xp.asnumpy(array)
        return found

    def launch(
        self,
        kernel: Any,  # noqa: ANN401
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        shared: int = 0,
    ) -> None:
        """Start a kernel on `blocks` blocks of `threads` threads."""
        kernel.launch(blocks, threads, shared, *arguments)

    def release(self) -> None:
        """Return the memory of freed arrays to the device."""
        self.xp.get_default_memory_pool().free_all_blocks()


def _named(properties: dict[str, Any]) -> str:
    """Return a device's UUID as nvidia-smi writes it."""
    return f"GPU-{uuid.UUID(bytes=bytes(properties['uuid']))}"


_simulator = threading.Lock()


class SimulatedDevice:
    """Numba's CUDA simulator: every thread in Python, for small inputs and for tests."""

    name = "CUDA simulator"
    simulated = True
    xp: Any = np

    def enter(self) -> None:
        """Do nothing: every thread has the host's memory."""

    def free_bytes(self) -> int:
        """Return a size that suffices for small inputs."""
        return 2**31

    def upload(self, array: NDArray[Any]) -> Array:
        """Return a copy of an array."""
        return np.array(array)

    def zeros(self, shape: int | tuple[int, ...], dtype: Any) -> Array:  # noqa: ANN401
        """Return a new array of zeros."""
        return np.zeros(shape, dtype)

    def empty(self, shape: int | tuple[int, ...], dtype: Any) -> Array:  # noqa: ANN401
        """Return a new array, filled with a pattern that shows where nothing was written."""
        blank = np.empty(shape, dtype)
        blank.view(np.uint8).fill(0xA5)
        return blank

    def download(self, array: Array) -> NDArray[Any]:
        """Return a copy of an array."""
        return np.array(array)

    def launch(
        self,
        kernel: Any,  # noqa: ANN401
        blocks: int,
        threads: int,
        arguments: Sequence[Any],
        shared: int = 0,
    ) -> None:
        """Run a kernel, one block after the other; the simulator runs one kernel at a time."""
        with _simulator:
            kernel.launch(blocks, threads, shared, *arguments)

    def release(self) -> None:
        """Do nothing: Python frees arrays by itself."""


def _simulated() -> bool:
    """Return whether numba's CUDA simulator is switched on (``NUMBA_ENABLE_CUDASIM=1``)."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in {"", "0"}


def gpu_seen() -> tuple[bool, str]:
    """Return whether CuPy and numba-cuda see a CUDA device, and the reason.

    Returns
    -------
    (bool, str)
        Never raises: a missing driver or package is a reason, not an error.
    """
    try:
        import cupy  # noqa: PLC0415 - optional, and slow to import
    except ImportError:
        return False, "CuPy is not installed"
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except RuntimeError as error:
        return False, f"CuPy sees no CUDA device ({error})"
    if count == 0:
        return False, "CuPy sees no CUDA device"
    try:
        from numba import cuda  # noqa: PLC0415 - the same

        cuda.extending  # noqa: B018 - plain numba's own CUDA target has none
    except (ImportError, RuntimeError, AttributeError) as error:
        return False, f"numba-cuda cannot be loaded ({error})"
    if not cuda.is_available():
        return False, "numba-cuda sees no CUDA device"
    return True, f"CuPy and numba-cuda see {count} CUDA device(s)"


def choose_device(wanted: str) -> Choice:
    """Return the device for a job.

    Parameters
    ----------
    wanted : {"auto", "cpu", "gpu"}
        ``auto`` takes a GPU if there is one. ``gpu`` requires one; with
        ``NUMBA_ENABLE_CUDASIM=1`` it is numba's CUDA simulator, which ``auto`` never takes.

    Raises
    ------
    NoGpuError
        If a GPU is required and there is none.

    Examples
    --------
    >>> choose_device("cpu")
    Choice(device='cpu', reason='asked for')
    """
    if wanted == "cpu":
        return Choice("cpu", "asked for")
    if wanted == "gpu" and _simulated():
        return Choice("gpu", "asked for; NUMBA_ENABLE_CUDASIM is set")
    seen, why = (False, "the CUDA simulator is no GPU") if _simulated() else gpu_seen()
    if wanted == "gpu":
        if not seen:
            raise NoGpuError(
                f"--device gpu: {why}; install winnowjoin[gpu] beside an NVIDIA "
                "driver, or use --device auto or cpu"
            )
        return Choice("gpu", f"asked for; {why}")
    return Choice("gpu" if seen else "cpu", why)


def open_device() -> Device:
    """Return the GPU that `choose_device` chose, or the simulator.

    Of several GPUs it is the one that the lease selects (`gpu_kernels.gpu_lease`).

    Raises
    ------
    GpuLeaseError
        If the leased device is not there.
    """
    if _simulated():
        return SimulatedDevice()
    lease = current_lease()
    return CudaDevice() if lease is None else CudaDevice(lease)
