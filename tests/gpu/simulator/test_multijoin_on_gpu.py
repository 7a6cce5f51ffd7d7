"""`winnow multijoin --device gpu`, in the CUDA simulator: the rows and the report of the CPU's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from engine.api.multijoin import multijoin
from engine.runtime.errors import DeviceError
from gpu_kernels.devices import SimulatedDevice

JOIN = {
    "predicate": "band:v:1", "time": "t", "window": 8, "basic_window": 2, "adapt_every": 5,
    "shred": 0.4,
}  # fmt: skip
UNLIKE = {"seconds", "tuples_per_second", "device"}


def streams() -> dict[str, pa.Table]:
    rng = np.random.default_rng(3)
    return {
        name: pa.table({"t": np.sort(rng.integers(0, 14, 9)), "v": rng.integers(0, 3, 9) / 2.0})
        for name in ("a", "b", "c")
    }


@pytest.mark.parametrize("shed", [{"throttle": 0.4}, {"capacity": 8.0, "buffer": 2}])
def test_rows_and_report_are_those_of_the_cpu(shed: dict[str, float]) -> None:
    cpu, gpu = (multijoin(streams(), device=device, **JOIN, **shed) for device in ("cpu", "gpu"))
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
