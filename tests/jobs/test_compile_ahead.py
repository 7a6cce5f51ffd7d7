"""Kernels that a replay has compiled before it begins: those that it would need one by one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from engine.commands.warm import write_streams

_TOLD = """
from engine.commands import main
from engine.exact import stream_kernel
from engine.jobs.replay import lane_task
from engine.replay import kernel
from engine.value_model import observe, refit

OWN = kernel.replay, stream_kernel.run_batch, observe.observe, refit.refit
def there():
    return [len(own.entry.overloads) for own in OWN]
ahead = lane_task.compile_ahead
def noted(*given, **named):
    before = there()
    ahead(*given, **named)
    print("ahead", before, there())
lane_task.compile_ahead = noted
main({words!r})
print("ahead", there())
"""


@pytest.mark.parametrize(("policy", "kernels"), [("prob", [1, 1, 0, 0]), ("yield", [1, 1, 1, 1])])
def test_a_long_replay_compiles_ahead_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, policy: str, kernels: list[int]
) -> None:
    monkeypatch.setenv("WINNOW_COMPILE", "always")
    write_streams(tmp_path)
    words = (
        f"replay --left {tmp_path}/left.parquet --right {tmp_path}/right.parquet --on k --time t "
        f"--engine local --window 9 --memory 8 --policy {policy} --out {tmp_path}/out"
    ).split()
    done = subprocess.run(  # noqa: S603 - this file's program
        [sys.executable, "-c", _TOLD.format(words=words)], capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    told = [line for line in done.stdout.splitlines() if line.startswith("ahead")]
    assert told == [f"ahead {[0] * 4} {kernels}", f"ahead {kernels}"], done.stderr
