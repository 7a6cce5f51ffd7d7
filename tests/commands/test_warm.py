"""``winnow warm`` leaves nothing to compile, and a cold command says that it compiles."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from thorough import repeats

from engine.commands.warm import RUNS, write_streams

PROGRAM = """
import sys
from engine.commands import main
status = main()
from engine.runtime.kept import COMPILED
print("compiled:", *COMPILED.names, file=sys.stderr)
sys.exit(status)
"""


def run(words: list[str], cache: Path) -> str:
    """Run a command in a process of its own, and return what it says on standard error."""
    done = subprocess.run(  # noqa: S603 - this file's program
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=False,
        env=os.environ | {"WINNOW_CACHE": str(cache)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("command", ["lookup", *repeats(own for own in RUNS if own != "lookup")])
def test_nothing_is_compiled_after_warm(command: str, tmp_path: Path) -> None:
    cold, warm = tmp_path / "cold", tmp_path / "warm"
    tmp_path.joinpath("data").mkdir()
    write_streams(tmp_path / "data")
    words = [command, *RUNS[command][0].format(folder=tmp_path / "data").split()]
    said = run(words, cold)
    compiles = not said.rstrip().endswith("compiled:")
    assert said.count("compiling kernels for this machine, once") == compiles
    assert compiles or command == "explain"
    run(["warm", "--only", command], warm)
    again = run(words, warm)
    assert "compiling" not in again
    assert again.rstrip().endswith("compiled:"), again
