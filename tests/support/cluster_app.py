"""The application on the cluster of `cluster.py`: carries out the jobs that tests put in a folder.

``spark-submit --py-files winnow.zip cluster_app.py FOLDER``. A job is ``ID.json`` there; what came
of it is ``ID.done``. It runs the command line as an application does that was submitted, and
where the job says so with a fault in one of its tasks. Faults are put around the functions that
tasks run, here: nothing of them is in the product.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import SparkSession

import engine
import spark_plugin
from engine.runtime.storage.reading import bytes_at
from engine.runtime.storage.uploads import objects, write_bytes
from engine.runtime.storage.uris import Uri
from spark_plugin import dataframe, streaming, submit
from spark_plugin.executor import SparkExecutor
from spark_plugin.lookup import lookup
from spark_plugin.session import get_session, map_in_arrow

POLL, PATIENCE, LINGERING = 0.05, 120.0, 20.0
_MAP = SparkExecutor.map


class Fault:
    """What goes wrong in a task, once for each marker file there can be.

    Parameters
    ----------
    kind : str
        One of the methods here.
    at : str
        Name of the function that the task runs.
    when : {"before", "after"}
        It has run.
    marker : str
        Who makes this file has the fault.
    """

    def __init__(self, kind: str, at: str, when: str, marker: str) -> None:
        self.kind, self.at, self.when, self.marker = kind, at, when, marker

    def mine(self, task: str) -> bool:
        """Return whether the fault is this attempt's at a task."""
        try:
            with Path(self.marker).open("x") as file:
                file.write(task)
        except FileExistsError:
            return False
        return True

    def been_through(self, task: str) -> None:
        """Tell who has had the fault that another attempt at its task is through."""
        if Path(self.marker).read_text() == task:
            Path(f"{self.marker}.other").touch()

    def fails(self, _item: Any) -> None:
        """Raise what is nobody's fault."""
        raise KeyError("a failure that is nobody's fault")

    def worker_killed(self, _item: Any) -> None:
        """Kill this process, as a system short of memory does."""
        os.kill(os.getpid(), signal.SIGKILL)

    def executor_killed(self, _item: Any) -> None:
        """Kill the executor's JVM, and with it everything that runs in it."""
        os.kill(ancestor("CoarseGrainedExecutorBackend"), signal.SIGKILL)
        time.sleep(PATIENCE)

    def straggles(self, _item: Any) -> None:
        """Wait until another attempt is through, and then go on."""
        until = time.monotonic() + PATIENCE
        while not Path(f"{self.marker}.other").exists() and time.monotonic() < until:
            time.sleep(POLL)

    def lingers(self, item: Any) -> None:
        """Leave a process that Spark knows nothing of, which writes parts until it cannot."""
        if os.fork():
            return
        os.setsid()
        with contextlib.suppress(BaseException):
            lane, until = f"part-{item.files.lane:05d}", time.monotonic() + LINGERING
            own = objects(item.out) if isinstance(item.out, Uri) else item.out.iterdir()
            (part,) = (one.name for one in own if one.name.startswith(f"{lane}."))
            content = bytes_at(item.out / part)
            while time.monotonic() < until:
                write_bytes(item.out / f"{lane}.{uuid.uuid4().hex}.parquet", content)
                time.sleep(0.01)
        os._exit(0)

    def hangs(self, _item: Any) -> None:
        """Be busy for as long as a test lasts."""
        time.sleep(PATIENCE)


def ancestor(name: str) -> int:
    """Return the process above this one whose command has `name` in it."""
    pid = os.getpid()
    while name.encode() not in Path(f"/proc/{pid}/cmdline").read_bytes():
        pid = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
    return pid


