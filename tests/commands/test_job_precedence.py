"""What the command line gives replaces what it overlaps in a job file, and what it excludes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from job_cases import arguments, streams

from engine.commands import main
from engine.commands.line import all_commands
from engine.commands.parser import collected, given_of, parsed
from engine.options.replay import job_of
from engine.runtime.errors import SpecError

COMMANDS = {name: plugin.COMMAND for name, plugin in all_commands().items()}
STREAMS = "--left=l --right=r --on=k --time=t --window=9"


def given(tmp_path: Path, command: str, text: str, line: str) -> dict[str, Any]:
    """Return what a command gets of a job file and a line, without the streams."""
    job = tmp_path / "job.toml"
    job.write_text(text)
    return collected(*parsed([command, f"--job={job}", *line.split()], COMMANDS))


@pytest.mark.parametrize(
    ("text", "line", "left"),
    [
        ("window_left = 1\nwindow-right = 2", "--window 50", {"window": "50"}),
        ("window = 1", "--window-left 5", {"window": 1, "window_left": "5"}),
        ("window_left = 1\nwindow_right = 2", "--window-left 5",
         {"window_left": "5", "window_right": 2}),
        ("left_on = 'a'\nright_on = 'b'\nleft_time = 't'", "--on k",
         {"left_time": "t", "on": "k"}),
        ("left_time = 't'\nright_importance = 'i'", "--time u --importance j",
         {"time": "u", "importance": "j"}),
        ("fact = 'f'\nfact_left = 'a'", "--fact g", {"fact_left": "a", "fact": "g"}),
        ("memory_left = 1\nmemory_right = 2", "--memory 20", {"memory": "20"}),
        ("memory = 20\nsplit = 'pooled'", "--memory-left 5", {"memory_left": "5"}),
        ("memory_left = 1\nmemory_right = 2", "--memory-left 5",
         {"memory_left": "5", "memory_right": 2}),
        ("plan = 'p'\nmemory = 9", "--policy dgl", {"memory": 9, "policy": "dgl"}),
        ("policy = 'dgl'\nsplit = 'even'\n[param]\nalpha = 2", "--plan p", {"plan": "p"}),
        ("[param]\nalpha = 5\nbeta = 0.1", "--param alpha=7",
         {"params": {"alpha": "7", "beta": 0.1}}),
        ("param = ['curve_left=1', 'buckets=4']", "--param curve=3",
         {"params": {"curve": "3", "buckets": "4"}}),
        ("[storage-option]\nregion = 'a'\nscheme = 'http'", "--storage-option region=b",
         {"storage_option": {"region": "b", "scheme": "http"}}),
    ],
)  # fmt: skip
def test_what_a_replay_gets(tmp_path: Path, text: str, line: str, left: dict[str, Any]) -> None:
    assert given(tmp_path, "replay", text, line) == left


@pytest.mark.parametrize(
    ("command", "text", "line", "left"),
    [
        ("sample", "memory_left = 3\noverflow = 0.1", "--fraction 0.5", {"fraction": "0.5"}),
        ("sample", "fraction = 0.5", "--memory 9", {"memory": "9"}),
        ("sweep", "[param.dgl]\nalpha = 2\nbeta = 3", "--param alpha=7",
         {"params": {"dgl.beta": 3, "alpha": "7"}}),
        ("sweep", "[param]\nalpha = 2", "--param dgl.alpha=7",
         {"params": {"alpha": 2, "dgl.alpha": "7"}}),
        ("multijoin", "[importance]\na = 'i'\nb = 'j'", "--importance b=k",
         {"importance": {"a": "i", "b": "k"}}),
        ("multijoin", "window = 5", "--window b=6", {"window": {"": 5, "b": "6"}}),
        ("multijoin", "[window]\na = 5\nb = 7", "--window 6", {"window": ["6"]}),
        ("multijoin", "[stream]\na = 'x'\nb = 'y'", "--stream c=z", {"stream": ["c=z"]}),
    ],
)  # fmt: skip
def test_what_other_commands_get(
    tmp_path: Path, command: str, text: str, line: str, left: dict[str, Any]
) -> None:
    assert given(tmp_path, command, text, line) == left


def test_what_is_replaced_must_be_right(tmp_path: Path) -> None:
    for text in ("memory_left = [1]", "memory = [1]", "[memory]\nleft = 1"):
        with pytest.raises(SpecError, match="give text or a number"):
            given(tmp_path, "replay", text, "--memory 20")
    with pytest.raises(SpecError, match="write name=value"):
        given(tmp_path, "replay", "param = 'alpha'", "--param beta=2")


def test_the_job_is_that_of_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text("window_left = 1\nwindow_right = 1\nright_on = 'x'")
    line = ["replay", *STREAMS.split(), f"--job={tmp_path / 'job.toml'}"]
    job = job_of(given_of(*parsed(line, COMMANDS)))
    assert (job.window_left, job.window_right) == ("9", "9")
    assert job.right_roles.on == ("k",)


def test_the_report_names_all_parameters(tmp_path: Path) -> None:
    case = streams(tmp_path)
    (tmp_path / "job.toml").write_text("[param]\nalpha = 5\nbeta = 0.1\n")
    line = arguments(case.folder, job=tmp_path / "job.toml", param="alpha=7", out=None)
    assert main(line) == 0
    found = json.loads((case.folder / "report.json").read_text())["policy"]["parameters"]
    assert (found["alpha"], found["beta"]) == (7.0, 0.1)
