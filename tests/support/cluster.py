"""A true Spark cluster on this machine: a master, two workers, the packaged application on them.

Processes as anywhere: those of the pyspark package. Their Python has winnow's packages and not
winnow: what a worker runs of it comes from the archive that the application ships. One cluster
serves all processes of a test run; a supervisor (this file as a program) stops it when the last of
them ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from places import ROOT, SUPPORT
from quick_java import EXECUTORS, OPTIONS, VARIABLES

APPLICATION = SUPPORT / "cluster_app.py"
POLL, PATIENCE = 0.1, 600.0
WORKERS, CORES = 2, 2
"""Each worker has room for an executor of that many cores, and for one of another application."""
_STARTED = re.compile(r"Starting Spark master at (spark://\S+)")
_JOINED = "Successfully registered with master"
_CONF = {
    "spark.ui.enabled": "false",
    "spark.log.level": "WARN",
    "spark.executor.memory": "512m",
    "spark.executor.cores": str(CORES),
    "spark.cores.max": str(WORKERS * CORES),
    "spark.sql.shuffle.partitions": "3",
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.multiplier": "3",
    "spark.speculation.quantile": "0.3",
    "spark.speculation.task.duration.threshold": "3s",
    "spark.executorEnv.NUMBA_NUM_THREADS": "1",
} | EXECUTORS


class Done(NamedTuple):
    """What came of a job."""

    status: int | None
    out: str
    err: str
    seconds: float


class Cluster:
    """A cluster that runs, in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.jobs = folder / "jobs"
        self.archive = folder / "winnow.zip"
        self.launcher = folder / "winnow-submit.py"
        self.python = folder / "clean" / "bin" / "python"

    @property
    def master(self) -> str:
        """Its address."""
        return (self.folder / "ready").read_text()

    def run(self, **job: Any) -> Done:
        """Have the application do a job, and return what came of it."""
        place = self.jobs / f"{time.monotonic_ns():020d}-{uuid.uuid4().hex[:8]}.json"
        draft = place.with_suffix(".new")
        draft.write_text(json.dumps(job, default=str))
        draft.rename(place)
        answer = place.with_suffix(".done")
        waited(answer.exists, "the application has not done its job", self.folder)
        return Done(**json.loads(answer.read_text()))

    def submit(self, *words: str, conf: dict[str, str] | None = None) -> subprocess.Popen[str]:
        """Start ``spark-submit`` of the packaged application with arguments of winnow's own."""
        return self.start(str(self.launcher), *words, conf=conf)

    def start(
        self, *program: str, conf: dict[str, str] | None = None, log: Any = subprocess.PIPE
    ) -> subprocess.Popen[str]:
        """Start ``spark-submit`` of a program."""
        given = [f"--conf={name}={value}" for name, value in (_CONF | (conf or {})).items()]
        return subprocess.Popen(  # noqa: S603 - Spark's own
            [
                spark_home() / "bin" / "spark-submit", "--master", self.master,
                "--driver-memory", "512m", "--py-files", self.archive, *given, *program,
            ],
            env=environment(self.python), cwd=self.folder, text=True, start_new_session=True,
            stdout=log, stderr=log,
        )  # fmt: skip


def spark_home() -> Path:
    """Return the folder of the pyspark package."""
    import pyspark  # noqa: PLC0415 - tests that take no cluster need none

    return Path(pyspark.__file__).parent