class Faulty:
    """A function with a fault before or after it."""

    def __init__(self, function: Callable[[Any], Any], fault: Fault) -> None:
        self._function, self._fault = function, fault

    def __call__(self, item: Any) -> Any:
        """Call it."""
        fault = self._fault
        if fault.kind == "disk_full":
            with full_disk():
                return self._function(item)
        task = hashlib.sha256(repr(item).encode()).hexdigest()
        mine = fault.mine(task)
        if mine and fault.when == "before":
            getattr(fault, fault.kind)(item)
        result = self._function(item)
        if mine and fault.when == "after":
            getattr(fault, fault.kind)(item)
        if not mine:
            fault.been_through(task)
        return result


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """Let what is written as Parquet find the disk full halfway."""
    whole = pq.ParquetWriter.write_table

    def write(self: Any, table: pa.Table, *args: Any, **kwargs: Any) -> None:
        whole(self, table.slice(0, table.num_rows // 2), *args, **kwargs)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    pq.ParquetWriter.write_table = write
    try:
        yield
    finally:
        pq.ParquetWriter.write_table = whole


@contextlib.contextmanager
def faulty(given: dict[str, str] | None) -> Iterator[None]:
    """Let the tasks of a function meet the fault that a job names."""
    if given is None:
        yield
        return
    fault = Fault(**given)

    def mapped(self: SparkExecutor, function: Any, items: Any) -> Any:
        chosen = Faulty(function, fault) if function.__name__ == fault.at else function
        return _MAP(self, chosen, items)

    SparkExecutor.map = mapped
    try:
        yield
    finally:
        SparkExecutor.map = _MAP


def command(job: dict[str, Any]) -> int:
    """Run a command line."""
    with faulty(job.get("fault")):
        return submit.main(job["argv"])


def frames(job: dict[str, Any]) -> int:
    """Replay two DataFrames and write the outputs as Spark does."""
    session = get_session()
    left, right = (session.read.parquet(job[side]) for side in ("left", "right"))
    kept = dataframe.replay(left, right, **job["options"])
    wanted = job.get("fault")
    if wanted is not None:
        fault = Fault(**wanted)

        def passed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            task = str(TaskContext.get().partitionId())
            mine = fault.mine(task)
            yield from batches
            if mine:
                getattr(fault, fault.kind)(None)
            else:
                fault.been_through(task)

        kept = map_in_arrow(kept, passed, kept.schema)
    kept.write.parquet(job["out"])
    return 0


def looked_up(job: dict[str, Any]) -> int:
    """Look a DataFrame up in another and write the outputs as Spark does."""
    session = get_session()
    stream, fact = (session.read.parquet(job[name]) for name in ("stream", "fact"))
    lookup(stream, fact, **job["options"]).write.parquet(job["out"])
    return 0


def streamed(job: dict[str, Any]) -> int:
    """Replay two archives as a stream to their end, and write the outputs as Spark does."""
    kept = streaming.replay(job["left"], job["right"], session=get_session(), **job["options"])
    writer = kept.writeStream.option("checkpointLocation", job["checkpoint"])
    query = writer.trigger(availableNow=True).start(job["out"], "parquet")
    query.awaitTermination()
    print(query.lastProgress.batchId)  # noqa: T201 - taken by the test
    return 0


def places(_job: dict[str, Any]) -> int:
    """Print where the driver and the workers have their code from, and what they cannot import."""

    def place(_item: int) -> dict[str, Any]:
        import importlib.util  # noqa: PLC0415 - runs in a worker

        import engine as there  # noqa: PLC0415 - the worker's

        return {
            "engine": there.__file__,
            "python": sys.executable,
            "winnow": importlib.util.find_spec("winnowjoin") is not None,
            "executor": ancestor("CoarseGrainedExecutorBackend"),
        }

    driver = {"engine": engine.__file__, "spark_plugin": spark_plugin.__file__}
    workers = list(SparkExecutor(get_session()).map(place, range(16)))
    print(json.dumps({"driver": driver, "workers": workers}))  # noqa: T201 - taken by the test
    return 0


KINDS = {
    "command": command,
    "frames": frames,
    "lookup": looked_up,
    "places": places,
    "stream": streamed,
}


def done(job: dict[str, Any]) -> dict[str, Any]:
    """Do a job and return what came of it."""
    out, err = io.StringIO(), io.StringIO()
    status = None
    begun = time.monotonic()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = KINDS[job["kind"]](job)
        except Exception:  # noqa: BLE001 - reported to the test
            traceback.print_exc()
    seconds = time.monotonic() - begun
    return {"status": status, "out": out.getvalue(), "err": err.getvalue(), "seconds": seconds}


def main(folder: Path) -> None:
    """Carry out jobs until the folder is gone."""
    while folder.exists():
        for path in sorted(folder.glob("*.json")):
            taken = path.rename(path.with_suffix(".taken"))
            answer = done(json.loads(taken.read_text()))
            draft = path.with_suffix(".draft")
            draft.write_text(json.dumps(answer))
            draft.rename(path.with_suffix(".done"))
        time.sleep(POLL)
    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
