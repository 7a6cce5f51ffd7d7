"""Where tasks run unless somebody says so: on threads, or on Spark where Spark is set up."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT

from engine.commands import main
from engine.commands.running import executor_of
from engine.commands.warm import RUNS, write_streams
from engine.runtime.errors import SpecError
from engine.runtime.executors import ThreadExecutor
from spark_plugin import configured
from spark_plugin.configured import why_large, why_spark

SIDES = {"left", "right"}
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

    def wanted(self, _: Callable[[], int]) -> str | None:
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


class Asking(Engine):
    """An engine that asks for the size of the archives, and does not start."""

    size = -1

    def wanted(self, archives: Callable[[], int]) -> str | None:
        """Ask, and say why."""
        self.size = archives()
        return super().wanted(archives)

    def __call__(self, **_: Any) -> ThreadExecutor:
        """Fail."""
        raise SpecError("not here")


@pytest.mark.parametrize(
    ("command", "line"),
    [(name, line) for name in RUNS for line in RUNS[name] if name not in ("lookup", "explain")],
)
def test_an_engine_learns_how_large_the_archives_are(
    command: str, line: str, tmp_path: Path
) -> None:
    write_streams(tmp_path)
    engine = Asking("it is large")
    words = line.format(folder=tmp_path).replace("--engine local", "").split()
    assert main([command, *words], {"asking": engine}) == 2
    names = {"left", "right", "third"} if "third" in line or command == "allocate" else SIDES
    size = sum((tmp_path / f"{name}.parquet").stat().st_size for name in names)
    assert engine.size == (0 if command == "estimate" else size)  # reads a part


def test_folders_and_patterns_count_whole_and_what_is_not_there_is_nothing(tmp_path: Path) -> None:
    for at, size in (("a/x.parquet", 5), ("a/b/y.parquet", 7), ("a/_z.parquet", 100), ("c", 20)):
        (tmp_path / at).parent.mkdir(exist_ok=True)
        (tmp_path / at).write_bytes(bytes(size))
    engine = Asking(None)
    executor_of({"asking": engine}, "auto", [f"{tmp_path}/a", f"{tmp_path}/[c]", "/not/there"])
    assert engine.size == 32


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have Spark and Java, and 100 GB of memory."""
    monkeypatch.setattr(configured, "find_spec", sys.modules.get)
    monkeypatch.setitem(sys.modules, "pyspark", ModuleType("pyspark"))
    monkeypatch.setattr(configured, "half_of_memory", lambda: 50 * 10**9)
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.touch(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))


@pytest.mark.usefixtures("installed")
def test_archives_that_memory_does_not_hold_go_to_spark() -> None:
    assert why_large(lambda: 100 * 10**9) is None
    found = why_large(lambda: 120 * 10**9)
    assert found == "the archives have 120.0 GB, and this machine's memory 100.0 GB"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("missing", ["pyspark", "java", "java in its home"])
def test_they_stay_where_spark_cannot_start(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if missing == "pyspark":
        monkeypatch.setitem(sys.modules, "pyspark", None)
    elif missing == "java in its home":
        monkeypatch.setenv("JAVA_HOME", "/not/there")
    else:
        monkeypatch.delenv("JAVA_HOME")
        monkeypatch.setenv("PATH", "")
    assert why_large(lambda: 120 * 10**9) is None


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
