"""`winnow replay --device gpu`, in the CUDA simulator: the rows and the report of the CPU's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from job_cases import arguments, streams, table, winnow

from engine.commands import main
from engine.device.exact import ExactRows
from engine.exact.counted import CountedStream
from engine.policies import POLICIES
from engine.runtime.device_choice import Wanted
from gpu_kernels.devices import Choice, SimulatedDevice, TooLargeError

NUMBERED = [name for name in sorted(POLICIES) if name != "custom"]
UNLIKE = {"seconds", "tuples_per_second", "device"}


ORDER = [("ts", "ascending"), ("left_row", "ascending"), ("right_row", "ascending")]


def alike(report: dict[str, Any]) -> dict[str, Any]:
    """Return what must be equal; sums to nine digits, since residents are met in any order."""

    def rounded(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: rounded(one) for name, one in value.items()}
        if isinstance(value, list):
            return [rounded(one) for one in value]
        return float(f"{value:.9g}") if isinstance(value, float) else value

    return {name: rounded(value) for name, value in report.items() if name not in UNLIKE}


def both(folder: Path, **options: Any) -> tuple[Any, Any]:
    found = []
    for device in ("cpu", "gpu"):
        out = folder / device
        out.mkdir()
        places = {"out": out / "out", "report": out / "report.json", "cache": out / "cache"}
        told = places | {"device": device} | options
        assert main(arguments(folder, **told)) == 0
        report = json.loads((out / "report.json").read_text())
        rows = pq.read_table(out / "out").sort_by(ORDER) if told["out"] else pa.table({})
        found.append((rows, report))
        report["out"] = None
    return found[0], found[1]


@pytest.mark.parametrize("policy", NUMBERED)
def test_rows_and_report_are_those_of_the_cpu(policy: str, tmp_path: Path) -> None:
    streams(tmp_path)
    place = NUMBERED.index(policy)
    options = {
        "policy": policy,
        "estimator": ("memory", "window", "history")[place % 3],
        "probe": ("before_admission", "after_admission")[place % 2],
        "lanes": 1 + place % 4,
    }
    ref, comp = both(tmp_path, **options)
    assert comp[0].equals(ref[0])
    assert comp[0].num_rows > 0
    assert alike(comp[1]) == alike(ref[1])
    assert comp[1]["device"]["used"] == "gpu"
    assert "CUDA simulator" in comp[1]["device"]["reason"]
    assert ref[1]["device"] == {"used": "cpu", "reason": "asked for"}


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("prob", {"lanes": 3, "memory": "30%"}),
        ("dgl", {"probe": "after_admission", "start_ts": 9}),
        ("dimpprob", {"lanes": 2, "estimator": "window"}),
        ("yield", {"lanes": 2}),
    ],
)
def test_one_memory_for_both_sides(policy: str, options: dict[str, Any], tmp_path: Path) -> None:
    streams(tmp_path)
    ref, comp = both(tmp_path, policy=policy, **{"split": "pooled", "memory": 12} | options)
    assert comp[0].equals(ref[0])
    assert comp[0].num_rows > 0
    assert alike(comp[1]) == alike(ref[1])
    assert comp[1]["memory"]["split"] == "pooled"
    assert comp[1]["device"]["used"] == "gpu"


def test_the_exact_join_need_not_be_counted(tmp_path: Path) -> None:
    streams(tmp_path)
    ref, comp = both(tmp_path, policy="prob", lanes=3, memory="30%", reference="none")
    assert comp[0].equals(ref[0])
    assert comp[0].num_rows > 0
    assert comp[1]["device"]["used"] == "gpu"
    assert alike(comp[1]) == alike(ref[1])
    assert not {"exact", "recall", "lost"} & comp[1].keys()


def test_groups_of_a_partition_share_a_launch(tmp_path: Path) -> None:
    made = streams(tmp_path)
    for side in ("left", "right"):
        rows = getattr(made, side)
        groups = pa.array([f"g{i % 5}" for i in range(len(rows))])
        pq.write_table(table(rows, g=groups), tmp_path / f"{side}.parquet")
    ref, comp = both(tmp_path, partition_by="g", policy="prob")
    assert comp[0].equals(ref[0])
    assert comp[1]["lanes"]["groups"] == 5
    assert alike(comp[1]) == alike(ref[1])


@pytest.mark.parametrize(
    "options",
    [
        {"lanes": 1, "columns": "all"},
        {"lanes": 3, "start_ts": 9, "combine": "product"},
        {"lanes": 3, "out": None},
    ],
    ids=str,
)
@pytest.mark.parametrize("rows", [20, 2_000_000])
def test_an_exact_join_is_that_of_the_cpu_to_the_last_digit(
    options: dict[str, Any], rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where lanes are cut in time."""
    monkeypatch.setattr("engine.jobs.replay.slices.SLICE_ROWS", rows)
    streams(tmp_path)
    ref, comp = both(tmp_path, memory=None, **options)
    assert comp[0].equals(ref[0])
    assert comp[1]["result"]["outputs"] > 0
    assert comp[1]["device"]["used"] == "gpu"
    assert {**comp[1], **dict.fromkeys(UNLIKE)} == {**ref[1], **dict.fromkeys(UNLIKE)}


