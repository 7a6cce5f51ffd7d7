"""Options that would do nothing are refused, or warned of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from job_cases import arguments, streams
from options_given import line_of

import winnow
from engine.commands import main
from engine.runtime.errors import SpecError
from engine.runtime.warned import WinnowWarning


@pytest.mark.parametrize(
    "given",
    [
        {"param": "alpha=3"},
        {"estimator": "window"},
        {"probe": "after_admission"},
        {"bound": "dual"},
    ],
)
def test_parameters_and_estimators_need_a_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: dict[str, Any]
) -> None:
    folder = streams(tmp_path).folder
    assert main(arguments(folder, memory=None, **given)) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"--{next(iter(given))} is of a replay within a memory" in said
    assert main(arguments(folder, memory=None, memory_left=3, **given)) == 0


def test_a_policy_without_a_memory_is_warned_of(tmp_path: Path) -> None:
    own = streams(tmp_path).folder
    join: dict[str, Any] = {"on": "k", "time": "t", "window": 9, "cache": tmp_path / "cache"}
    places = own / "left.parquet", own / "right.parquet"
    with pytest.warns(WinnowWarning, match="policy dgl decides nothing: without memory"):
        winnow.replay(*places, policy="dgl", **join)
    winnow.replay(*places, policy="auto", **join)
    with pytest.raises(SpecError, match="estimator is of a replay within a memory"):
        winnow.replay(*places, estimator="window", **join)


def test_a_bound_without_a_memory_is_warned_of(tmp_path: Path) -> None:
    own = streams(tmp_path).folder
    join: dict[str, Any] = {"on": "k", "time": "t", "window": 9, "cache": tmp_path / "cache"}
    places = own / "left.parquet", own / "right.parquet"
    with pytest.warns(WinnowWarning, match="without memory all tuples fit, and the best possible"):
        winnow.bound(*places, **join)
    winnow.bound(*places, memory_left=3, **join)


def test_age_buckets_are_of_measured_curves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(streams(tmp_path).folder, policy="age", param="buckets=5")
    for curves in (["curve=1,2"], ["curve_left=1,2", "curve_right=3"]):
        assert main([*words, *(f"--param={own}" for own in curves)]) == 2
        assert "parameter buckets of policy age is of curves that are measured" in (
            capsys.readouterr().err
        )
    assert main([*words, "--param", "curve_left=1,2"]) == 0


def test_a_job_file_names_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job = tmp_path / "job.toml"
    job.write_text('job = "/no/such/file.toml"\n')
    assert main(arguments(streams(tmp_path).folder, job=job)) == 2
    assert f"job file {job} names a job, and none is read from there: leave it out" in (
        capsys.readouterr().err
    )


def test_confidence_needs_an_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    streams(tmp_path)
    own = {"engine": "local", "on": "k", "time": "t", "windows": "9", "memory": "10"}
    own |= {side: str(tmp_path / f"{side}.parquet") for side in ("left", "right")}
    assert main(line_of("sweep", own | {"confidence": 0.5})) == 2
    assert "--confidence is of the intervals of estimates: give --within" in " ".join(
        capsys.readouterr().err.split()
    )


def test_two_names_of_one_parameter_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = arguments(streams(tmp_path).folder, param="initial=importance")
    assert main([*words, "--param", "dgl_initial=simpprob"]) == 2
    assert "parameter initial of policy dgl is given twice, also as dgl_initial" in " ".join(
        capsys.readouterr().err.split()
    )


@pytest.mark.parametrize(
    ("kind", "given", "of"),
    [
        ("constant", {"importance_low": 3}, "uniform or rare-high or inverse-frequency"),
        ("exponential", {"importance_high": 3}, "uniform or rare-high"),
        ("uniform", {"rare_fraction": 0.1}, "rare-high"),
        ("uniform", {"rare_max": 30}, "rare-high or inverse-frequency"),
        ("rare-high", {"importance_mean": 3}, "exponential"),
    ],
)
def test_what_shapes_another_importance_is_refused(
    kind: str, given: dict[str, Any], of: str
) -> None:
    told = f"{next(iter(given))} is of importance {of}, and it is {kind}: leave it out"
    with pytest.raises(SpecError, match=told):
        winnow.generate("zipf", rows=9, domain=3, importance=kind, **given)
