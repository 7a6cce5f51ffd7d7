"""`winnow sweep --device gpu`, in the CUDA simulator: every cell as on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import streams, table
from replay_cases import ESTIMATORS, PROBES, remaining
from sweep_cases import swept, swept_alike
from thorough import THOROUGH, repeats

from engine.policies import POLICIES
from engine.runtime.errors import DeviceError
from gpu_kernels.devices import SimulatedDevice

GRID: dict[str, Any] = {
    "policies": ",".join(POLICIES),
    "memory": "0,7,20%,300",
    "windows": "3,9" if THOROUGH else "9",
    "seeds": "0,5",
    "params": {"custom.function": remaining, "multiplicative.A": 0.5, "prob.ties": "importance"},
}


def compared(folder: Path, **options: Any) -> dict[str, Any]:
    comp = swept_alike(folder, **GRID | options)
    assert comp.table.num_rows >= 2 * len(GRID["policies"].split(","))
    assert min(comp.table["seconds"].to_pylist()) >= 0
    device: dict[str, Any] = comp.report["device"]
    return device


@pytest.mark.parametrize(
    ("estimator", "probe", "memory"),
    [
        ("memory", "before_admission", "7,300"),
        ("window", "after_admission", "0,20%"),
        ("history", "before_admission", "7,20%"),
        *repeats([(own, probe, GRID["memory"]) for own in ESTIMATORS for probe in PROBES]),
    ],
)
def test_cells_are_those_of_the_cpu(
    estimator: str, probe: str, memory: str, tmp_path: Path
) -> None:
    streams(tmp_path, rows=50)
    device = compared(tmp_path, estimators=estimator, probe=probe, memory=memory)
    assert device["used"] == "gpu"


def test_cells_of_one_memory_for_both_sides(tmp_path: Path) -> None:
    streams(tmp_path, rows=50)
    grid: dict[str, Any] = {
        "memory": "1,20%",
        "windows": "5",
        "seeds": "0",
        "estimators": "memory,window",
    }
    if not THOROUGH:
        grid |= {"policies": "age,dgl,dimpprob,prob,yield", "params": {}}
    device = compared(tmp_path, splits="even,pooled", lanes=2, **grid)
    assert device["used"] == "gpu"


def test_groups_and_lanes(tmp_path: Path) -> None:
    made = streams(tmp_path, rows=50)
    for side in ("left", "right"):
        rows = getattr(made, side)
        groups = pa.array([f"g{i % 2}" for i in range(len(rows))])
        pq.write_table(table(rows, g=groups), tmp_path / f"{side}.parquet")
    grid = {"memory": "7,20%", "seeds": "0"}
    assert compared(tmp_path, partition_by="g", lanes=2, **grid)["used"] == "gpu"


def test_a_device_too_small_is_an_error_when_demanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams(tmp_path, rows=50)
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 500)
    with pytest.raises(DeviceError, match="does not fit on the GPU"):
        swept(tmp_path, device="gpu", **GRID)