@pytest.mark.parametrize("rows", [20, 2_000_000])
def test_the_exact_count_beside_a_replay_is_the_cpu_s_to_the_last_digit(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where heavy lanes are counted before, in slices of time."""
    monkeypatch.setattr("engine.jobs.replay.slices.SLICE_ROWS", rows)
    streams(tmp_path)
    counted: list[CountedStream] = []
    push = CountedStream.push

    def noted(self: CountedStream, *batch: Any) -> None:
        counted.append(self)
        push(self, *batch)

    monkeypatch.setattr(CountedStream, "push", noted)
    ref, comp = both(tmp_path, policy="prob", lanes=2)
    assert counted
    assert comp[1]["exact"] == ref[1]["exact"]
    ours, theirs = (report["lost"]["top_keys"] for report in (comp[1], ref[1]))
    for one, other in zip(ours, theirs, strict=True):
        assert one["exact_importance"] == other["exact_importance"]


def test_the_report_says_what_is_counted_on_the_cpu(tmp_path: Path) -> None:
    streams(tmp_path)
    device = winnow(tmp_path, policy="age", device="gpu").report["device"]
    assert device["used"] == "gpu"
    assert device["reason"].endswith("; matches by age are counted on the CPU")


def test_an_exact_join_that_fails_in_the_middle_is_made_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams(tmp_path)
    ref = winnow(tmp_path, memory=None, device="cpu")
    found = Wanted(Choice("gpu", "there is one"))
    monkeypatch.setattr("engine.jobs.replay.run.wanted_device", lambda *_: found)
    monkeypatch.setattr("engine.runtime.device_choice.COUNTED_A_CORE", 0)

    def lost(*_: Any) -> Any:
        raise RuntimeError("CUDA_ERROR_LAUNCH_FAILED")

    monkeypatch.setattr(ExactRows, "push", lost)
    again = winnow(tmp_path, memory=None, device="auto", out=tmp_path / "other")
    assert again.table.sort_by(ORDER).equals(ref.table.sort_by(ORDER))
    assert again.report["device"]["used"] == "cpu"
    assert "CUDA_ERROR_LAUNCH_FAILED" in again.report["device"]["reason"]


def test_a_demanded_device_that_is_too_small_is_an_error_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    streams(tmp_path)
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 100)
    assert main(arguments(tmp_path, device="gpu")) != 0
    assert "does not fit on the GPU" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_what_fails_in_the_middle_is_done_again_on_the_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As under auto with a GPU: the choice is made up, and the launch fails."""
    streams(tmp_path)
    ref = winnow(tmp_path, device="cpu")
    for name in ("gpu_seen", "_simulated"):
        answer = {"gpu_seen": (True, "CuPy sees 1"), "_simulated": False}[name]
        monkeypatch.setattr(f"gpu_kernels.devices.{name}", lambda answer=answer: answer)
    monkeypatch.setattr("gpu_kernels.devices.CudaDevice", SimulatedDevice)
    monkeypatch.setattr("engine.runtime.device_choice.LANES_A_CORE", 0)

    def lost(*_: Any, **__: Any) -> None:
        raise RuntimeError("CUDA_ERROR_LAUNCH_FAILED")

    other = tmp_path / "other"
    other.mkdir()
    with monkeypatch.context() as broken:
        broken.setattr(SimulatedDevice, "launch", lost)
        told = {"out": other / "out", "report": other / "report.json", "device": "auto"}
        assert main(arguments(tmp_path, **told)) == 0
    report = json.loads((other / "report.json").read_text())
    assert pq.read_table(other / "out").sort_by(ORDER).equals(ref.table.sort_by(ORDER))
    assert report["device"]["used"] == "cpu"
    assert "CUDA_ERROR_LAUNCH_FAILED" in report["device"]["reason"]
    assert TooLargeError.__name__ not in report["device"]["reason"]
