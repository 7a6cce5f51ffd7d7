"""Where tasks run unless somebody says so: on threads, or on Spark where Spark is set up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT

from engine.commands import main
from engine.commands.running import executor_of
from engine.runtime.executors import ThreadExecutor
from spark_plugin.configured import why_spark

SET_UP = (
    "PYSPARK_SUBMIT_ARGS",
    "PYSPARK_GATEWAY_PORT",
    "SPARK_HOME",
    "SPARK_CONF_DIR",
    "SPARK_REMOTE",
    "SPARK_CONNECT_MODE_ENABLED",
)


@pytest.fixture(autouse=True)
def nothing_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SET_UP:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "pyspark", None)


class Engine:
    """An engine that says why it is wanted."""

    def __init__(self, why: str | None) -> None:
        self.why, self.started = why, False

    def __call__(self, **_: Any) -> ThreadExecutor:
        """Start it."""
        self.started = True
        return ThreadExecutor()

    def wanted(self) -> str | None:
        """Say why."""
        return self.why


@pytest.mark.parametrize(
    ("given", "content", "why"),
    [
        ({}, "", None),
        ({"PYSPARK_SUBMIT_ARGS": "--driver-memory 1g pyspark-shell"}, "", None),
        ({"PYSPARK_SUBMIT_ARGS": "--master local[2] pyspark-shell"}, "", "PYSPARK_SUBMIT_ARGS"),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.master=yarn x"}, "", "PYSPARK_SUBMIT_ARGS"),
        ({"PYSPARK_GATEWAY_PORT": "1"}, "", "spark-submit started this process"),
        ({"SPARK_REMOTE": "sc://h"}, "", "SPARK_REMOTE names a server of Spark Connect"),
        ({}, "# spark.master x\nspark.eventLog.enabled true\n", None),
        ({}, "spark.app.name a\nspark.master  spark://h:7077\n", "spark-defaults.conf names"),
    ],
)
@pytest.mark.parametrize("where", ["SPARK_CONF_DIR", "SPARK_HOME"])
def test_spark_is_wanted_where_it_is_set_up(
    given: dict[str, str], content: str, why: str | None, where: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    folder = tmp_path if where == "SPARK_CONF_DIR" else tmp_path / "conf"
    folder.mkdir(exist_ok=True)
    (folder / "spark-defaults.conf").write_text(content)
    for name, value in ({where: str(tmp_path)} | given).items():
        monkeypatch.setenv(name, value)
    found = why_spark()
    assert (found is None) == (why is None)
    assert (why or "") in (found or "")


def test_an_active_session_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    class Context:
        _active_spark_context: object | None = None

    class Loaded:
        SparkContext = Context

    monkeypatch.setitem(sys.modules, "pyspark", Loaded)  # type: ignore[arg-type]
    assert why_spark() is None
    monkeypatch.setattr(Context, "_active_spark_context", object())
    assert why_spark() == "a Spark session is active"


def test_auto_is_threads_unless_an_engine_is_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    idle, busy = Engine(None), Engine("it is noon")
    assert isinstance(executor_of({"other": idle}, "auto"), ThreadExecutor)
    said = capsys.readouterr().err
    assert said == "winnow: on threads of this process (--engine spark: on Spark)\n"
    executor_of({"other": idle, "third": busy}, "auto")
    said = capsys.readouterr().err
    assert said == "winnow: on third, for it is noon (--engine local: on threads of this process)\n"
    assert (idle.started, busy.started) == (False, True)
    executor_of({"other": busy}, "local")
    assert not capsys.readouterr().err


def test_rapids_is_spark() -> None:
    engine = Engine(None)
    executor_of({"spark": engine}, "auto", rapids=True)
    assert engine.started


def test_a_replay_without_an_engine_loads_no_spark(tmp_path: Path) -> None:
    for side in ("left", "right"):
        pq.write_table(pa.table({"t": [0, 1], "k": [1, 1]}), tmp_path / f"{side}.parquet")
    words = ["replay", *(f"--{side}={tmp_path}/{side}.parquet" for side in ("left", "right"))]
    words += ["--on=k", "--time=t", "--window=1", f"--cache={tmp_path}/lanes"]
    program = (
        "import sys\nfrom engine.commands import main\n"
        f"status = main({words!r})\n"
        "print(status, 'pyspark' in sys.modules)\n"
    )
    shown = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert shown.stdout.splitlines()[-1] == "0 False"
    assert shown.stderr == "winnow: on threads of this process (--engine spark: on Spark)\n"


def test_an_engine_that_is_none_is_told_with_the_next(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--left=a", "--right=b", "--on=k", "--time=t", "--window=1", "--engine=sparc"]
    assert main(["replay", *words]) == 2
    assert "--engine is 'sparc'; choose one of auto, local, spark" in capsys.readouterr().err
