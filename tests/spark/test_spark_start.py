"""Starting Spark: it is told at once, and Ctrl-C meanwhile leaves no JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from places import ROOT

import spark_plugin.command
from engine.runtime.errors import DeviceError, WinnowError
from spark_plugin import session
from spark_plugin.command import spark_executor
from spark_plugin.executor import _failure

SUBMIT = """#!/bin/sh
# Never starts, as a JVM in its first seconds has not.
sleep 600 & echo $! > {folder}/helper
echo $$ > {folder}/itself
exec sleep 600
"""
STARTS = "from spark_plugin.session import get_session\nget_session()\n"
PROFILE = [
    "profile", "--left=a.parquet", "--right=b.parquet", "--on=k", "--time=t", "--window=1",
    "--engine=spark",
]  # fmt: skip
LONG = 60.0


def read(file: Path) -> int:
    """Return the process that a file names, once it does."""
    last = time.monotonic() + LONG
    while not (file.is_file() and file.read_text().strip()):
        assert time.monotonic() < last, "nothing is started"
        time.sleep(0.05)
    return int(file.read_text())


def has_ended(process: int) -> bool:
    """Return whether a process ends within a few seconds."""
    for _ in range(50):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("words", [["-c", STARTS], ["-m", "winnow", *PROFILE]])
def test_what_is_being_started_ends_with_who_is_interrupted(
    words: list[str], tmp_path: Path
) -> None:
    submit = tmp_path / "bin" / "spark-submit"
    submit.parent.mkdir()
    submit.write_text(SUBMIT.format(folder=tmp_path))
    submit.chmod(0o755)
    with subprocess.Popen(  # noqa: S603 - ours
        [sys.executable, *words], text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "SPARK_HOME": str(tmp_path)},
        cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True,
    ) as command:  # fmt: skip
        started = []
        try:
            started = [read(tmp_path / name) for name in ("helper", "itself")]
            os.killpg(command.pid, signal.SIGINT)
            _, said = command.communicate(timeout=LONG)
            assert [has_ended(process) for process in started] == [True, True]
        finally:
            command.kill()
            for process in started:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
    if "-m" in words:
        assert command.returncode == 130
        lines = ["winnow: starting Spark"]
        lines += ["winnow profile: stopped; nothing is left half-written"]
        assert said.splitlines() == lines


def test_workers_without_winnow_are_told_of_in_a_line() -> None:
    said = (
        "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n"
        '  File "worker.py", line 3592, in main\n    func = read_command(infile)\n'
        "ModuleNotFoundError: No module named 'spark_plugin'\n\n\tat org.apache.spark.Task.run\n"
    )
    found = _failure(said)
    assert isinstance(found, WinnowError)
    assert str(found).startswith("Spark's workers find no module 'spark_plugin': have them run ")
    assert f"PYSPARK_PYTHON={sys.executable}" in str(found)
    assert "\n" not in str(found)
    assert isinstance(_failure(said.replace("ModuleNotFound", "Other")), RuntimeError)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            'Lost task 0.3: java.io.IOException: Cannot run program "/no/python": error=2, No such',
            "Spark's workers cannot run Python as '/no/python': set PYSPARK_PYTHON or ",
        ),
        (
            "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark",
            "Spark's workers run Python 3.12, and this is Python 3.11: set PYSPARK_PYTHON or ",
        ),
        (
            "Error from python worker:\n  sh: a warning\n  python3.11 is not here\nPYTHONPATH was:",
            "Python of Spark's workers does not start: python3.11 is not here",
        ),
    ],
)
def test_workers_with_another_python_or_none_are_told_of_in_a_line(said: str, told: str) -> None:
    found = _failure(f"Job aborted.\n{said}\n\tat org.apache.spark.Task.run\n")
    assert isinstance(found, WinnowError)
    assert str(found).startswith(told)
    assert "\n" not in str(found)


def test_that_spark_is_started_is_told_first(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(**_: object) -> None:
        told.append(capsys.readouterr().err)
        raise DeviceError("no Java")

    told: list[str] = []
    monkeypatch.setattr("spark_plugin.session.get_session", fail)
    for there in (None, "a Spark session is active"):
        monkeypatch.setattr(spark_plugin.command, "why_there", lambda there=there: there)
        with pytest.raises(DeviceError):
            spark_executor()
    assert told == ["winnow: starting Spark\n", ""]


@pytest.mark.parametrize(
    ("stops_at", "told"),
    [
        ("SparkContext", "Master must be right"),
        ("SparkSession", "the master spark://none:7077 does not answer, or has refused the appl"),
    ],
)
def test_a_master_that_is_not_there_is_told_in_a_line(
    stops_at: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError(
            "An error occurred while calling None.org.apache.spark.Some.\n"
            ": Master must be right\n\tat org.apache.spark.Some\n"
        )

    class Context:
        _active_spark_context = None
        master = "spark://none:7077"

        def __init__(self, **_: object) -> None:
            if stops_at == "SparkContext":
                fail()

    class Session:
        builder = SimpleNamespace(getOrCreate=fail)

    monkeypatch.setattr(session.connect, "chosen_session", lambda: None)
    monkeypatch.setattr(session, "_start_java", lambda **_: None)
    monkeypatch.setattr(session, "SparkConf", lambda: Mock(get=lambda *_: "spark://none:7077"))
    monkeypatch.setattr(session, "_choose_sockets", lambda _: None)
    monkeypatch.setattr(session, "SparkContext", Context)
    monkeypatch.setattr(session, "SparkSession", Session)
    with pytest.raises(DeviceError) as found:
        session.get_session()
    assert str(found.value).startswith(f"Spark does not start: {told}")
    assert "\n" not in str(found.value)
