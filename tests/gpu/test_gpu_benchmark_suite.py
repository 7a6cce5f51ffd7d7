"""The GPU suite without a GPU: its sections, their time and their failures."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from places import ROOT, SIMULATOR

FAKES = """
import os, time
def good(device, size=1):
    return {"device": device.name, "size": size, "rate": 2.5, "many": [1, 2]}
def bad(device):
    print("about to fail")
    raise ValueError("17 rows differ")
def crashed(device):
    print("gone", flush=True)
    os._exit(139)
def slow(device):
    time.sleep(60)
"""


@pytest.fixture
def suite(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the suite's module; its sections open the simulator."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    import gpu_suite  # noqa: PLC0415 - found through the path just given

    return gpu_suite


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fakes.py").write_text(FAKES)
    return tmp_path


def test_what_a_section_finds_is_written_and_printed(
    suite: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "deep" / "gpu_suite.json"
    sections = [suite.Section("first", "fakes", "good", 60, {"size": 7_000_000})]
    assert suite.run_suite(sections, folder, {"commit": "abc"}, out)
    content = json.loads(out.read_text())
    assert content["about"] == {"commit": "abc"}
    found = content["sections"]["first"]
    assert found["passed"]
    assert found["found"]["device"] == "CUDA simulator"
    assert found["found"]["size"] == 7_000_000
    printed = capsys.readouterr().out
    assert "first: passed" in printed
    assert "7,000,000" in printed
    assert "many.1" in printed
    assert "1 sections passed, 0 failed" in printed


def test_a_section_that_fails_takes_no_other_with_it(
    suite: Any, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "gpu_suite.json"
    names = ["bad", "crashed", "slow", "missing", "good"]
    sections = [suite.Section(name, "fakes", name, 90) for name in names]
    sections[2] = sections[2]._replace(budget=1)
    assert not suite.run_suite(sections, folder, {}, out)
    results = json.loads(out.read_text())["sections"]
    assert [results[name]["passed"] for name in names] == [False, False, False, False, True]
    assert results["bad"]["error"] == "ValueError: 17 rows differ"
    assert "in bad" in results["bad"]["traceback"]
    assert "about to fail" in results["bad"]["printed"]
    assert results["crashed"]["error"] == "ended with 139 and no answer"
    assert "gone" in results["crashed"]["printed"]
    assert results["slow"]["error"] == "took longer than 1 s"
    assert results["slow"]["seconds"] < 30
    assert "AttributeError" in results["missing"]["error"]
    assert "1 sections passed, 4 failed" in capsys.readouterr().out


def test_no_section_begins_when_the_time_is_over(
    suite: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "TOTAL", 0.0)
    out = folder / "gpu_suite.json"
    assert not suite.run_suite([suite.Section("late", "fakes", "good", 9)], folder, {}, out)
    assert "not begun" in json.loads(out.read_text())["sections"]["late"]["error"]


def test_without_a_gpu_it_says_so_and_records_nothing(
    suite: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpu_kernels.devices.gpu_seen", lambda: (False, "CuPy is not installed"))
    monkeypatch.setenv("OUT", str(folder))
    assert suite.main([]) == 2
    assert "no GPU: CuPy is not installed" in capsys.readouterr().out
    assert not list(folder.glob("*.json"))


@pytest.mark.parametrize(("function", "code"), [("good", 0), ("bad", 1)])
def test_the_command_ends_with_what_came_of_it(
    suite: Any, folder: Path, monkeypatch: pytest.MonkeyPatch, function: str, code: int
) -> None:
    monkeypatch.setattr("gpu_kernels.devices.gpu_seen", lambda: (True, "one"))
    monkeypatch.setattr(suite, "SECTIONS", (suite.Section("only", "fakes", function, 30),))
    monkeypatch.setattr(suite, "FOLDER", folder)
    monkeypatch.setenv("OUT", str(folder / "out"))
    monkeypatch.setenv("WINNOW_COMMIT", "0123abc")
    (folder / "gpu_suite.py").symlink_to(ROOT / "benchmarks" / "gpu_suite.py")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert suite.main(["--only", "only"]) == code
    about = json.loads((folder / "out" / "gpu_suite.json").read_text())["about"]
    assert about["commit"] == "0123abc"
    assert about["cpu_cores"] >= 1
    assert "numba" in about["packages"]


def test_an_unknown_section_is_refused(suite: Any) -> None:
    with pytest.raises(SystemExit, match=r"no section 'speed'; choose of parity, harvest"):
        suite.main(["--only", "speed"])


def test_the_commit_is_told_or_asked_of_git(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WINNOW_COMMIT", raising=False)
    assert suite.commit("given") == "given"
    monkeypatch.setenv("PATH", "")
    assert suite.commit(None) == "unknown"


def test_the_sections_fit_into_eight_minutes(suite: Any) -> None:
    assert sum(section.budget for section in suite.SECTIONS) <= suite.TOTAL < 480
    names = [section.name for section in suite.SECTIONS]
    assert len(set(names)) == len(names)


def test_the_harvest_section_runs_in_the_simulator(
    suite: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = (SIMULATOR, ROOT / "benchmarks")
    monkeypatch.setenv("PYTHONPATH", ":".join(map(str, folders)))
    (folder / "small_harvest.py").write_text(
        "import lockstep\nlockstep.install()\nfrom gpu_harvest import measure_harvest\n"
    )
    small = {"n": 2, "joins": 2, "repeats": 1}
    section = suite.Section("harvest", "small_harvest", "measure_harvest", 300, small)
    result = suite.run_section(section, folder, 300)
    assert result["passed"], result
    assert result["found"]["search"]["settings"] == 64


@pytest.mark.usefixtures("suite")
def test_numbers_that_are_not_the_cpu_s_end_the_harvest_section() -> None:
    import gpu_harvest  # noqa: PLC0415 - found through the suite's path

    ours, theirs = np.array([1.0, 2.0]), np.array([1.0, np.nextafter(2.0, 3.0)])
    gpu_harvest.held_equal((ours,), (ours.copy(),), "costs")
    with pytest.raises(gpu_harvest.UnequalError, match="costs: 1 of 2 numbers are not the CPU's"):
        gpu_harvest.held_equal((ours,), (theirs,), "costs")
