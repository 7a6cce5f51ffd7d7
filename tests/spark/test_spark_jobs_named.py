"""What Spark's pages show of winnow's jobs, and how they are cancelled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from job_cases import streams
from places import ROOT
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from spark_cases import of_the_jvm, replayed
from thorough import guards

import winnow
from engine.report.losses import in_a_line, in_figures
from engine.runtime.errors import WinnowError
from engine.runtime.executors import Stages
from spark_plugin.accumulators import leave
from spark_plugin.executor import SparkExecutor
from spark_plugin.naming import described, jobs_named
from spark_plugin.versions import inheriting

pytestmark = of_the_jvm
BUSY, PATIENCE = 120.0, 30.0
"""Seconds that a task is at work if nothing ends it, and that a test waits for what it expects
sooner (Spark looks every 2 s whether a task was cancelled)."""
FIGURES = {"outputs": 3, "many": 3 << 40, "none": 0, "less": -2, "importance": 1.25}
_NAMES = ("spark.jobGroup.id", "spark.job.description", "spark.job.tags")


class Job:
    """A job as Spark's pages have it."""

    def __init__(self, data: Any) -> None:
        self.number = data.jobId()
        self.description = text_of(data.description())
        self.group = text_of(data.jobGroup())
        self.tasks = data.numTasks()
        self.stages = data.stageIds()


def text_of(option: Any) -> str:
    """Return the text in Scala's Option."""
    return str(option.get()) if option.isDefined() else ""


def shown(spark: Any, since: int = -1) -> list[Job]:
    """Return the jobs after one, in order."""
    context = spark.sparkContext._jsc.sc()  # noqa: SLF001 - Python has no such list
    context.listenerBus().waitUntilEmpty()
    found = context.statusStore().jobsList(None)
    jobs = [Job(found.apply(i)) for i in range(found.size())]
    return sorted((job for job in jobs if job.number > since), key=lambda job: job.number)


def accumulators(spark: Any, job: Job) -> dict[str, float]:
    """Return what the page of a job's only stage has in its table of accumulators."""
    context = spark.sparkContext
    stage = context._jsc.sc().statusStore().lastStageAttempt(job.stages.head())  # noqa: SLF001 - as above
    assert stage.numTasks() == 1
    table = stage.accumulatorUpdates()
    rows = [table.apply(i) for i in range(table.size())]
    return {own.name(): json.loads(own.value()) for own in rows}


@pytest.fixture
def last(spark: Any) -> int:
    """Return the number of the last job before the test."""
    return max((job.number for job in shown(spark)), default=-1)


@pytest.fixture
def properties(spark: Any) -> Iterator[dict[str, str | None]]:
    """Give this thread a group and a description of its own; fail if they are lost."""
    context = spark.sparkContext
    before = {name: context.getLocalProperty(name) for name in _NAMES}
    context.setJobGroup("nightly", "the night's joins")
    own = {name: context.getLocalProperty(name) for name in _NAMES}
    yield own
    assert {name: context.getLocalProperty(name) for name in _NAMES} == own
    for name, value in before.items():
        context.setLocalProperty(name, value)


def test_jobs_say_their_stage_and_lanes_and_the_last_what_was_lost(
    spark: Any, last: int, tmp_path: Path
) -> None:
    folder = streams(tmp_path, 3, 400).folder
    _, report = replayed(folder, SparkExecutor(spark), lanes=3, policy="dgl", memory="10%")
    jobs = shown(spark, last)
    assert {job.group for job in jobs} == {"winnow"}
    stages = [job.description.split(":")[0].removeprefix("winnow ") for job in jobs[:-1]]
    assert stages[:2] + stages[-2:] == ["device", "split", "peaks", "replay"]
    (replay,) = (job for job in jobs if job.description.startswith("winnow replay"))
    lanes = replay.description.removeprefix("winnow replay: lanes ").split(", ")
    assert sorted(lanes[:3]) == ["0", "1", "2"]
    assert lanes[3] == f"{sum(report.content['joined'].values()):,} tuples"
    assert jobs[-1].description == in_a_line(report.content)
    assert f"of {report.content['exact']['outputs']:,} outputs" in jobs[-1].description
    assert accumulators(spark, jobs[-1]) == in_figures(report.content)
    assert all(spark.sparkContext.getLocalProperty(name) is None for name in _NAMES)


def test_data_frames_leave_what_was_lost_when_their_report_is_asked_for(
    spark: Any, last: int, tmp_path: Path
) -> None:
    folder = streams(tmp_path, 3, 400).folder
    sides = [spark.read.parquet(str(folder / f"{side}.parquet")) for side in ("left", "right")]
    found = winnow.replay(*sides, on="k", time="t", window=9, memory=20, policy="prob")
    lost = found.report["lost"]
    line = shown(spark, last)[-1]
    assert line.description == in_a_line(found.report)
    assert accumulators(spark, line) == in_figures(found.report)
    assert accumulators(spark, line)["winnow outputs lost"] == lost["outputs"] > 0


