"""What Spark's pages show of winnow's jobs, and how they are cancelled."""

from __future__ import annotations

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
from spark_cases import of_the_jvm, replayed
from thorough import guards

from engine.report.losses import in_a_line
from engine.runtime.errors import WinnowError
from engine.runtime.executors import Stages
from spark_plugin.executor import SparkExecutor
from spark_plugin.naming import described, jobs_named
from spark_plugin.versions import inheriting

pytestmark = of_the_jvm
SOON = 2.5
"""Seconds: Spark looks every 2 s whether a task was cancelled."""
_NAMES = ("spark.jobGroup.id", "spark.job.description", "spark.job.tags")


class Job:
    """A job as Spark's pages have it."""

    def __init__(self, data: Any) -> None:
        self.number = data.jobId()
        self.description = text_of(data.description())
        self.group = text_of(data.jobGroup())
        self.tasks = data.numTasks()


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
    assert jobs[-1].tasks == 0
    assert all(spark.sparkContext.getLocalProperty(name) is None for name in _NAMES)


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
    stages.show("winnow: 3 outputs")
    (job, line) = shown(spark, last)
    assert (job.group, job.description) == ("nightly", "the night's joins: winnow add")
    assert (line.group, line.description) == ("nightly", "the night's joins: winnow: 3 outputs")


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


def waited(ready: Any, seconds: float = 30.0) -> float:
    """Return after how many seconds `ready()`."""
    begun = time.monotonic()
    while not ready():
        assert time.monotonic() < begun + seconds
        time.sleep(0.02)
    return time.monotonic() - begun


class Busy(SparkExecutor):
    """One whose replay tasks are at work for long."""

    marker = ""

    def map(self, function: Any, items: Any) -> Any:
        """Yield what tasks return; those of a replay do not in a test's time."""
        marker = self.marker

        def busy(_: Any) -> None:
            Path(f"{marker}.{os.getpid()}").touch()
            until = time.monotonic() + 60
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
    waited(lambda: len(at_work(tmp_path)) == 2)
    begun = time.monotonic()
    context.cancelJobGroup(group)
    thread.join(30)
    assert time.monotonic() - begun < SOON
    waited(lambda: not at_work(tmp_path))
    assert time.monotonic() - begun < SOON
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
stages.show("a line")
print(context.getLocalProperty("spark.jobGroup.id"))
"""


@guards("tests/spark/test_spark_jobs_named.py", "spark_plugin/naming.py")
def test_without_pinned_threads_jobs_run_and_no_group_is_lost() -> None:
    done = subprocess.run(  # noqa: S603 - ours
        [sys.executable, "-c", UNPINNED], check=True, capture_output=True, text=True,
        env=os.environ | {"PYSPARK_PIN_THREAD": "false", "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout.split() == ["mine"]
