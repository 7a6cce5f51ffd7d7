"""`benchmarks/*.py` are run rarely: they find what they import, and what they look into."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import BENCHMARKS, ROOT
from thorough import guards

EXTRA = {"ortools"}
"""What scripts import at their top that `make test` does not install."""
IMPORTS = """
import importlib, sys
place = sys.path[:]
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(name, error.name)
    sys.path[:] = place
"""
COMPILES = "from engine.runtime.kept import COMPILED; print(COMPILED.always)"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that imports a script."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_scripts_import_nothing_that_is_not_there() -> None:
    names = sorted(path.stem for path in BENCHMARKS.glob("*.py"))
    paths = os.environ | {"PYTHONPATH": f"{BENCHMARKS}{os.pathsep}{ROOT}"}
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", IMPORTS, *names],
        capture_output=True, text=True, check=False, env=paths, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lacking = [line for line in done.stdout.splitlines() if line.split()[1] not in EXTRA]
    assert lacking == []


@pytest.mark.parametrize("name", ["demo", "reproduce.run", "sweep"])
def test_what_is_timed_was_compiled_before(name: str) -> None:
    alone = {own: value for own, value in os.environ.items() if own != "WINNOW_COMPILE"}
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", f"import {name}; {COMPILES}"],
        capture_output=True, text=True, check=True,
        env=alone | {"PYTHONPATH": f"{BENCHMARKS}{os.pathsep}{ROOT}"},
    )  # fmt: skip
    assert done.stdout == "True\n"


def test_first_uses_are_those_of_users(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first_use, seen = script("first_use"), []
    monkeypatch.setenv("WINNOW_COMPILE", "always")  # as `make bench` does
    monkeypatch.setattr(first_use.subprocess, "run", lambda *_, env, **__: seen.append(env))
    first_use.spent("replay", tmp_path, tmp_path / "cache")
    assert [env.get("WINNOW_COMPILE") for env in seen] == [None]


@guards("benchmarks", "engine/jobs/sweep", "tests/benchmarks/test_scripts.py")
def test_a_sweeps_tasks_are_remembered_to_be_replayed_alone(script: Any, tmp_path: Path) -> None:
    sweep = script("sweep")
    files = sweep.generated(1_000, tmp_path / "archive")
    with sweep.remembered() as tasks:
        _, _, found = sweep.swept(files, tmp_path / "lanes", 1)
    alone = {cell.number: result.importance for cell, result in sweep.alone(tasks)}
    assert alone == dict(enumerate(found.outputs["importance"].to_pylist()))


@guards("benchmarks", "engine/lanes", "tests/benchmarks/test_scripts.py")
def test_what_the_driver_of_a_large_job_holds_is_built(
    script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = script("cluster_plan")
    for name, few in (("LANES", 8), ("FILES", 3), ("PARTS", 5)):
        monkeypatch.setattr(plan, name, few)
    costs, clock = plan.task_costs(1_000)
    assert set(costs["cpu_ns_a_tuple"]) == set(plan.STAGES.values())
    held = plan.of_driver(clock, 3_000_000, 0.03)
    assert held["results of 3 splits, 8 lanes"]["sent"] > 0
    assert held["manifest of 5 lanes"]["sent"] > 0
