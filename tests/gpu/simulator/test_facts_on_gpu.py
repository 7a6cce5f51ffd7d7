"""`--fact` with `--device gpu`, in the CUDA simulator: rows and reports of the CPU."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fact_job_cases import JOIN, NAMES, Case, case, rows_of
from sweep_cases import FIGURES
from test_replay_on_gpu import alike
from thorough import repeats

from engine.commands import main

Table = list[dict[str, Any]]


def small(seed: int) -> Case:
    """Return streams that fall into lanes: their facts have parts of their own."""
    one = case(seed, 100)
    apart = [(a, a if a < 3 else 3 + b % 2, *rest) for a, b, *rest in one.facts]
    return one._replace(facts=apart)  # type: ignore[arg-type]


def told(one: Case, folder: Path, command: str, **options: Any) -> list[str]:
    """Return a command line; None leaves an option out."""
    return spelt(command, JOIN | NAMES | one.written(folder), folder, options)


def spelt(command: str, base: dict[str, Any], folder: Path, options: dict[str, Any]) -> list[str]:
    settled = base | {"engine": "local", "cache": folder / "cache", "memory": 12} | options
    words = [f"--{k.replace('_', '-')}={v}" for k, v in settled.items() if v is not None]
    return [command, *words]


def replayed(one: Case, folder: Path, device: str, **options: Any) -> tuple[Any, dict[str, Any]]:
    out, report = folder / f"out {device}", folder / f"{device}.json"
    assert main(told(one, folder, "replay", out=out, report=report, device=device, **options)) == 0
    found = json.loads(report.read_text())
    found["out"] = None
    return rows_of(pq.read_table(out)), found


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("dgl", {"probe": "after_admission"}),
        ("dimpprob", {"lanes": 3}),
        ("multiplicative", {"estimator": "history"}),
        ("simpprob", {"estimator": "window", "lanes": 2}),
        ("age", {"start_ts": 30}),
        ("yield", {"lanes": 2}),
        ("prob", {"split": "pooled", "lanes": 2}),
        ("dgl", {"split": "pooled", "start_ts": 30, "memory": 5}),
    ],
)
def test_rows_and_report_are_those_of_the_cpu(
    policy: str, options: dict[str, Any], tmp_path: Path
) -> None:
    one = small(21)
    ref = replayed(one, tmp_path, "cpu", policy=policy, **options)
    comp = replayed(one, tmp_path, "gpu", policy=policy, **options)
    assert comp[0] == ref[0]
    assert len(comp[0]) > 0
    assert alike(comp[1]) == alike(ref[1])
    assert (comp[1]["device"]["used"], ref[1]["device"]["used"]) == ("gpu", "cpu")


def test_groups_are_lanes(tmp_path: Path) -> None:
    one = small(22)
    base = JOIN | NAMES | one.written(tmp_path)
    for name, own in zip(("left", "right"), one.tables, strict=True):
        groups = pa.array([f"g{i % 3}" for i in range(own.num_rows)])
        pq.write_table(own.append_column("g", groups), tmp_path / f"{name}.parquet")
    found = []
    for device in ("cpu", "gpu"):
        out = tmp_path / device
        options = {"out": out, "device": device, "partition_by": "g", "policy": "prob"}
        assert main(spelt("replay", base, tmp_path, options)) == 0
        found.append(rows_of(pq.read_table(out)))
    assert found[0] == found[1]
    assert len(found[0]) > 0


def swept(one: Case, folder: Path, device: str, **options: Any) -> tuple[Table, dict[str, Any]]:
    out = folder / f"sweep {device}"
    settled = {"window": None, "memory": "6,30%", "device": device, "out": out}
    assert main(told(one, folder, "sweep", **settled | options)) == 0
    table = pq.read_table(out / "sweep.parquet")
    report = json.loads((out / "sweep.json").read_text())
    return table.to_pylist(), report


@pytest.mark.parametrize(
    ("estimator", "windows", "cells"),
    [("memory", "9", 10), ("history", "4", 10), *repeats([("window", "4,9", 20)])],
)
def test_a_sweep_s_cells_are_those_of_the_cpu(
    estimator: str, windows: str, cells: int, tmp_path: Path
) -> None:
    one = small(23)
    options = {"policies": "dgl,yield,dimpprob,rand", "seeds": "0,3", "estimator": estimator}
    options["windows"] = windows
    ref = swept(one, tmp_path, "cpu", **options)
    comp = swept(one, tmp_path, "gpu", **options)
    assert comp[1]["device"]["used"] == "gpu"
    assert len(comp[0]) == len(ref[0]) == cells
    for ours, theirs in zip(comp[0], ref[0], strict=True):
        for name in FIGURES:
            close = pytest.approx(theirs[name], rel=1e-12)
            assert ours[name] == (close if name.startswith("importance") else theirs[name]), ours


def test_what_joins_the_lanes_must_fit_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("engine.device.batches.HOST_BYTES_A_PARTNER", 2**50)
    assert main(told(small(26), tmp_path, "replay", device="gpu")) != 0
    assert "what joins the lanes takes" in capsys.readouterr().err
