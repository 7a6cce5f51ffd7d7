"""`winnow bound --device gpu`, in the CUDA simulator: certified bounds and a plan that holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from job_cases import arguments, streams

from engine.commands import main
from gpu_kernels.devices import SimulatedDevice
from gpu_kernels.optimum import on_device, steps


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for module in (on_device, steps):
        monkeypatch.setattr(module, "THREADS", 32)
        monkeypatch.setattr(module, "launch_of", lambda *_: (1, 0))
    return streams(tmp_path, seed=4, rows=24).folder


def bound(folder: Path, **options: Any) -> dict[str, Any]:
    report = folder / "bound.json"
    told = {"out": None, "report": report, "window": 5, "memory": 2, "policy": None, **options}
    assert main(["bound", *arguments(folder, **told)[1:]]) == 0
    content: dict[str, Any] = json.loads(report.read_text())
    return content


def test_the_optimum_lies_between_the_bounds_of_the_gpu(folder: Path, tmp_path: Path) -> None:
    best = bound(folder, method="flow", device="cpu")
    found = bound(folder, method="dual", gap=0.4, seconds=1000, device="gpu", out=tmp_path / "plan")
    assert best["device"]["used"] == "cpu"
    assert found["device"]["used"] == "gpu"
    assert found["lower"] <= best["lower"] == best["upper"] <= found["upper"]
    assert found["gap"] <= 0.4
    told = {"plan": tmp_path / "plan", "report": tmp_path / "r.json", "out": None}
    assert main(arguments(folder, window=5, memory=2, **told)) == 0
    report = json.loads((tmp_path / "r.json").read_text())
    assert report["result"]["importance"] == pytest.approx(found["lower"], rel=1e-12)


def test_what_does_not_fit_is_done_on_the_cpu_or_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 1000)
    monkeypatch.setattr("engine.jobs.bound.task.GPU_ROWS", 1)
    words = arguments(folder, out=None, report=None, policy=None, device="gpu", window=5, memory=2)
    assert main(["bound", *words[1:]]) == 2
    assert "does not fit on the GPU" in capsys.readouterr().err
