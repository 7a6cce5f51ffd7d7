"""Help, reports and errors of every command are what they were: goldens in `goldens/`.

``make goldens`` writes them anew.
"""

from __future__ import annotations

import json
import os
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import golden_cases
import pytest
from golden_cases import ERRORS, GOLDENS, REPORTS, settled, settled_json, words
from pages import checked
from places import BENCHMARKS

from engine.commands import main
from engine.commands.line import all_commands

WRITE = os.environ.get("WINNOW_WRITE_GOLDENS") == "1"
COMMANDS = sorted(all_commands())


@pytest.fixture(autouse=True)
def columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("goldens")
    golden_cases.write_streams(made)
    return made


def held(name: str, found: str) -> None:
    """Compare with a golden, or write it."""
    path = GOLDENS / name
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found)
    assert found == path.read_text()


@pytest.mark.parametrize("which", ["help", "help-all"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help(command: str, which: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, f"--{which}"])
    assert end.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    held(f"{which}/{command}.txt", settled(shown, Path("/nowhere")))


@pytest.mark.parametrize("case", REPORTS)
def test_report(
    case: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    report = tmp_path / "report.json"
    assert main(words(REPORTS[case], folder, report)) == 0
    held(f"reports/{case}.txt", settled(capsys.readouterr().out, folder))
    page = report.with_suffix(".html")
    if page.exists():
        assert checked(page.read_text()).tags["figure"]
    if report.exists():
        found = settled_json(report, folder)
        path = GOLDENS / "reports" / f"{case}.json"
        if WRITE:
            monkeypatch.syspath_prepend(str(BENCHMARKS))
            import_module("reproduce.record").write(path, found)
        assert_alike(found, json.loads(path.read_text()), case)


@pytest.mark.parametrize("case", ERRORS)
def test_error(case: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(words(ERRORS[case], folder, tmp_path / "report.json"))
    except SystemExit as end:
        status = end.code
    said = capsys.readouterr()
    assert not said.out
    text = said.err.splitlines()[-1] if "usage:" in said.err else said.err
    held(f"errors/{case}.txt", f"{status}\n{settled(text, folder)}")
    assert status == 2


def test_every_command_has_a_golden(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    listed = re.findall(r"^    ([a-z][a-z-]*)\s", capsys.readouterr().out, re.MULTILINE)
    assert sorted(listed) == COMMANDS
    assert {path.stem for path in (GOLDENS / "help").glob("*.txt")} == set(COMMANDS)
    for cases in (REPORTS, ERRORS):
        assert {line.split()[0] for line in cases.values()} == set(COMMANDS)


def test_every_command_that_has_pages_writes_one_here() -> None:
    named = {line.split()[0] for line in REPORTS.values() if re.search(r"{(report|page)}", line)}
    assert named == {name for name in COMMANDS if "html" in all_commands()[name].COMMAND.options}


def assert_alike(found: Any, golden: Any, where: str) -> None:
    """Compare two reports: all equal, but sums to 1e-12."""
    if isinstance(golden, dict):
        assert list(found) == list(golden), where
        for name, own in golden.items():
            assert_alike(found[name], own, f"{where}.{name}")
    elif isinstance(golden, list):
        assert len(found) == len(golden), where
        for i, own in enumerate(golden):
            assert_alike(found[i], own, f"{where}[{i}]")
    elif isinstance(golden, float):
        assert found == pytest.approx(golden, rel=1e-12, abs=0), where
    else:
        assert found == golden, where
