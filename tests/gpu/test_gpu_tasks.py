"""Which GPU a task gets and how much of it, and what becomes of its faults: with made-up GPUs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from fake_cupy import TOTAL, fake_cupy, name_of
from spark_cases import drawn, write

from engine.jobs.replay import gpu_groups
from engine.jobs.replay.gpu_groups import grouped
from engine.runtime.device_choice import GpuFaultError, Wanted, attempt, wanted_device
from engine.runtime.errors import DeviceError, SpecError
from engine.runtime.executors import SerialExecutor
from gpu_kernels import devices, gpu_lease
from gpu_kernels.devices import Choice, CudaDevice, TooLargeError
from gpu_kernels.gpu_lease import (
    GpuLease,
    GpuLeaseError,
    allowance,
    chosen,
    grant,
    memory_share,
    sharers,
)
from spark_plugin import gpu
from spark_plugin.dataframe import replay
from spark_plugin.executor import SparkExecutor
from spark_plugin.gpu import GpuTerms, bind_task, terms_of

GPU = Choice("gpu", "there is one")
NAMES = [name_of(number) for number in range(4)]


@pytest.fixture(autouse=True)
def _nothing_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_lease, "_leases", [])
    for name in (gpu_lease.VISIBLE, gpu_lease.ORDER, gpu_lease.SHARE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(devices, "_simulated", lambda: False)


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = fake_cupy(4)
    monkeypatch.setitem(sys.modules, "cupy", made)
    return made


@pytest.mark.parametrize(
    ("addresses", "visible", "shown", "number"),
    [
        (("2",), None, 4, 2),
        (("2", "3"), None, 4, 2),
        ((NAMES[3],), None, 4, 3),
        ((), None, 4, 1),
        ((), None, 2, 1),
        (("6",), "4,6", 2, 1),
        ((NAMES[1],), f"{NAMES[0]}, {NAMES[1]}", 2, 1),
        (("0",), "7", 1, 0),
        (("9",), "4,6", 2, 1),
        ((), "4,6,7", 3, 2),
        (("0",), "", 4, 0),
    ],
)
def test_a_task_gets_the_gpu_that_was_meant(
    addresses: tuple[str, ...], visible: str | None, shown: int, number: int
) -> None:
    """Task 5: the environment wins, then Spark's address, then the turn."""
    assert chosen(GpuLease(addresses, turn=5), visible, NAMES[:shown]) == number


@pytest.mark.parametrize("address", ["4", "-1", "GPU-none", "mig"])
def test_an_address_of_no_device_is_an_error(address: str) -> None:
    with pytest.raises(GpuLeaseError, match=f"GPU {address} and CUDA shows 4 device"):
        chosen(GpuLease((address,)), None, NAMES)


@pytest.mark.parametrize(
    ("terms", "tasks"),
    [
        (GpuLease(), 1),
        (GpuLease(at_once=8, gpus=2, each=0.25), 4),
        (GpuLease(at_once=8, gpus=4, each=0.25), 2),
        (GpuLease(at_once=3, gpus=2, each=0.001), 2),
        (GpuLease(at_once=8, gpus=8, each=1.0), 1),
        (GpuLease(at_once=8, gpus=4, each=2.0), 1),
        (GpuLease(at_once=9), 3),
        (GpuLease(at_once=8, gpus=1, each=1 / 3), 3),
    ],
)
def test_tasks_on_a_gpu_are_counted(terms: GpuLease, tasks: int) -> None:
    assert sharers(terms, 4) == tasks
    assert allowance(TOTAL, terms._replace(share=0.5), 4) == TOTAL // 2 // tasks


