"""Kernels that a replay has compiled before it begins: those that it would need one by one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from job_cases import job, streams

from engine.commands.warm import write_streams
from engine.jobs import compile_ahead
from engine.jobs.compile_ahead import begin_for_trials, compile_common
from engine.jobs.frame import open_job
from engine.jobs.profile.run import run_profile
from engine.options.profile import ProfileOptions
from engine.replay import kernel
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.compilation.source import folder_of
from engine.runtime.executors import SerialExecutor

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


def of_all_policies() -> set[str]:
    """Return for what the kernel for all policies is compiled in this process."""
    return {str(own) for own in kernel.replay.entry.overloads if "CommonRules" in str(own)}


def test_the_kernel_that_is_compiled_for_trials_is_what_they_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COMPILED, "always", True)
    compile_common()
    there = of_all_policies()
    streams(tmp_path, rows=300)
    run_profile(ProfileOptions(job(tmp_path)), SerialExecutor())
    assert there
    assert of_all_policies() == there


class Slots(SerialExecutor):
    """Runs tasks as if they ran elsewhere."""

    slots = 2


@pytest.mark.parametrize(
    ("where", "begins"),
    [("new", True), ("few", False), ("kept", False), ("shipped", False), ("elsewhere", False)],
)
def test_it_is_compiled_beside_where_it_has_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, begins: bool
) -> None:
    streams(tmp_path, rows=300)
    begun: list[None] = []
    monkeypatch.setattr(compile_ahead, "_begin", lambda: begun.append(None))
    monkeypatch.setattr(compile_ahead, "_MANY", 601 if where == "few" else 600)
    monkeypatch.setattr(compile_ahead.BESIDE, "most", 2)
    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path / "c"))
    monkeypatch.setenv("WINNOW_KERNELS", str(tmp_path / "shipped"))
    folder = {"kept": tmp_path / "c" / "numba", "shipped": tmp_path / "shipped"}.get(where)
    if folder is not None:
        (folder / folder_of("engine.replay.kernel")).mkdir(parents=True)
    executor = Slots() if where == "elsewhere" else SerialExecutor()
    begin_for_trials(open_job(job(tmp_path)), executor)
    assert bool(begun) == begins
