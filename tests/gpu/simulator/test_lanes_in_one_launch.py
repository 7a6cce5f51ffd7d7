"""Harvested joins side by side whose probes a device makes together: each as the CPU's alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from multiway_cases import PREDICATES, random_streams

import winnow
from engine.device.multiway import prober_on
from engine.device.together import JoinsTogether
from engine.multiway.harvest.operator import GrubJoin
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.prober import MakeProber
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.streams import MultiStreams, windows_of
from engine.runtime.device_choice import Wanted
from engine.runtime.errors import DeviceError
from gpu_kernels.devices import Choice, SimulatedDevice
from gpu_kernels.multiway import on_device

WANTED = Wanted(Choice("gpu", "there is one"))
SETTINGS: tuple[dict[str, Any], ...] = (
    {"throttle": 0.5, "basic_window": 3, "shred": 0.4, "adapt_every": 9},
    {"capacity": 25.0, "basic_window": 4, "buffer": 2, "shred": 0.5, "adapt_every": 6},
)
SIZES = ((12, 9, 14), (0, 5, 3), (15, 16, 13), (2, 1, 0))
ORDERS = ([[1, 2], [0, 2], [0, 1]], [[2, 1], [2, 0], [1, 0]])


class Noted(SimulatedDevice):
    """A device that notes what is launched, and fails from some launch of the counts on."""

    def __init__(self, allowed: int = 1 << 30) -> None:
        self.launched: list[str] = []
        self.allowed = allowed

    def launch(self, kernel: Any, *given: Any, **named: Any) -> None:
        """Launch, if that is allowed."""
        name = kernel.function.__name__
        if name == "count" and self.launched.count("count") == self.allowed:
            raise RuntimeError("CUDA_ERROR_LAUNCH_FAILED")
        self.launched.append(name)
        super().launch(kernel, *given, **named)


def run(at: int, streams: MultiStreams, kind: str, make: MakeProber | None, **given: Any) -> Any:
    """Return everything that a join comes to."""
    join = GrubJoin(
        streams, windows_of([12, 9, 11]), PREDICATES[kind],
        HarvestSettings(forget=0.9, buckets=2, **given), ORDERS[at % 2], combine="sum", prober=make,
    )  # fmt: skip
    parts = list(join.run())
    members = [row for part in parts for row in part.members.tolist()]
    importance = [own for part in parts for own in part.importance.tolist()]
    return members, importance, join.comparisons, join.importance, join.steps, join.peak


def on_cpu(*join: Any) -> CpuProber:
    return CpuProber(*join, 1)


def together(lanes: list[MultiStreams], kind: str, device: SimulatedDevice, **given: Any) -> Any:
    """Return what joins come to that run side by side, and what their reports say."""
    joins, told = JoinsTogether(lanes), []

    def one(at: int) -> Any:
        try:
            make, said = prober_on(WANTED, lambda: device, (joins, at))
            told.append(said)
            return run(at, lanes[at], kind, make, **given)
        finally:
            joins.left()

    with ThreadPoolExecutor(len(lanes)) as pool:
        return list(pool.map(one, range(len(lanes)))), told


@pytest.mark.parametrize("given", SETTINGS, ids=["throttle", "capacity"])
@pytest.mark.parametrize("kind", list(PREDICATES))
def test_each_is_the_one_of_the_cpu(
    kind: str, given: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(on_device, "CHUNK", 7)  # chunks that end in the middle of a lane
    lanes = [random_streams(i, own, kind, span=20, distinct=2) for i, own in enumerate(SIZES)]
    device = Noted()
    found, told = together(lanes, kind, device, **given)
    wanted = [run(i, own, kind, on_cpu, **given) for i, own in enumerate(lanes)]
    assert found == wanted
    assert sum(len(own[0]) for own in wanted)
    assert {own["used"] for own in told} == {"gpu"}
    alone = [Noted() for _ in lanes]
    for i, own in enumerate(lanes):
        run(i, own, kind, prober_on(WANTED, lambda i=i: alone[i])[0], **given)
    counts = [own.launched.count("count") for own in alone]
    assert max(counts) <= device.launched.count("count") < sum(counts)


def test_a_launch_that_fails_is_done_by_each_on_the_cpu() -> None:
    lanes = [random_streams(i, own, "band", span=20) for i, own in enumerate(SIZES)]
    found, told = together(lanes, "band", Noted(allowed=1), **SETTINGS[0])
    assert found == [run(i, own, "band", on_cpu, **SETTINGS[0]) for i, own in enumerate(lanes)]
    assert any("CUDA_ERROR_LAUNCH_FAILED" in own["reason"] for own in told)


def lanes_table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table({
        "t": np.sort(rng.integers(0, 30, 36)), "v": rng.integers(0, 4, 36) / 2.0,
        "room": rng.choice(["a", "b", "c"], 36),
    })  # fmt: skip


JOB: dict[str, Any] = {
    "predicate": "band:v:1", "time": "t", "window": 8, "basic_window": 2, "adapt_every": 5,
    "shred": 0.4, "partition_by": "room",
}  # fmt: skip


@pytest.mark.parametrize("shed", [{"throttle": 0.4}, {"capacity": 20.0}], ids=str)
def test_rows_and_report_of_a_job(shed: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    streams = {name: lanes_table(i) for i, name in enumerate(("x", "y", "z"))}
    launched = []
    launch = SimulatedDevice.launch

    def noted(own: Any, kernel: Any, *given: Any, **named: Any) -> None:
        launched.append(kernel.function.__name__)
        launch(own, kernel, *given, **named)

    monkeypatch.setattr(SimulatedDevice, "launch", noted)
    cpu, gpu = (winnow.multijoin(streams, device=own, **JOB, **shed) for own in ("cpu", "gpu"))
    by_rows = [(f"{name}_row", "ascending") for name in streams]
    assert gpu.outputs.sort_by(by_rows).equals(cpu.outputs.sort_by(by_rows))
    assert gpu.outputs.num_rows
    assert gpu.report["device"]["used"] == "gpu"
    assert gpu.report["slices"] == 1
    for name in cpu.report.keys() - {"seconds", "tuples_per_second", "device", "slices"}:
        assert gpu.report[name] == cpu.report[name], name
    shared = launched.count("count")
    monkeypatch.setattr("engine.jobs.multijoin.task.is_on_gpu", lambda _: False)
    winnow.multijoin(streams, device="gpu", **JOB, **shed)
    assert 0 < shared < launched.count("count") - shared


def test_a_gpu_that_is_demanded_and_fails_ends_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr(SimulatedDevice, "upload", refused)
    streams = {name: lanes_table(i) for i, name in enumerate(("x", "y", "z"))}
    with pytest.raises(DeviceError, match=r"device gpu: .*out of order.*use device auto or cpu"):
        winnow.multijoin(streams, device="gpu", throttle=0.4, **JOB)
