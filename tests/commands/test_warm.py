"""Kernels compiled ahead leave nothing to compile, and a cold command says that it compiles."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from thorough import guards, repeats

from engine.commands import main, warm
from engine.commands.warm import RUNS, write_streams

PROGRAM = """
import sys
from engine.commands import main
status = main()
from engine.runtime.compilation.compilations import COMPILED
print("compiled:", *COMPILED.names, file=sys.stderr)
sys.exit(status)
"""


def run(words: list[str], cache: Path, **more: str) -> str:
    """Run a command in a process of its own, and return what it says on standard error."""
    done = subprocess.run(  # noqa: S603 - this file's program
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False,
        env=os.environ | {"WINNOW_CACHE": str(cache)} | more,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@guards("engine/runtime", "engine/commands/warm.py", "tests/commands/test_warm.py")
@pytest.mark.parametrize("command", ["lookup", *repeats(own for own in RUNS if own != "lookup")])
def test_nothing_is_compiled_where_kernels_are_shipped(command: str, tmp_path: Path) -> None:
    """They are compiled for any processor; this one's own name is another."""
    runs = []
    for folder in (tmp_path / "one", tmp_path / "another"):
        folder.mkdir()
        write_streams(folder)
        runs.append([command, *RUNS[command][0].format(folder=folder).split()])
    said = run(runs[0], tmp_path / "cold")
    compiles = not said.rstrip().endswith("compiled:")
    assert said.count("compiling kernels that no run has needed so far, kept in") == compiles
    assert compiles or command == "explain"
    shipped = tmp_path / "shipped"
    run(["warm", "--only", command, "--out", str(shipped)], tmp_path / "unused")
    assert not (tmp_path / "unused" / "numba").exists() or not any(tmp_path.glob("unused/numba/*"))
    kernels = {"WINNOW_KERNELS": str(shipped)}
    again = run(["warm", "--only", command, "--check"], tmp_path / "empty", **kernels)
    assert again.rstrip().endswith("compiled:"), again
    assert "compiling" not in run(runs[1], tmp_path / "empty", **kernels)


@pytest.mark.parametrize(
    "command", ["multijoin", *repeats(own for own in RUNS if own != "multijoin")]
)
def test_small_work_compiles_nothing(command: str, tmp_path: Path) -> None:
    write_streams(tmp_path)
    for number, line in enumerate(RUNS[command]):
        words = [command, *line.format(folder=tmp_path).split()]
        said = run(words, tmp_path / f"cold {number}", WINNOW_COMPILE="")
        assert said.rstrip().endswith("compiled:")
        assert "compiling" not in said


def test_a_kernel_that_is_missing_fails_the_check(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warm, "_run", lambda _: ["engine.some.kernel"])
    assert main(["warm", "--only", "lookup"]) == 0
    assert main(["warm", "--only", "lookup", "--check"]) == 2
    said = capsys.readouterr().err
    assert "1 kernels were compiled that should have been there: engine.some.kernel; run" in said


def test_several_runs_share_the_cores(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["warm", "--only", "lookup,explain"]) == 0
    said = capsys.readouterr()
    assert "lookup, 1 of 2 runs" in said.err
    assert "explain, 2 of 2 runs" in said.err
    assert main(["warm", "--only", "lookup,explain", "--check"]) == 0
    monkeypatch.setitem(warm.RUNS, "explain", ("--rates nonsense",))
    assert main(["warm", "--only", "lookup,explain"]) == 2
    assert "explain failed as its kernels were compiled: winnow explain: error" in (
        capsys.readouterr().err
    )


def test_kernels_are_shipped_in_a_new_folder_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["warm", "--out", str(tmp_path)]) == 2
    assert f"{tmp_path} exists: remove it" in capsys.readouterr().err
    assert main(["warm", "--out", str(tmp_path / "new"), "--check"]) == 2
    assert "leave out --out" in capsys.readouterr().err
    monkeypatch.setattr(warm.sys, "executable", shutil.which("false"))
    assert main(["warm", "--out", str(tmp_path / "new")]) == 2
    assert "kernels could not be compiled" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_place_where_no_folder_can_be_made_is_told_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    assert main(["warm", "--out", str(tmp_path / "loop")]) == 2
    assert "loop exists: remove it" in capsys.readouterr().err
    assert main(["warm", "--out", str(tmp_path / "file" / "new")]) == 2
    assert "new cannot be made (Not a directory): give another" in capsys.readouterr().err
