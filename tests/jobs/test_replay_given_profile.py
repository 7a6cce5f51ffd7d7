"""What a profile tells replays, sweeps and allocations is said, and what it cannot is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from engine.commands import main

JOIN = "--on key --time ts --window 30 --memory 20% --engine local"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the streams and profiles of windows of 30 and of 100,000 ticks."""
    folder = tmp_path_factory.mktemp("told")
    assert main(f"generate zipf --rows 600 --domain 9 --seed 4 --out {folder}".split()) == 0
    for window in (30, 100_000):
        command = f"profile --window {window} --out {folder}/{window}.json {where(folder)}"
        assert main([*command.split(), *["--on", "key", "--time", "ts", "--engine", "local"]]) == 0
    return folder


def where(folder: Path) -> str:
    return f"--left {folder}/left.parquet --right {folder}/right.parquet --cache {folder}/cache"


def replayed(folder: Path, given: str, profile: str = "30.json") -> int:
    words = f"replay {where(folder)} {JOIN} --profile {folder}/{profile} {given}"
    return main([*words.split(), "--report", str(folder / "report.json")])


@pytest.mark.parametrize(
    ("given", "model"),
    [("--policy age", "age"), ("--policy prob --split expected", "frequency")],
)
def test_a_replay_says_who_told_it(
    folder: Path, capsys: pytest.CaptureFixture[str], given: str, model: str
) -> None:
    assert replayed(folder, given) == 0
    shown = capsys.readouterr().out
    assert "profile " in shown
    assert ("give --estimator history" in shown) == (model == "frequency")
    report = json.loads((folder / "report.json").read_text())
    assert report["policy"]["profile"] == str(folder / "30.json")
    assert report["predicted"]["model"] == model


def test_a_policy_that_counts_all_gets_no_hint(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(folder, "--policy prob --estimator history") == 0
    assert "give --estimator" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("--policy dgl", "policy dgl asks for neither: give --split expected as well"),
        ("--policy recent", "policy recent asks for neither"),
        ("--policy age --param curve=1,2", "policy age with curves of its own asks for neither"),
        ("--policy age --param curve_left=1 --param curve_right=2", "curves of its own"),
    ],
)
def test_a_profile_that_nothing_would_look_at_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], given: str, why: str
) -> None:
    assert replayed(folder, given) == 2
    assert why in capsys.readouterr().err


def test_one_curve_of_its_own_leaves_the_other_to_the_profile(folder: Path) -> None:
    assert replayed(folder, "--policy age --param curve_left=1,2") == 0


def test_a_replay_without_a_budget_asks_nothing(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"replay {where(folder)} {JOIN} --profile {folder}/30.json --policy age".split()
    at = words.index("--memory")
    assert main([*words[:at], *words[at + 2 :]]) == 2
    assert "a replay without a budget asks for neither" in capsys.readouterr().err
    assert main([*words[:-2], "--plan", str(folder / "none")]) == 2
    assert "a replay that follows a plan asks for neither: leave it out" in capsys.readouterr().err


def test_a_profile_of_far_longer_windows_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert replayed(folder, "--policy age", "100000.json") == 2
    assert "age buckets of 1000 ticks of stream left, and the window is 30" in (
        capsys.readouterr().err
    )


def test_a_profile_of_nothing_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty.csv").write_text("key,ts\n")
    words = f"profile --left {folder}/empty.csv --right {folder}/empty.csv --on key --time ts"
    words += f" --window 30 --engine local --cache {folder}/cache --out {folder}/nothing.json"
    assert main(words.split()) == 0
    capsys.readouterr()
    assert replayed(folder, "--policy age", "nothing.json") == 2
    assert "streams without rows: it tells nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ("--window-left 5", "windows in ticks of 30, and 5 and 30 is asked for"),
        ("--window 20", "windows in ticks of 30, and 20 is asked for"),
        ("--memory 21%", "--memory 1%, 5%, 10%, 25%, and 21% is asked for"),
        ("--left-importance ts", "--importance none, and ts and none is asked for"),
        ("--probe after_admission", "--probe before_admission, and after_admission is asked"),
        ("--start-ts 4", "--start-ts none, and 4 is asked for"),
        ("--memory 10% --estimator window", "--estimator memory, and window is asked for"),
    ],
)
def test_advice_that_does_not_apply_is_said_to_be_passed_over(
    folder: Path, capsys: pytest.CaptureFixture[str], given: str, why: str
) -> None:
    if "--memory" not in given:
        given += " --memory 10%"
    profile = json.loads((folder / "30.json").read_text())
    profile["advice"]["trials"][2]["estimator"] = "memory"
    (folder / "30_memory.json").write_text(json.dumps(profile))
    assert replayed(folder, given, "30_memory.json") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"warning: --profile advises for {why}" in said
    report = json.loads((folder / "report.json").read_text())
    assert report["advice"]["by"] is None
    unused = "--profile is not used: it tells age curves" in said
    assert unused == (report["policy"]["profile"] is None)


