"""Progress bars: clocks and rates of stages that run once more, and while kernels compile."""

from __future__ import annotations

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from places import ROOT
from rich.console import Console

from engine.commands.bars import StageBars
from engine.commands.compiling import COMPILING, Compiling
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.jit import jit

COMPILES = """
import sys
from types import SimpleNamespace

from engine.commands import main
from engine.commands.compiling import COMPILING
from engine.options.command import Command
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.jit import jit
from engine.runtime.compilation.compilations import COMPILED

def run(asked):
    print(COMPILING.depth)
    COMPILED.always = True
    told = COMPILED.tell
    COMPILED.tell = lambda line: (told(line), print(COMPILING.depth))
    jit(abs_, cached=False)(-1)
    print(COMPILING.depth)
    return 0

def abs_(x):
    return x if x > 0 else -x

compiles = SimpleNamespace(COMMAND=Command("compiles", "is", ()), run=run)
sys.exit(main(None, commands={"compiles": compiles}))
"""


class Terminal:
    """Bars on a terminal with a clock that is set."""

    def __init__(self) -> None:
        self.now = 100.0
        self.console = Console(file=StringIO(), force_terminal=True, width=120, color_system=None)
        self.stages = StageBars(self.console, lambda: self.now)

    def after(self, seconds: float, stage: str, done: int, total: int) -> str:
        """Return the bars once so much has been done so much later."""
        self.now += seconds
        self.stages.show(stage, done, total)
        with self.console.capture() as drawn:
            self.console.print(self.stages.bars.get_renderable())
        return " ".join(drawn.get().replace("━", "").replace("╸", "").replace("╺", "").split())


def test_a_rate_is_shown_after_half_a_second_from_when_the_stage_began() -> None:
    terminal = Terminal()
    assert terminal.after(0.0, "replay", 0, 3_000_000) == "replay 0/3M 0:00:00 --:--"
    assert terminal.after(0.25, "replay", 100_000, 3_000_000) == "replay 100k/3M 0:00:00 --:--"
    assert terminal.after(0.125, "replay", 300_000, 3_000_000) == "replay 300k/3M 0:00:00 --:--"
    assert terminal.after(1.625, "replay", 1_000_000, 3_000_000) == (
        "replay 1M/3M, 500k/s 0:00:02 00:04"
    )
    assert terminal.after(2.0, "replay", 3_000_000, 3_000_000) == "replay 3M/3M 0:00:04 00:04"


def test_a_stage_that_has_been_full_has_a_new_clock_once_more() -> None:
    terminal = Terminal()
    terminal.after(0.0, "a: trial", 0, 4_000_000)
    terminal.after(6.0, "a: trial", 4_000_000, 4_000_000)
    assert terminal.after(9.0, "a: trial", 0, 4_000_000) == "a: trial 0/4M 0:00:00 --:--"
    assert terminal.after(2.0, "a: trial", 2_000_000, 4_000_000) == (
        "a: trial 2M/4M, 1M/s 0:00:02 00:02"
    )
    assert terminal.after(2.0, "a: replay", 0, 6_000_000) == "a: replay 0/6M 0:00:00 --:--"
    assert terminal.after(3.0, "a: replay", 3_000_000, 6_000_000) == (
        "a: replay 3M/6M, 1M/s 0:00:03 00:03"
    )


def test_a_step_of_which_nothing_is_known_may_follow_and_be_followed() -> None:
    terminal = Terminal()
    terminal.after(0.0, "a: count", 0, 8)
    terminal.after(4.0, "a: count", 8, 8)
    terminal.after(1.0, "a: commit", 0, 1)
    assert terminal.after(2.0, "a: commit", 0, 1) == "a: commit 0:00:02"
    assert terminal.after(1.0, "a: commit", 1, 1) == "a: commit 1/1 0:00:03 00:03"
    assert terminal.after(0.0, "a: replay", 0, 1000) == "a: replay 0/1k 0:00:00 --:--"


def test_an_answer_that_is_told_leaves_the_clock() -> None:
    terminal = Terminal()
    terminal.after(0.0, "bound", 0, 4)
    assert terminal.after(3.0, "bound: gap 5 %", 0, 4) == "bound: gap 5 % 0/4 0:00:03 --:--"
    assert terminal.after(1.0, "bound: gap 2 %", 2, 4) == (
        "bound: gap 2 % 2/4, 0.5/s 0:00:04 00:04"
    )


def test_while_kernels_compile_no_time_is_left_and_none_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    terminal.after(0.0, "tasks", 0, 2_000_000)
    terminal.after(2.0, "tasks", 1_000_000, 2_000_000)
    monkeypatch.setattr(COMPILING, "depth", 2)
    assert terminal.after(7.0, "tasks", 1_000_000, 2_000_000) == "tasks 1M/2M, compiling 0:00:09"
    assert terminal.after(7.0, "tasks", 1_000_000, 2_000_000) == "tasks 1M/2M, compiling 0:00:16"
    monkeypatch.setattr(COMPILING, "depth", 0)
    assert terminal.after(0.1, "tasks", 1_000_000, 2_000_000) == "tasks 1M/2M 0:00:16 --:--"
    assert terminal.after(2.0, "tasks", 1_500_000, 2_000_000) == (
        "tasks 1.5M/2M, 250k/s 0:00:18 00:02"
    )


def test_compilations_are_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMPILED, "always", True)
    depths = []

    class Watched(Compiling):
        """Notes every depth."""

        def __setattr__(self, name: str, value: int) -> None:
            super().__setattr__(name, value)
            if name == "depth":
                depths.append(value)

    def twice(x: int) -> int:
        return x + x

    watched = Watched()
    watched.begun()
    watched.begun()
    watched.depth -= 1  # the first has been compiled
    assert depths == [0, 1, 0]
    assert jit(twice, cached=False)(2) == 4
    assert depths[3:] == [1, 0]


def test_the_command_line_listens_once_it_compiles(tmp_path: Path) -> None:
    script = tmp_path / "compiles.py"
    script.write_text(COMPILES)
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, script, "compiles"], capture_output=True, text=True, check=True,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.split() == ["0", "1", "0"]
