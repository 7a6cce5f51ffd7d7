"""Run the tests of Spark with each version of it, and with Spark Connect; `make thorough` does.

    python tests/support/spark_versions.py [--only 3.5.9 '4.2.0 Python 3.13' ...] [--out FILE]

Each Spark lies in an environment of its own in .venv/spark. It rests on that of this Python, or
on one made of another, the `python3.12` or `python3.13` of the PATH (with pyenv, PYENV_VERSION says
that they are there). What has been found is written to benchmarks/results/spark_versions.json, and
`docs/tables.py` makes tables of it. Versions that are not run, or whose Python is not there, keep
what was found before. The exit status is 1 if a test failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from places import BENCHMARKS, PYTHONPATH, ROOT

FOUND = BENCHMARKS / "results" / "spark_versions.json"
VERSIONS = (
    "3.5.9", "4.0.5", "4.1.4", "4.2.0", "4.2.0 Connect", "4.2.1", "4.3.0",
    *(f"{spark} Python {python}" for spark in ("4.0.5", "4.1.4", "4.2.0")
      for python in ("3.12", "3.13")),
)  # fmt: skip
"""Of Spark, with this Python or another; Spark 3.5 runs on none that is newer than 3.11."""
FEATURES = {
    "archives: replay, bound": [
        f"test_spark_archives.py::test_{name}"
        for name in (
            "any_number_of_tasks_gives_the_rows_and_figures_of_the_local_engine",
            "a_bound_and_the_replay_of_its_plan_are_the_local_engines",
            "the_command_line_runs_on_spark_with_nothing_installed",
            "an_error_of_ours_arrives_as_it_was_raised",
            "any_other_error_brings_the_traceback_of_the_worker",
        )
    ],
    "archives: sample": ["test_spark_sample.py"],
    "archives: sweep": ["test_spark_sweep.py"],
    "archives: star": ["../jobs/test_star_job.py::test_spark_gives_the_same"],
    "archives: multijoin": ["test_spark_multijoin.py"],
    "DataFrames: replay": ["test_spark_dataframe.py"],
    "DataFrames: replay through facts": ["test_spark_facts.py"],
    "DataFrames: look-up": [
        f"test_spark_lookup.py::test_{name}"
        for name in (
            "rows_are_those_of_the_tables", "a_change_log", "attributes_of_any_type",
            "times_of_any_type", "broadcast_or_shuffle", "a_stream_is_joined_batch_by_batch",
            "rows_of_several_files_are_numbered_as_in_an_archive",
        )
    ],
    "`winnow.replay`, `winnow.lookup`": ["test_spark_door.py"],
    "names of jobs, table of losses, cancelling": ["test_spark_jobs_named.py"],
    "SQL: `winnow_replay`, `winnow_lookup`": ["test_spark_sql.py"],
    "tables of Delta Lake and Iceberg": [
        "test_spark_open_tables.py::test_tables_of_delta_and_iceberg_are_data_frames"
    ],
    "tables to Spark and back": ["test_spark_versions.py"],
    "streaming replay": ["test_spark_versions.py::test_a_stream_has_the_rows_of_the_archives"],
}  # fmt: skip
"""What is to work, and its tests, from tests/spark."""
_WARNINGS = ("ResourceWarning", "DeprecationWarning", "pytest.PytestUnraisableExceptionWarning")
"""What older versions of Spark do; those of the version that is developed with are errors."""


def python_of(version: str) -> Path | None:
    """Return the Python of an environment with a version of Spark; make it where it is missing.

    None if there is no such Python.
    """
    number, _, more = version.partition(" ")
    wanted = more.removeprefix("Python ") if more.startswith("Python") else None
    base = sys.executable if wanted is None else interpreter(wanted)
    if base is None:
        return None
    package = f"pyspark{'[connect]' if more == 'Connect' else ''}=={number}"
    below = Path(sysconfig.get_path("purelib"))
    if wanted is not None:
        tests = [own for own in _dev() if own.partition("==")[0] in ("pytest", "duckdb")]
        python = _environment(f"python-{wanted}", base, ["-e", str(ROOT), *tests])
        below = _packages(python)
    return _environment(version.replace(" ", "-").lower(), base, [package], below)


def interpreter(version: str) -> str | None:
    """Return the path of a Python of the PATH, None if there is none."""
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    asked = [found, "-c", "import sys; print(sys.executable)"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603 - ours
    return None if said.returncode else said.stdout.strip()


def _environment(name: str, base: str, packages: Sequence[str], below: Path | None = None) -> Path:
    """Return the Python of an environment with packages, which rests on a folder of others."""
    place = (ROOT / ".venv").resolve() / "spark" / name
    python = place / "bin" / "python"
    mark = place / "ready"
    ready = mark.exists()
    if not ready:
        subprocess.run([base, "-m", "venv", "--clear", place], check=True)  # noqa: S603 - ours
    if below is not None:  # which may have moved since
        (_packages(python) / "below.pth").write_text(f"{below.resolve()}\n")
    if not ready:
        line = [python, "-m", "pip", "install", "--quiet", "--no-compile", *packages]
        subprocess.run(line, check=True)  # noqa: S603 - ours
        mark.touch()
    return python


def _packages(python: Path) -> Path:
    """Return where the packages of an environment lie."""
    (found,) = (python.parents[1] / "lib").glob("python*/site-packages")
    return found


def _dev() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: list[str] = project["optional-dependencies"]["dev"]
    return found


def tried(version: str, python: Path) -> dict[str, Any]:
    """Run all tests with a version; return what was found."""
    own = {"PYTHONPATH": PYTHONPATH} | ({"WINNOW_SPARK": "connect"} if "Connect" in version else {})
    tests = {os.path.normpath(f"tests/spark/{own}") for names in FEATURES.values() for own in names}
    tests = {
        own for own in tests if own.partition("::")[0] == own or own.partition("::")[0] not in tests
    }
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = [word for name in _WARNINGS for word in ("-W", f"ignore::{name}")]
        subprocess.run(  # noqa: S603 - ours
            [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
             *options, *sorted(tests)],
            cwd=ROOT, env=os.environ | own, check=False,
        )  # fmt: skip
        outcomes = _outcomes(report)
    return {
        "python": _said([python, "-c", "import platform; print(platform.python_version())"]),
        "java": _java(),
        "features": {name: _counted(outcomes, tests) for name, tests in FEATURES.items()},
    }


def _outcomes(report: Path) -> dict[tuple[str, str], str]:
    """Return the outcome of every test, by file and name."""
    found = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314 - pytest wrote it
        kinds = {part.tag for part in case}
        outcome = "failed" if kinds & {"failure", "error"} else "passed"
        name = (f"{case.get('classname', '').rpartition('.')[2]}.py", case.get("name", ""))
        found[name] = "skipped" if "skipped" in kinds else outcome
    return found


def _counted(outcomes: Mapping[tuple[str, str], str], tests: list[str]) -> dict[str, int]:
    """Return how many tests of a feature had which outcome."""
    counts: Counter[str] = Counter()
    for test in tests:
        file, _, name = Path(test).name.partition("::")
        counts.update(
            outcome
            for (own, which), outcome in outcomes.items()
            if own == file and (not name or which.partition("[")[0] == name)
        )
    if not counts:
        counts["failed"] = 1  # nothing ran
    return dict(sorted(counts.items()))


def _java() -> str:
    return _said(["java", "--version"]).split()[1]


def _said(command: Sequence[str | Path]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - ours
    return done.stdout.strip()


def main() -> int:
    """Try the versions that are asked for; write what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=VERSIONS, default=VERSIONS, metavar="VERSION")
    parser.add_argument("--out", type=Path, default=FOUND)
    options = parser.parse_args()
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    pythons = {version: python_of(version) for version in options.only}
    for version, python in pythons.items():
        if python is None:
            sys.stdout.write(f"not run, since its Python is not there: Spark {version}\n")
            continue
        known[version] = tried(version, python)
        found = {version: known[version] for version in VERSIONS if version in known}
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    failed = [
        f"{version}: {name}"
        for version in options.only
        for name, counts in known.get(version, {}).get("features", {}).items()
        if counts.get("failed")
    ]
    sys.stdout.write("".join(f"failed on Spark {one}\n" for one in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
