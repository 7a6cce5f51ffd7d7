"""Replays on a local cluster whose executors have made-up GPUs; prints what came of them.

    python tests/support/gpu_cluster.py FOLDER

A process of its own: it has its own Spark. FOLDER gets archives, outputs and logs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pyspark
from job_cases import streams
from places import PYTHONPATH
from quick_java import EXECUTORS

from engine.runtime import device_choice as attempt

if __name__ == "__main__":
    attempt.__dict__["LANES_A_CORE"] = 0  # before others take it

from spark_cases import ORDER, archived, replayed

from engine.runtime.errors import WinnowError
from spark_plugin.dataframe import replay
from spark_plugin.executor import SparkExecutor
from spark_plugin.session import get_session

OPTIONS = {"policy": "dimpprob", "lanes": 4, "columns": "ids"}
ALWAYS = 9
TRIALS = (
    ("archives", "gpu", "none", 0),
    ("archives", "auto", "illegal", 1),
    ("frames", "gpu", "memory", 1),
    ("archives", "auto", "lost", ALWAYS),
    ("archives", "gpu", "illegal", ALWAYS),
    ("frames", "auto", "memory", ALWAYS),
)
"""A path, the device asked for, the fault of a GPU, and the attempts at a task that have it."""


def spark_home(folder: Path) -> Path:
    """Return a home whose ``work`` folder is not in the installed package."""
    home = folder / "spark"
    home.mkdir()
    for part in Path(pyspark.__file__).parent.iterdir():
        if part.name != "work":
            (home / part.name).symlink_to(part)
    return home


def configure(folder: Path) -> None:
    """Say through the environment what Spark is to start."""
    script = folder / "gpus.sh"
    script.write_text('#!/bin/sh\necho \'{"name": "gpu", "addresses": ["0", "1"]}\'\n')
    script.chmod(0o755)
    conf = {
        "spark.worker.resource.gpu.amount": 2,
        "spark.worker.resource.gpu.discoveryScript": script,
        "spark.executor.resource.gpu.amount": 2,
        "spark.task.resource.gpu.amount": 1,
        "spark.task.maxFailures": 2,
        "spark.executor.memory": "640m",
        "spark.sql.shuffle.partitions": 2,
        "spark.default.parallelism": 2,
        "spark.python.daemon.module": "gpu_daemon",
        "spark.local.dir": folder / "local",
        "spark.executorEnv.PYTHONPATH": PYTHONPATH,
        "spark.executorEnv.NUMBA_ENABLE_CUDASIM": 1,
        "spark.executorEnv.WINNOW_GPU_SHARE": 0.5,
        "spark.executorEnv.WINNOW_FAKE": folder,
    }
    words = [f"--conf '{name}={value}'" for name, value in (conf | EXECUTORS).items()]
    os.environ["SPARK_HOME"] = str(spark_home(folder))
    os.environ["PYSPARK_SUBMIT_ARGS"] = " ".join(
        ["--master local-cluster[2,2,640] --driver-memory 640m", *words, "pyspark-shell"]
    )


class Trial:
    """Replays of one pair of archives, under faults.

    Parameters
    ----------
    session : SparkSession
    """

    def __init__(self, folder: Path, session: Any) -> None:
        self.folder, self.session = folder, session
        self.expected = archived(folder, **OPTIONS)
        self.trials = 0

    def fault(self, name: str, attempts: int) -> None:
        """Let launches fail in the first attempts at a task, and forget what was noted."""
        self.trials += 1
        given = {"name": name, "attempts": attempts, "trial": self.trials}
        (self.folder / "fault").write_text(json.dumps(given))
        (self.folder / "log").write_text("")

    def outcome(self, work: Any) -> dict[str, Any]:
        """Return whether the rows of some work are those expected, or why there are none."""
        found: dict[str, Any] = {}
        try:
            rows, found["device"] = work()
            found["equal"] = rows.equals(self.expected) and rows.num_rows > 0
        except WinnowError as error:
            found["error"] = f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - Spark's own
            found["failed"] = str(error)
        log = (self.folder / "log").read_text().splitlines()
        return found | {"log": [json.loads(line) for line in log]}

    def archives(self, device: str) -> dict[str, Any]:
        """Replay the archives."""

        def work() -> tuple[Any, Any]:
            rows, report = replayed(
                self.folder, SparkExecutor(self.session), device=device, **OPTIONS
            )
            return rows, report.content["device"]

        found = self.outcome(work)
        last = max(self.folder.glob("run-*"), key=lambda run: int(run.name[4:]))
        return found | {"left": sorted(path.name for path in last.iterdir())}

    def frames(self, device: str) -> dict[str, Any]:
        """Replay them as DataFrames."""
        left, right = (
            self.session.read.parquet(str(self.folder / f"{side}.parquet"))
            for side in ("left", "right")
        )
        given = {"on": "k", "time": "t", "importance": "i", "window": 9, "memory": 12}

        def work() -> tuple[Any, Any]:
            kept = replay(left.repartition(2), right, device=device, **(given | OPTIONS))
            return kept.toArrow().sort_by(ORDER), None

        return self.outcome(work)


def main(folder: Path) -> int:
    """Try everything and print it."""
    streams(folder, rows=40)
    configure(folder)
    session = get_session("made-up GPUs")
    try:
        trial = Trial(folder, session)
        for path, device, name, attempts in TRIALS:
            trial.fault(name, attempts)
            found = getattr(trial, path)(device)
            print(json.dumps([f"{path} {device} {name} {attempts}", found]), flush=True)  # noqa: T201 - the answer
    finally:
        session.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
