"""Which device does a piece of work, and what happens when it cannot: with devices made up."""

from __future__ import annotations

import os
from typing import Any

import pytest

from engine.runtime.device_choice import (
    Wanted,
    attempt,
    combined_choice,
    prefer_gpu,
    prefer_gpu_count,
    wanted_device,
)
from engine.runtime.errors import DeviceError, InputError
from gpu_kernels import devices
from gpu_kernels.devices import Choice, TooLargeError

GPU = Choice("gpu", "CuPy and numba-cuda see 1 CUDA device(s)")


class Fake:
    """Stands in for a device."""

    name = "FakeCard 9000"


def on_gpu(device: Any) -> str:
    assert device.name == "FakeCard 9000"
    return "from the gpu"


def failing(error: Exception) -> Any:
    def work(device: Any) -> str:
        del device
        raise error

    return work


class CudaAPIError(Exception):
    """As numba-cuda's: neither a RuntimeError nor a MemoryError."""


FAILURES = [
    (TooLargeError("a lane takes 9 bytes and 3 are free"), "does not fit on the GPU"),
    (CudaAPIError("[700] illegal address\nmore"), r"CudaAPIError: \[700\] illegal address\)"),
    (MemoryError("out of memory allocating 9 bytes"), "MemoryError: out of memory"),
    (RuntimeError(), "RuntimeError: "),
]


def test_a_gpu_that_is_chosen_does_the_work() -> None:
    done = attempt(Wanted(GPU), on_gpu, Fake)
    assert done == ("from the gpu", Choice("gpu", f"{GPU.reason}: FakeCard 9000"))


def test_the_work_is_left_to_the_cpu_without_opening_a_device() -> None:
    def opened() -> Any:
        raise AssertionError

    chosen = Choice("cpu", "asked for")
    assert attempt(Wanted(chosen), on_gpu, opened) == (None, chosen)


@pytest.mark.parametrize(("error", "given"), FAILURES)
def test_auto_falls_back_and_says_why(error: Exception, given: str) -> None:
    result, choice = attempt(Wanted(GPU), failing(error), Fake)
    assert result is None
    assert choice.device == "cpu"
    with pytest.raises(AssertionError, match=given):
        raise AssertionError(choice.reason)


@pytest.mark.parametrize(("error", "given"), FAILURES)
def test_a_gpu_that_is_demanded_fails_loudly(error: Exception, given: str) -> None:
    with pytest.raises(DeviceError, match=given):
        attempt(Wanted(GPU, demanded=True), failing(error), Fake)


def test_a_device_that_does_not_open_is_a_failure_too() -> None:
    def opened() -> Any:
        raise RuntimeError("no driver")

    assert attempt(Wanted(GPU), on_gpu, opened)[1].reason.startswith("the GPU failed")


def test_what_is_wrong_with_the_input_is_no_fault_of_the_device() -> None:
    with pytest.raises(InputError, match="column"):
        attempt(Wanted(GPU), failing(InputError("column k is missing")), Fake)


@pytest.mark.parametrize("option", ["auto", "cpu", "gpu"])
def test_the_option_decides(option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_seen", lambda: (True, "CuPy sees 1"))
    wanted = wanted_device(option)
    assert wanted.choice.device == ("cpu" if option == "cpu" else "gpu")
    assert wanted.demanded == (option == "gpu")


def test_without_a_gpu_auto_is_the_cpu_and_gpu_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "gpu_seen", lambda: (False, "CuPy is not installed"))
    assert wanted_device("auto").choice == Choice("cpu", "CuPy is not installed")
    with pytest.raises(DeviceError, match=r"CuPy is not installed; install winnowjoin\[gpu\]"):
        wanted_device("gpu")


def test_auto_takes_a_gpu_for_many_lanes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(3))
    seen = Wanted(GPU)
    assert prefer_gpu(seen, 48) == seen
    few = prefer_gpu(seen, 47)
    assert few.choice.device == "cpu"
    assert "47 replays at once are too few" in few.choice.reason
    assert prefer_gpu(Wanted(GPU, demanded=True), 1).choice == GPU
    asked = Wanted(Choice("cpu", "asked for"))
    assert prefer_gpu(asked, 1) == asked


def test_auto_counts_many_tuples_only_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(2))
    seen = Wanted(GPU)
    assert prefer_gpu_count(seen, 1 << 26) == seen
    few = prefer_gpu_count(seen, (1 << 26) - 1)
    assert (
        "67108863 tuples to count are too few to be faster on a GPU than on 2" in few.choice.reason
    )
    assert prefer_gpu_count(Wanted(GPU, demanded=True), 1).choice == GPU


def test_parts_on_several_devices_are_told() -> None:
    cpu = Choice("cpu", "it failed")
    assert combined_choice([], cpu) == cpu
    assert combined_choice([GPU, GPU], cpu) == GPU
    assert combined_choice([cpu, cpu], GPU) == cpu
    assert combined_choice([GPU, cpu, GPU], GPU).reason == "1 of 3 parts on the CPU: it failed"