@pytest.mark.parametrize("error", [TypeError, Py4JError, PySparkException])
def test_where_spark_lacks_what_accumulators_take_the_line_stays(
    spark: Any, last: int, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    def fails(*_: object) -> None:
        raise error("no such class")

    monkeypatch.setattr("spark_plugin.accumulators.accumulate", fails)
    leave(spark, "winnow: 3 outputs", FIGURES)
    (line,) = shown(spark, last)
    assert (line.description, line.tasks) == ("winnow: 3 outputs", 0)


def test_many_lanes_are_named_in_part() -> None:
    class Lanes:
        rows = 500

        def __init__(self, *lanes: object) -> None:
            self.lanes = lanes

    found = described("lanes", [Lanes(7, 3), Lanes(*range(10))])
    assert found == "winnow lanes: lanes 7, 3, 0, 1, 2, 4, 5, 6 and 2 more, 1,000 tuples"
    assert described("", ["cpu"]) == "winnow task"
    tasks = Lanes(Lanes(2), Lanes(5))
    assert described("draw", [tasks]) == "winnow draw: lanes 2, 5, 500 tuples"
    tasks.rows = (3, 4)  # type: ignore[assignment]
    assert described("draw", [tasks]) == "winnow draw: lanes 2, 5"


def test_a_callers_group_and_description_stay(
    spark: Any, last: int, properties: dict[str, str | None]
) -> None:
    assert properties["spark.jobGroup.id"] == "nightly"
    stages = Stages(SparkExecutor(spark))
    assert stages.mapped("add", abs, [-1, 2]) == [1, 2]
    stages.show("winnow: 3 outputs", FIGURES)
    (job, line) = shown(spark, last)
    assert (job.group, job.description) == ("nightly", "the night's joins: winnow add")
    assert (line.group, line.description) == ("nightly", "the night's joins: winnow: 3 outputs")
    assert accumulators(spark, line) == FIGURES
    assert spark.sparkContext.getLocalProperty("spark.sql.codegen.factoryMode") is None


def test_names_are_restored_after_an_error_and_of_one_thread(spark: Any, last: int) -> None:
    context, seen = spark.sparkContext, []

    def other() -> None:
        context.setJobGroup("other", "another's")
        begun.wait()
        context.parallelize([1], 1).count()
        seen.append(context.getLocalProperty("spark.jobGroup.id"))

    begun = threading.Event()
    thread = inheriting(other, spark)
    thread.start()
    with suppress(KeyError), jobs_named(spark, "winnow measures lanes", "a"):
        begun.set()
        thread.join()
        context.parallelize([1], 1).count()
        raise KeyError
    found = [(job.group, job.description) for job in shown(spark, last)]
    assert found == [("other", "another's"), ("winnow", "winnow measures lanes")]
    assert seen == ["other"]
    assert all(context.getLocalProperty(name) is None for name in _NAMES)


def at_work(folder: Path) -> list[Path]:
    """Return the marks of tasks whose process runs."""
    found = []
    for mark in folder.glob("busy.*"):
        stat = Path(f"/proc/{mark.suffix[1:]}/stat")
        if stat.exists() and stat.read_text().rsplit(")", 1)[1].split()[0] != "Z":
            found.append(mark)
    return found


def wait(ready: Any) -> None:
    """Wait until `ready()`."""
    until = time.monotonic() + PATIENCE
    while not ready():
        assert time.monotonic() < until
        time.sleep(0.02)


class Busy(SparkExecutor):
    """One whose replay tasks are at work for long."""

    marker = ""

    def map(self, function: Any, items: Any) -> Any:
        """Yield what tasks return; those of a replay do not in a test's time."""
        marker = self.marker

        def busy(_: Any) -> None:
            Path(f"{marker}.{os.getpid()}").touch()
            until = time.monotonic() + BUSY
            while time.monotonic() < until:
                sum(range(1000))

        return super().map(busy if function.__name__ == "replay_lane" else function, items)


@pytest.mark.parametrize("group", ["winnow", "nightly"])
def test_cancelling_a_group_ends_its_tasks_soon_and_leaves_nothing(
    spark: Any, tmp_path: Path, group: str
) -> None:
    folder, context = streams(tmp_path, 3, 400).folder, spark.sparkContext
    executor, found = Busy(spark), []
    executor.marker = str(tmp_path / "busy")

    def run() -> None:
        if group == "nightly":
            context.setJobGroup("nightly", "")
        try:
            replayed(folder, executor, lanes=2, policy="dgl")
        except WinnowError as error:
            found.append(str(error))

    thread = inheriting(run, spark)
    thread.start()
    wait(lambda: len(at_work(tmp_path)) == 2)
    context.cancelJobGroup(group)
    thread.join(PATIENCE)
    assert not thread.is_alive()
    wait(lambda: not at_work(tmp_path))
    assert len(found) == 1
    assert "the job was cancelled on Spark (Job " in found[0]
    assert f"part of cancelled job group {group}): run it again" in found[0]
    assert [path.name for path in (folder / "run-0").iterdir()] == ["cache"]
    rows, _ = replayed(folder, SparkExecutor(spark), lanes=2, policy="dgl")
    assert rows.num_rows > 0


UNPINNED = """
import sys
from pathlib import Path
from engine.runtime.executors import Stages
from spark_plugin.executor import SparkExecutor
from spark_plugin.session import get_session

spark = get_session()
context = spark.sparkContext
context.setLocalProperty("spark.jobGroup.id", "mine")
stages = Stages(SparkExecutor(spark))
assert stages.mapped("add", abs, [-1, 2]) == [1, 2]
stages.show("a line", {"n": 1})
print(context.getLocalProperty("spark.jobGroup.id"))
"""


@guards("tests/spark/test_spark_jobs_named.py", "spark_plugin/naming.py")
def test_without_pinned_threads_jobs_run_and_no_group_is_lost() -> None:
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", UNPINNED], check=True, capture_output=True, text=True,
        env=os.environ | {"PYSPARK_PIN_THREAD": "false", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.split() == ["mine"]
