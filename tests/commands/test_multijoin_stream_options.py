"""Options of `winnow multijoin` that are told by stream."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.commands import main


def test_what_is_told_by_stream_may_be_told_one_by_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text(f"k,{name}\n1,0\n1,4\n1,9\n")
    streams = [f"--stream={name}={tmp_path}/{name}.csv" for name in ("a", "b")]
    reports = []
    for told in (
        "--time a=a,b=b --window a=5,b=9",
        "--time a=a --time b=b --window a=5 --window b=9",
        "--time a=a --time b=b --window 9 --window a=5",
    ):
        report = tmp_path / "report.json"
        words = ["multijoin", *streams, "--predicate", "equi:k", "--engine", "local", *told.split()]
        assert main([*words, "--report", str(report)]) == 0
        reports.append(json.loads(report.read_text()))
    assert [own["window"] for own in reports] == [
        {"a": 5, "b": 9, "tick": "tick", "zone": None}
    ] * 3
    assert len({own["result"]["outputs"] for own in reports}) == 1


def test_two_values_for_all_streams_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text("k,t\n1,0\n")
    words = [f"--stream={name}={tmp_path}/a.csv" for name in ("a", "b")]
    command = "--predicate equi:k --engine local --time t --window 5 --window 7"
    assert main(["multijoin", *words, *command.split()]) == 2
    assert "--window has more than one value for all streams: give one" in capsys.readouterr().err


@pytest.mark.parametrize("told", ['["g", "h"]', '"g,h"', '{a = ["g", "h"], b = "g,h"}'])
def test_a_job_file_lists_the_columns_of_all_streams(tmp_path: Path, told: str) -> None:
    (tmp_path / "a.csv").write_text("k,t,g,h\n1,0,1,1\n1,0,1,2\n1,0,2,2\n")
    (tmp_path / "job.toml").write_text(f'predicate = "equi:k"\npartition_by = {told}\n')
    words = [f"--stream={name}={tmp_path}/a.csv" for name in ("a", "b")]
    words += ["--job", f"{tmp_path}/job.toml", "--report", f"{tmp_path}/report.json"]
    assert main(["multijoin", *words, "--engine=local", "--time=t", "--window=5"]) == 0
    assert json.loads((tmp_path / "report.json").read_text())["result"]["outputs"] == 3