def environment(python: Path, host: str = "127.0.0.1") -> dict[str, str]:
    """Return that of a machine of a cluster: nothing of winnow but where it keeps compiled code."""
    from engine.runtime.cache_folders import cache_home  # noqa: PLC0415 - as above
    from spark_plugin.session import provide_java  # noqa: PLC0415 - as above

    provide_java()
    kept = ("PATH", "HOME", "JAVA_HOME", "LANG", "TMPDIR")
    return (
        {name: os.environ[name] for name in kept if name in os.environ}
        | VARIABLES
        | {
            "SPARK_HOME": str(spark_home()),
            "SPARK_LOCAL_IP": host,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_NO_DAEMONIZE": "1",
            "PYSPARK_PYTHON": str(python),
            "PYSPARK_DRIVER_PYTHON": str(python),
            "WINNOW_PYTHON": str(getattr(sys, "_base_executable", sys.executable)),
            "WINNOW_CACHE": str(cache_home()),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
    )


def waited(ready: Any, what: str, folder: Path) -> None:
    """Wait until `ready()`; if it is too long, say for what, and what the processes have said."""
    until = time.monotonic() + PATIENCE
    while not ready():
        failed = folder / "failed"
        if time.monotonic() > until or failed.exists():
            logs = "\n".join(
                f"== {log.name}\n{log.read_text(errors='replace')[-2000:]}"
                for log in sorted(folder.glob("*.log"))
            )
            raise TimeoutError(f"{what}:\n{logs}")
        time.sleep(POLL)


@contextmanager
def shared(folder: Path) -> Iterator[Cluster]:
    """Yield the cluster of a folder, which processes of a test run share; start it if need be."""
    users = folder / "users"
    users.mkdir(parents=True, exist_ok=True)
    own = users / str(os.getpid())
    try:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            own.touch()
            if not _alive(folder / "supervisor"):
                for name in ("ready", "failed"):
                    (folder / name).unlink(missing_ok=True)
                with (folder / "supervisor.log").open("w") as log:
                    started = subprocess.Popen(  # noqa: S603 - this file
                        [sys.executable, __file__, str(folder)], start_new_session=True,
                        stdout=log, stderr=log, env=os.environ | {"PYTHONPATH": str(ROOT)},
                    )  # fmt: skip
                (folder / "supervisor").write_text(str(started.pid))
                started.returncode = 0  # it outlives this process; nobody waits for it here
            waited((folder / "ready").exists, "the cluster has not started", folder)
        yield Cluster(folder)
    finally:
        own.unlink()
        if not any(_alive(user, user.name) for user in users.iterdir()):
            until = time.monotonic() + PATIENCE
            while _alive(folder / "supervisor") and time.monotonic() < until:
                time.sleep(POLL)


def _alive(place: Path, pid: str | None = None) -> bool:
    """Return whether the process runs whose number is in a file."""
    with suppress(OSError, ValueError):
        number = int(pid or place.read_text())
        stat = Path(f"/proc/{number}/stat").read_text()
        return stat.rsplit(")", 1)[1].split()[0] != "Z"
    return False


def lay_out(folder: Path) -> None:
    """Make the packaged environment, of links to the packages that are installed here."""
    from spark_plugin.shipping.environment import (  # noqa: PLC0415 - the supervisor's alone
        files_of,
        packed,
        python_script,
    )

    (folder / "bin").mkdir(parents=True)
    (folder / "lib").mkdir()
    python = folder / "bin" / "python"
    python.write_text(python_script())
    python.chmod(0o755)
    stores = ["storage"] if find_spec("obstore") else []
    for package in packed(stores):
        for name, path in files_of(package):
            top = Path(name).parts[0]
            link = folder / "lib" / top
            if not link.is_symlink():
                link.symlink_to(path.parents[len(Path(name).parts) - 1] / top)


class _Supervisor:
    def __init__(self, folder: Path) -> None:
        self._folder, self._cluster = folder, Cluster(folder)
        self._children: list[subprocess.Popen[Any]] = []

    def run(self) -> None:
        """Start everything, wait until nobody uses it, and stop it."""
        from spark_plugin.shipping.code import code_places, write_code  # noqa: PLC0415 - the supervisor's alone

        folder, cluster = self._folder, self._cluster
        cluster.jobs.mkdir()
        lay_out(folder / "clean")
        write_code(*code_places(cluster.archive))
        try:
            self._daemon("master", "127.0.0.1", "master.Master")
            master = self._said("master", _STARTED)
            for number in range(WORKERS):
                host = f"127.0.0.{2 + number}"  # a copy of a slow task runs on another host
                self._daemon(
                    f"worker-{number}", host, "worker.Worker", "--cores", str(2 * CORES),
                    "--memory", "1g", "--work-dir", str(folder / f"work-{number}"), master,
                )  # fmt: skip
            for number in range(WORKERS):
                self._said(f"worker-{number}", re.compile(f"({_JOINED})"))
            (folder / "ready.draft").write_text(master)
            (folder / "ready.draft").rename(folder / "ready")
            with (folder / "application.log").open("w") as log:
                self._watch(cluster.start(str(APPLICATION), str(cluster.jobs), log=log))
        except BaseException:
            (folder / "failed").touch()
            raise
        finally:
            cluster.jobs.rename(folder / "jobs.gone")
            self._stop()

    def _watch(self, application: subprocess.Popen[str]) -> None:
        self._children.append(application)
        users = self._folder / "users"
        while any(_alive(user, user.name) for user in users.iterdir()):
            if application.poll() is not None:
                raise RuntimeError(f"the application ended with {application.returncode}")
            time.sleep(POLL)

    def _daemon(self, name: str, host: str, main: str, *words: str) -> None:
        command = [spark_home() / "bin" / "spark-class", f"org.apache.spark.deploy.{main}"]
        with (self._folder / f"{name}.log").open("wb") as log:
            child = subprocess.Popen(  # noqa: S603 - Spark's own
                [*command, "--host", host, "--port", "0", "--webui-port", "0", *words],
                env=environment(self._cluster.python, host)
                | {"SPARK_DAEMON_JAVA_OPTS": f"{OPTIONS} -Dspark.master.rest.enabled=false"},
                cwd=self._folder, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        self._children.append(child)

    def _said(self, name: str, what: re.Pattern[str]) -> str:
        log = self._folder / f"{name}.log"
        waited(lambda: what.search(log.read_text(errors="replace")), f"{name} not up", self._folder)
        return what.search(log.read_text(errors="replace"))[1]

    def _stop(self) -> None:
        for child in reversed(self._children):
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
        for child in self._children:
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGKILL)


if __name__ == "__main__":
    _Supervisor(Path(sys.argv[1])).run()
