"""Run the tests of Spark with each version of it, and with Spark Connect; `make thorough` does.

    python tests/support/spark_versions.py [--only 3.5.9 ...] [--out FILE]

Each Spark lies in an environment of its own in .venv/spark, which rests on that of this Python.
What has been found is written to benchmarks/results/spark_versions.json, and `docs/tables.py` makes
a table of it. Versions that are not run keep what was found before. The exit status is 1 if a test
failed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from places import BENCHMARKS, PYTHONPATH, ROOT

FOUND = BENCHMARKS / "results" / "spark_versions.json"
VERSIONS = ("3.5.9", "4.0.5", "4.1.4", "4.2.0", "4.2.0 Connect")
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


def python_of(version: str) -> Path:
    """Return the Python of an environment with a version of Spark; make it where it is missing."""
    number, _, connect = version.partition(" ")
    place = ROOT / ".venv" / "spark" / version.replace(" ", "-").lower()
    python = place / "bin" / "python"
    mark = place / "ready"
    if not mark.exists():
        venv.create(place, clear=True, with_pip=True, symlinks=True)
        own = place / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
        (own / "below.pth").write_text(sysconfig.get_path("purelib") + "\n")
        package = f"pyspark{'[connect]' if connect else ''}=={number}"
        command = [python, "-m", "pip", "install", "--quiet", "--no-compile", package]
        subprocess.run(command, check=True)  # noqa: S603 - ours
        mark.touch()
    return python


def tried(version: str) -> dict[str, Any]:
    """Run all tests with a version; return what was found."""
    python = python_of(version)
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
        "python": platform.python_version(),
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
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)  # noqa: S607
    return said.stderr.split('"')[1]


def main() -> int:
    """Try the versions that are asked for; write what was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=VERSIONS, default=VERSIONS, metavar="VERSION")
    parser.add_argument("--out", type=Path, default=FOUND)
    options = parser.parse_args()
    known = json.loads(options.out.read_text()) if options.out.exists() else {}
    for version in options.only:
        known[version] = tried(version)
        found = {version: known[version] for version in VERSIONS if version in known}
        options.out.write_text(json.dumps(found, indent=1) + "\n")
    failed = [
        f"{version}: {name}"
        for version in options.only
        for name, counts in known[version]["features"].items()
        if counts.get("failed")
    ]
    sys.stdout.write("".join(f"failed on Spark {one}\n" for one in failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
