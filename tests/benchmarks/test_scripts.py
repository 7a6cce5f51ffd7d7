"""`benchmarks/*.py` are run rarely: they find what they import, and what they look into."""

from __future__ import annotations

import importlib
import json
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
COMPILES = "from engine.runtime.compilation.compilations import COMPILED; print(COMPILED.always)"


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


@pytest.mark.parametrize("whole", [True, False])
def test_what_is_measured_alone_leaves_the_others_in_the_file(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, whole: bool
) -> None:
    first_use, place = script("first_use"), tmp_path / "own.json"
    monkeypatch.setattr(first_use, "spent", lambda *_: 1.0)
    monkeypatch.setattr(first_use.os, "sched_setaffinity", lambda *_: None, raising=False)
    monkeypatch.setattr(first_use.compileall, "compile_dir", lambda *_, **__: None)
    monkeypatch.setattr(sys, "argv", ["first_use.py", "--json", str(place)])
    first_use.main()
    before = json.loads(place.read_text())["rows"]
    monkeypatch.setattr(first_use, "spent", lambda *_: 2.0)
    monkeypatch.setattr(sys, "argv", [*sys.argv, *([] if whole else ["--only", "sweep,bound"])])
    first_use.main()
    after = json.loads(place.read_text())["rows"]
    assert [row["command"] for row in after] == [row["command"] for row in before]
    again = {row["command"] for row in after if row["cold"] == 2.0}
    assert again == (set(first_use.COMMANDS) if whole else {"sweep", "bound"})


def test_rows_that_are_written_as_lists_are_kept_too(script: Any, tmp_path: Path) -> None:
    record, place = script("reproduce.record"), tmp_path / "own.json"
    record.write(place, {"columns": ["join", "n"], "rows": [["a", 1], ["b", 2], ["a", 3]]})
    found = record.with_others([{"join": "c", "n": 4}, {"join": "a", "n": 5}], place, "join")
    assert found == [{"join": "a", "n": 5}, {"join": "b", "n": 2}, {"join": "c", "n": 4}]


def test_a_demo_that_would_count_nothing_is_refused() -> None:
    done = subprocess.run(  # noqa: S603 - our own interpreter
        [sys.executable, BENCHMARKS / "demo.py", "--rows", "20000"],
        capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "--rows 20000 must be more than 20000, where counting starts" in done.stderr


@guards("benchmarks/demo.py", "tests/benchmarks/test_scripts.py")
def test_a_demo_warns_of_nothing_while_it_compiles(
    script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WINNOW_CACHE", os.environ.get("WINNOW_CACHE", ""))  # and so after it
    monkeypatch.setenv("WINNOW_COMPILE", os.environ.get("WINNOW_COMPILE", ""))
    demo = script("demo")
    monkeypatch.setattr(demo, "COMPARED", ["dgl"])
    (report,) = demo.compare(demo.START + 100, "local")  # warnings are errors here
    assert report["exact"]["outputs"] > 0


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
