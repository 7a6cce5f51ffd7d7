"""A command whose standard output takes nothing, or not all characters, has no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import golden_cases
import pytest
from golden_cases import PAIR
from places import ROOT

MAIN = "import sys; from engine.commands import main; sys.exit(main())"
REPLAY = f"replay {PAIR} --window 20 --memory 16 --policy prob --importance v"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("streams")
    golden_cases.write_streams(made)
    return made


def ended(where: str, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command whose output a shell directs somewhere."""
    return subprocess.run(  # noqa: S603 - ours
        ["/bin/sh", "-c", f'exec "$@" {where}', "sh", sys.executable, "-c", MAIN, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT)} | env, capture_output=True, check=False,
        encoding="latin-1",
    )  # fmt: skip


def replay(folder: Path, out: Path) -> list[str]:
    return [*golden_cases.words(REPLAY, folder, folder / "report.json"), "--out", str(out)]


def test_a_closed_output_takes_nothing(folder: Path, tmp_path: Path) -> None:
    done = ended(">&-", *replay(folder, tmp_path / "out"))
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out" / "_report.json").exists()
    assert ended(">&- 2>&-", "policies").returncode == 0
    assert ended(">&- 2>&-", "nonsense").returncode == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_output_is_told(folder: Path, tmp_path: Path) -> None:
    told = "error: standard output cannot be written (No space left on device)"
    done = ended(">/dev/full", *replay(folder, tmp_path / "out"))
    assert done.returncode == 2
    assert done.stderr.endswith(f"{told}; the outputs are whole in {tmp_path / 'out'}\n")
    assert "Traceback" not in done.stderr
    for words in (["policies"], ["completion", "bash"]):
        done = ended(">/dev/full", *words)
        assert (done.returncode, done.stderr) == (2, f"winnow {words[0]}: {told}\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
def test_a_full_standard_error_stops_nothing(folder: Path, tmp_path: Path) -> None:
    done = ended("2>/dev/full", *replay(folder, tmp_path / "out"))
    assert done.returncode == 0
    assert "recall" in done.stdout
    assert (tmp_path / "out" / "_report.json").exists()
    assert ended("2>/dev/full", "replay", "--nonsense").returncode == 2


def test_a_width_of_no_characters_is_none_given(folder: Path, tmp_path: Path) -> None:
    done = ended("", *replay(folder, tmp_path / "out"), COLUMNS="0")
    assert done.returncode == 0
    assert "recall" in done.stdout


@pytest.mark.parametrize(
    "env",
    [
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
)
def test_characters_that_an_encoding_lacks_are_replaced(
    folder: Path, tmp_path: Path, env: dict[str, str]
) -> None:
    done = ended("", *replay(folder, tmp_path / "out"), **env)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert "| recall |" in done.stdout
    assert "policy prob" in done.stdout