@pytest.mark.parametrize("text", ["0", "-0.5", "1.01", "half", "nan", "inf"])
def test_a_share_is_a_part(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert memory_share("") == memory_share("1") == 1.0
    with pytest.raises(
        GpuLeaseError, match=f"WINNOW_GPU_SHARE is {text}: it must be a number above 0"
    ):
        memory_share(text)
    monkeypatch.setenv(gpu_lease.SHARE, text)
    running(monkeypatch)
    with pytest.raises(DeviceError, match="WINNOW_GPU_SHARE"):
        bind_task(GpuTerms())


@pytest.mark.parametrize(
    ("master", "given", "terms"),
    [
        ("local", {}, GpuTerms(1, failures=1)),
        ("local[3]", {"spark.task.maxFailures": "9"}, GpuTerms(3, failures=1)),
        ("local[*]", {}, GpuTerms(0, failures=1)),
        ("local[ 4 , 2 ]", {"spark.task.cpus": "2"}, GpuTerms(2, failures=2)),
        ("local-cluster[2,3,1024]", {"spark.task.maxFailures": "2"}, GpuTerms(3, failures=2)),
        ("yarn", {"spark.executor.cores": "6", "spark.task.cpus": "2"}, GpuTerms(3, failures=4)),
        (
            "spark://a:7077",
            {"spark.executor.resource.gpu.amount": "2", "spark.task.resource.gpu.amount": "0.5"},
            GpuTerms(0, 2, 0.5, 4),
        ),
    ],
)
def test_the_configuration_is_read(master: str, given: dict[str, str], terms: GpuTerms) -> None:
    assert terms_of(master, dict(given)) == terms


def running(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str] | None = None, number: int = 0,
    attempt: int = 0,
) -> None:  # fmt: skip
    """Make this process one that runs a Spark task."""
    resources = {} if addresses is None else {"gpu": SimpleNamespace(addresses=addresses)}
    task = SimpleNamespace(
        resources=lambda: resources, partitionId=lambda: number, attemptNumber=lambda: attempt
    )
    monkeypatch.setattr(gpu.TaskContext, "get", lambda: task)