def test_advice_is_of_the_importance_that_was_measured(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"{where(folder)} --on key --time ts --window 30 --memory 10% --engine local"
    told = folder / "weighed.json"
    assert main(f"profile {words} --importance ts --out {told}".split()) == 0
    assert json.loads(told.read_text())["advice"]["importance"] == {"left": "ts", "right": "ts"}
    capsys.readouterr()
    assert replayed(folder, "--memory 10%", "weighed.json") == 0
    assert "advises for --importance ts, and none is asked for" in capsys.readouterr().err
    assert replayed(folder, "--memory 10% --importance ts", "weighed.json") == 0
    shown, said = capsys.readouterr()
    assert "advises" not in said
    assert "of other archives" not in shown


def test_advice_of_other_archives_says_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"generate zipf --rows 500 --domain 9 --seed 5 --out {folder}/b".split()) == 0
    words = f"replay {where(folder / 'b')} {JOIN} --memory 10% --profile {folder}/30.json"
    assert main([*words.split(), "--report", str(folder / "b.json")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "30.json, of other archives): importance recall" in shown
    assert " % there" in shown
    advice = json.loads((folder / "b.json").read_text())["advice"]
    assert (advice["by"], advice["other_archives"]) == (str(folder / "30.json"), True)


def test_a_trial_is_spared_where_the_profile_is_no_guide(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def trial(*_: object, **__: object) -> None:
        raise LookupError("a trial")

    monkeypatch.setattr("engine.jobs.trial.replay.run_trial", trial)
    assert replayed(folder, "--memory 10%", "100000.json") == 2
    assert "has age buckets of 1000 ticks of stream left" in capsys.readouterr().err


def test_advice_of_several_joins_is_followed(folder: Path) -> None:
    for side in ("left", "right"):
        streams = pq.read_table(folder / f"{side}.parquet")
        halves = pa.array(np.arange(streams.num_rows) % 2)
        pq.write_table(streams.append_column("half", halves), folder / f"{side}_halves.parquet")
    told, report = folder / "halves.json", folder / "report.json"
    words = where(folder).replace(".parquet", "_halves.parquet") + f" {JOIN} --partition-by half"
    assert main(f"profile {words} --out {told}".split()) == 0
    profile = json.loads(told.read_text())
    profile["advice"]["trials"][0] |= {
        "policy": "prob", "split": "expected", "estimator": "window",
        "options": "--policy prob --split expected --estimator window",
    }  # fmt: skip
    told.write_text(json.dumps(profile))
    assert main(f"replay {words} --profile {told} --report {report}".split()) == 0
    found = json.loads(report.read_text())
    assert found["lanes"]["groups"] == 2
    assert found["advice"]["by"] == str(told)
    assert found["policy"]["name"] == "prob"
    assert found["policy"]["profile"] is None


def test_a_sweep_takes_it_for_age_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = f"sweep {where(folder)} --on key --time ts --windows 30 --memory 20% --engine local"
    words += f" --profile {folder}/30.json --report {folder}/sweep.json"
    assert main([*words.split(), "--policies", "prob"]) == 2
    assert "--profile tells the curves of policy age" in capsys.readouterr().err
    assert main([*words.split(), "--policies", "prob,age"]) == 0
    report = json.loads((folder / "sweep.json").read_text())
    assert report["grid"]["profile"] == str(folder / "30.json")


def test_an_allocation_says_which_joins_were_told_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    join = f"""memory = "20%"
[[join]]
name = "one"
left = "{folder}/left.parquet"
right = "{folder}/right.parquet"
on = "key"
time = "ts"
window = 30
"""
    jobs, report = folder / "jobs.toml", folder / "allocation.json"
    words = ["allocate", str(jobs), "--engine", "local", "--cache", str(folder / "cache")]
    for profile in (None, folder / "30.json", folder / "100000.json"):
        jobs.write_text(join + ("" if profile is None else f'profile = "{profile}"\n'))
        if profile == folder / "100000.json":
            assert main(words) == 2
            assert "is of windows of 100000 and 100000 ticks, and the join of 30 and 30" in (
                capsys.readouterr().err
            )
            continue
        assert main([*words, "--report", str(report)]) == 0
        assert ("one by " in capsys.readouterr().out) == (profile is not None)
        told = json.loads(report.read_text())["joins"][0]["profile"]
        assert told == (None if profile is None else str(profile))
