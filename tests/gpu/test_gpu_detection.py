"""What is made of the GPU packages that are there, or not: with stand-ins for them."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_cupy import fake_cupy
from numba import config

from gpu_kernels import devices
from gpu_kernels.compiler import Kernel
from gpu_kernels.devices import CudaDevice, NoGpuError, choose_device, gpu_seen


class Pool:
    """Stands in for CuPy's memory pool."""

    freed = 0

    def free_bytes(self) -> int:
        """Say how much of it is unused."""
        return 25

    def free_all_blocks(self) -> None:
        """Count the calls."""
        Pool.freed += 1


@pytest.fixture(autouse=True)
def _no_simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_simulated", lambda: False)


def numba_sees(monkeypatch: pytest.MonkeyPatch, *, one: bool) -> None:
    from numba import cuda  # noqa: PLC0415 - slow, and what is patched

    monkeypatch.setattr(cuda, "is_available", lambda: one)


@pytest.mark.parametrize(
    ("count", "given"),
    [
        (None, "CuPy is not installed"),
        (0, "CuPy sees no CUDA device"),
        (RuntimeError("no driver"), r"CuPy sees no CUDA device \(no driver\)"),
    ],
)
def test_no_gpu_is_a_reason_and_never_an_error(
    count: Any, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None if count is None else fake_cupy(count))
    assert not gpu_seen()[0]
    assert choose_device("auto").device == "cpu"
    with pytest.raises(NoGpuError, match=given):
        choose_device("gpu")


def test_both_packages_must_see_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(2))
    numba_sees(monkeypatch, one=False)
    assert gpu_seen() == (False, "numba-cuda sees no CUDA device")
    numba_sees(monkeypatch, one=True)
    assert gpu_seen() == (True, "CuPy and numba-cuda see 2 CUDA device(s)")
    assert choose_device("auto").device == "gpu"
    assert choose_device("gpu").reason.startswith("asked for")
    assert choose_device("cpu") == ("cpu", "asked for")


def test_the_simulator_is_taken_only_when_a_gpu_is_demanded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "_simulated", lambda: True)
    assert choose_device("auto") == ("cpu", "the CUDA simulator is no GPU")
    assert choose_device("gpu").device == "gpu"


def test_a_device_counts_the_pool_as_free_and_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cupy = fake_cupy(1)
    cupy.cuda.runtime.memGetInfo = lambda: (100, 1000)
    cupy.get_default_memory_pool = Pool
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    device = CudaDevice()
    assert device.name == "FakeCard 0"
    assert device.free_bytes() == 125
    assert device.download(device.upload(np.arange(3))).tolist() == [0, 1, 2]
    assert device.zeros((2, 2), np.int32).tolist() == [[0, 0], [0, 0]]
    assert device.empty(3, np.int64).size == 3
    device.release()
    assert Pool.freed == 1
    launched = []
    device.launch(SimpleNamespace(launch=lambda *told: launched.append(told)), 3, 64, [1, 2], 16)
    assert launched == [(3, 64, 16, 1, 2)]


def test_a_launch_of_few_blocks_warns_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(1))
    monkeypatch.setattr(config, "CUDA_LOW_OCCUPANCY_WARNINGS", 1)
    CudaDevice()
    assert Kernel(lambda _: None)._dispatcher[3, 64].blockdim == (64, 1, 1)  # noqa: SLF001
