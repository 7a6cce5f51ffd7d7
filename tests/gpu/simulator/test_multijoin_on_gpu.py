"""`winnow multijoin --device gpu`, in the CUDA simulator: the rows and the report of the CPU's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from engine.device import multiway
from engine.runtime.device_choice import ASKED_FOR_CPU, Wanted
from engine.runtime.errors import DeviceError
from gpu_kernels.devices import Choice, SimulatedDevice
from gpu_kernels.harvest.on_device import DeviceHarvest
from winnow import multijoin

JOIN = {
    "predicate": "band:v:1", "time": "t", "window": 8, "basic_window": 2, "adapt_every": 5,
    "shred": 0.4,
}  # fmt: skip
BRUTE_FORCE = {"optimiser": "brute-force", "basic_window": 5}
"""729 settings."""
UNLIKE = {"seconds", "tuples_per_second", "device"}


def streams() -> dict[str, pa.Table]:
    rng = np.random.default_rng(3)
    return {
        name: pa.table({"t": np.sort(rng.integers(0, 14, 9)), "v": rng.integers(0, 3, 9) / 2.0})
        for name in ("a", "b", "c")
    }


@pytest.mark.parametrize(
    "shed",
    [
        {"throttle": 0.4},
        {"capacity": 8.0, "buffer": 2},
        {"throttle": 0.4, **BRUTE_FORCE},
    ],
    ids=str,
)
def test_rows_and_report_are_those_of_the_cpu(shed: dict[str, Any]) -> None:
    job = JOIN | shed
    cpu, gpu = (multijoin(streams(), device=device, **job) for device in ("cpu", "gpu"))
    assert cpu.report["device"] == {"used": "cpu", "reason": "asked for"}
    assert gpu.report["device"]["used"] == "gpu"
    assert cpu.outputs is not None
    assert gpu.outputs is not None
    assert cpu.outputs.num_rows
    order = [(f"{name}_row", "ascending") for name in ("a", "b", "c")]
    assert gpu.outputs.sort_by(order).equals(cpu.outputs.sort_by(order))
    for name in cpu.report.keys() - UNLIKE:
        assert gpu.report[name] == cpu.report[name], name


def test_a_gpu_that_fails_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(SimulatedDevice, "upload", refused)
    with pytest.raises(DeviceError, match=r"device gpu: .*out of order.*use device auto or cpu"):
        multijoin(streams(), device="gpu", throttle=0.4, **JOIN)


def brute_force(monkeypatch: pytest.MonkeyPatch, searched: int) -> dict[str, str]:
    """Return the device that the report of a join has where auto found a GPU."""
    monkeypatch.setattr(multiway, "SEARCHED", searched)
    found = {"auto": Wanted(Choice("gpu", "there is one")), "cpu": ASKED_FOR_CPU}
    monkeypatch.setattr("engine.jobs.multijoin.harvested.wanted_device", found.__getitem__)
    job = JOIN | BRUTE_FORCE | {"throttle": 0.4}
    join, cpu = multijoin(streams(), **job), multijoin(streams(), device="cpu", **job)
    assert join.report["harvest"] == cpu.report["harvest"]
    return dict(join.report["device"])


def test_many_settings_are_searched_where_the_tuples_are_probed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = brute_force(monkeypatch, 1)
    assert found == {"used": "gpu", "reason": f"there is one: {SimulatedDevice.name}"}


def test_few_settings_are_searched_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    found = brute_force(monkeypatch, 1 << 26)
    few = "729 harvest settings are too few to be searched faster on a GPU"
    assert found["used"] == "gpu, cpu"
    assert found["reason"] == f"probes: there is one: {SimulatedDevice.name}; settings: {few}"


def test_a_search_that_fails_is_done_on_the_cpu_and_so_are_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried = []

    def failing(*_: object) -> None:
        tried.append(1)
        raise MemoryError("no room")

    monkeypatch.setattr(DeviceHarvest, "best", failing)
    found = brute_force(monkeypatch, 1)
    assert "settings: the GPU failed (MemoryError: no room); done on the CPU" in found["reason"]
    assert len(tried) == 1