def test_a_worker_serves_one_task_after_the_other(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(gpu_lease.SHARE, "0.5")
    terms = GpuTerms(at_once=4, gpus=2, each=0.5, failures=4)
    for number, address in enumerate(["1", "3", "1"]):
        running(monkeypatch, [address], number)
        bind_task(terms)
        device = devices.open_device()
        assert device.name == f"FakeCard {address}"
        assert cupy.state.current == int(address)
        device.zeros(1_000_000, np.int8)
    assert dict(cupy.state.used) == {1: 2_000_000, 3: 1_000_000}
    assert cupy.state.limits == {1: TOTAL // 4, 3: TOTAL // 4}
    assert device.free_bytes() == TOTAL // 4 - 2_000_000


def test_what_others_hold_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy(1, taken=TOTAL * 3 // 4))
    grant(GpuLease(share=0.5))
    device = devices.open_device()
    assert device.free_bytes() == TOTAL // 4
    device.zeros(TOTAL // 4, np.int8)
    assert device.free_bytes() == 0


def test_a_process_of_its_own_has_the_whole_device(cupy: Any) -> None:
    device = devices.open_device()
    assert isinstance(device, CudaDevice)
    assert device.free_bytes() == TOTAL
    assert not cupy.state.limits


def test_the_order_of_addresses_is_told_before_cuda_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    import os  # noqa: PLC0415 - the only test that looks

    running(monkeypatch)
    bind_task(GpuTerms())
    assert gpu_lease.ORDER not in os.environ
    running(monkeypatch, ["0"])
    bind_task(GpuTerms())
    assert os.environ.pop(gpu_lease.ORDER) == "PCI_BUS_ID"
    monkeypatch.setenv(gpu_lease.ORDER, "FASTEST_FIRST")
    bind_task(GpuTerms())
    assert os.environ[gpu_lease.ORDER] == "FASTEST_FIRST"


def test_a_device_that_is_not_there_is_no_fault_to_fall_back_from(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    del cupy
    running(monkeypatch, ["7"])
    bind_task(GpuTerms(failures=4))
    with pytest.raises(DeviceError, match="Spark gave GPU 7"):
        attempt(Wanted(GPU), lambda _: 1)


class CudaAPIError(Exception):
    """As numba-cuda's."""


FAULTS = [CudaAPIError("[700] illegal address"), MemoryError("out of memory"), RuntimeError("lost")]


@pytest.mark.parametrize("demanded", [False, True])
@pytest.mark.parametrize("error", FAULTS)
def test_a_fault_is_for_another_process_while_there_is_another_attempt(
    error: Exception, demanded: bool, cupy: Any
) -> None:
    del cupy

    def failing(_: Any) -> int:
        raise error

    grant(GpuLease(attempt=2, again=True))
    with pytest.raises(GpuFaultError, match=type(error).__name__):
        attempt(Wanted(GPU, demanded), failing)
    grant(GpuLease(attempt=3))
    if demanded:
        with pytest.raises(DeviceError, match=r"--device gpu: .* at attempt 4; use --device auto"):
            attempt(Wanted(GPU, demanded), failing)
    else:
        result, choice = attempt(Wanted(GPU), failing)
        assert result is None
        assert choice.reason.endswith(", at attempt 4; done on the CPU")


def test_what_fails_everywhere_is_not_tried_again(cupy: Any) -> None:
    del cupy

    def failing(_: Any) -> int:
        raise TooLargeError("9 bytes and 3 are free")

    grant(GpuLease(again=True))
    assert attempt(Wanted(GPU), failing)[0] is None


def test_the_cpu_begins_when_the_device_has_its_memory_back(cupy: Any) -> None:
    """The arrays of work that failed live in the frames of its exception."""
    import gc  # noqa: PLC0415 - the only test that looks
    import weakref  # noqa: PLC0415 - the same

    class Held:
        """An array that can be watched."""

    held: list[Any] = []

    def failing(_: Any) -> int:
        array = Held()
        held.append(weakref.ref(array))
        raise RuntimeError("lost")

    gc.disable()
    try:
        attempt(Wanted(GPU), failing)
        held.append(held[0]())
    finally:
        gc.enable()
    assert held[1] is None
    del cupy


class Elsewhere(SerialExecutor):
    """Runs tasks here, and says that they run on two machines with GPUs."""

    slots = 2

    def map(self, function: Any, items: Any) -> Iterator[Any]:
        """Apply the function where GPUs are seen."""
        with pytest.MonkeyPatch.context() as there:
            there.setattr(devices, "gpu_seen", lambda: (True, "seen there"))
            yield from super().map(function, items)


def test_the_machines_of_the_tasks_are_asked_for_their_gpus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(devices, "gpu_seen", lambda: (False, "none here"))
    assert wanted_device("auto", Elsewhere()).choice == Choice("gpu", "seen there")
    assert wanted_device("gpu", Elsewhere()).demanded
    assert wanted_device("cpu", Elsewhere()).choice.device == "cpu"
    assert wanted_device("auto", SerialExecutor()).choice == Choice("cpu", "none here")
    with pytest.raises(DeviceError, match="none here"):
        wanted_device("gpu", SerialExecutor())


def test_an_executor_is_asked_for_its_gpus_once() -> None:
    asked = []

    class Counted(Elsewhere):
        def map(self, function: Any, items: Any) -> Iterator[Any]:
            asked.append(list(items))
            yield from super().map(function, asked[-1])

    one, other = Counted(), Counted()
    for executor in (one, one, other):
        assert wanted_device("auto", executor).choice == Choice("gpu", "seen there")
    assert wanted_device("gpu", one).demanded
    assert asked == [["auto"], ["auto"], ["gpu"]]


def lane(rows: int) -> Any:
    sides = SimpleNamespace(rows=rows), SimpleNamespace(rows=0)
    return SimpleNamespace(profile=sides, rows=rows)


def test_lanes_are_dealt_out_over_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_groups, "GROUP_ROWS", 10)
    wanted = Wanted(GPU)

    def rows(sizes: list[int], slots: int) -> list[list[int]]:
        groups = grouped([lane(size) for size in sizes], wanted, slots)
        return [[task.profile[0].rows for task in group.tasks] for group in groups]

    assert rows([6, 5, 4, 3], 0) == [[6], [5, 4], [3]]
    assert rows([6, 5, 4, 3], 2) == [[6, 3], [5, 4]]
    assert rows([6, 5], 4) == [[6], [5]]
    assert rows([9, 9, 9], 1) == [[9], [9], [9]]


def test_a_device_of_no_such_name_is_refused_at_the_call(spark: Any, tmp_path: Path) -> None:
    folder = write(tmp_path, drawn(1, 20), drawn(2, 20))
    left, right = (spark.read.parquet(str(folder / f"{s}.parquet")) for s in ("left", "right"))
    given = {"on": "k", "time": "t", "window": 9, "memory": 3}
    with pytest.raises(SpecError, match="device is 'gup'; choose one of auto, cpu, gpu"):
        replay(left, right, device="gup", **given)
    with pytest.raises(Exception, match=r"DeviceError: device gpu: .*; install winnowjoin\[gpu\]"):
        replay(left, right, device="gpu", **given).collect()


def test_tasks_know_their_number(spark: Any) -> None:
    """Without GPUs of Spark's the turn deals devices out, and a task's number is its turn."""

    def seen(_: int) -> Any:  # by value: the workers cannot import the tests
        from gpu_kernels.gpu_lease import current_lease  # noqa: PLC0415 - there

        return current_lease()

    found = list(SparkExecutor(spark).map(seen, range(8)))
    assert [terms.turn for terms in found] == [0, 1] * 4  # four jobs of two tasks each
    assert {terms._replace(turn=0) for terms in found} == {GpuLease(at_once=2)}
