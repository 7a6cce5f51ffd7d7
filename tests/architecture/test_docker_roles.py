"""The steps and roles of the images, run as processes where there is no Docker."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from places import ROOT
from quick_java import EXECUTORS
from thorough import guards

from engine.runtime.cache_folders import cache_home

DOCKER = ROOT / "docker"
SECONDS = 300
LENT = sysconfig.get_path("purelib")


def run(*words: object, **variables: object) -> subprocess.CompletedProcess[str]:
    """Run a script with this environment's programs first on the path."""
    return subprocess.run(  # noqa: S603 - our own scripts
        [str(word) for word in words],
        env=environment(**variables), capture_output=True, text=True, check=False,
    )  # fmt: skip


def environment(**variables: object) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return os.environ | {"PATH": path} | {name: str(told) for name, told in variables.items()}


def succeeded(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@guards("docker", "pyproject.toml", "tests/architecture/test_docker_roles.py")
def test_steps_make_an_environment_of_their_own_and_slim_it(tmp_path: Path) -> None:
    """Of the pins only a small one is fetched; the others are lent by this environment."""
    shutil.copytree(DOCKER, tmp_path / "docker")
    pins = tmp_path / "docker" / "requirements" / "cpu.txt"
    small = re.search(r"^mdurl==(?:.*\\\n)+.*\n", pins.read_text(), re.MULTILINE)
    assert small is not None
    pins.write_text(small[0])
    source = tmp_path / "src"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("engine", "gpu_kernels", "spark_plugin", "pyspark_winnow", "winnow"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    place = tmp_path / "env"
    succeeded(run(tmp_path / "docker" / "environment.sh", place, "cpu", PYTHON=sys.executable))
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place)}))
    assert (packages / "mdurl").is_dir()
    (packages / "lent.pth").write_text(f"{LENT}\n")
    done = run(tmp_path / "docker" / "slim.sh", place)
    assert (done.returncode, "has no pyspark" in done.stderr) == (2, True)
    said = succeeded(run(tmp_path / "docker" / "install.sh", source, place, PYTHONPATH=""))
    assert said.endswith(f"winnow is in {place}/bin\n")
    installed = packages / "engine" / "commands" / "__init__.py"
    assert installed.read_text() == (ROOT / "engine" / "commands" / "__init__.py").read_text()
    for name in ("pandas/tests/io", "pyspark/examples/src", "numba/tests", "pandas/core"):
        (packages / name).mkdir(parents=True)  # no package: Python takes the lent one
        (packages / name / "left_over.py").touch()
    for name in ("matplotlib", "numpy", "pyarrow", "scipy"):
        (packages / name).mkdir()
    succeeded(run(tmp_path / "docker" / "slim.sh", place, PYTHONPATH=""))
    left = {str(path.relative_to(packages)) for path in packages.rglob("left_over.py")}
    assert left == {"numba/tests/left_over.py", "pandas/core/left_over.py"}
    assert not (packages / "pip").exists()
    assert not (packages / "setuptools").exists()


def test_steps_refuse_what_they_do_not_know(tmp_path: Path) -> None:
    done = run(DOCKER / "environment.sh", tmp_path / "env", "tpu")
    assert (done.returncode, "say cpu or gpu" in done.stderr) == (2, True)
    assert not (tmp_path / "env").exists()
    done = run(DOCKER / "system.sh", "everything")
    assert (done.returncode, "say run or build" in done.stderr) == (2, True)


def test_a_worker_and_a_job_need_a_master(tmp_path: Path) -> None:
    for role in ("worker", "submit"):
        done = run(DOCKER / "entrypoint.sh", role, WINNOW_RUN=tmp_path, SPARK_MASTER="")
        assert done.returncode == 1
        assert "the address of the master, as spark://master:7077" in done.stderr


def test_anything_else_is_winnow(tmp_path: Path) -> None:
    said = succeeded(run(DOCKER / "entrypoint.sh", "policies", WINNOW_RUN=tmp_path))
    assert said == succeeded(run("winnow", "policies"))
    role = (tmp_path / "role").read_text().split()
    assert role[0] == "winnow"


def free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


@contextmanager
def role(folder: Path, name: str, **variables: object) -> Iterator[subprocess.Popen[bytes]]:
    """Start a role as a container does; it ends by the signal that Docker sends."""
    mine = folder / name
    mine.mkdir()
    with (
        (mine / "log").open("wb") as log,
        subprocess.Popen(  # noqa: S603 - our own script
            [str(DOCKER / "entrypoint.sh"), name],
            env=environment(**variables, WINNOW_RUN=mine), stdout=log, stderr=log,
        ) as process,
    ):  # fmt: skip
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def well(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    return run(DOCKER / "health.py", WINNOW_RUN=folder / name)


def wait_until_well(folder: Path, name: str) -> None:
    until = time.monotonic() + SECONDS
    while (done := well(folder, name)).returncode:
        log = (folder / name / "log").read_text()
        assert time.monotonic() < until, f"{done.stderr}\n{log}"
        time.sleep(0.3)


@pytest.fixture
def variables(tmp_path: Path) -> dict[str, object]:
    """Return what a small cluster on this machine alone is told."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(
        "spark.ui.enabled false\nspark.executor.memory 512m\nspark.driver.memory 512m\n"
        + "".join(f"{name} {options}\n" for name, options in EXECUTORS.items())
    )
    port, master_page, worker_page = free_ports(3)
    return {
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_MASTER": f"spark://127.0.0.1:{port}",
        "SPARK_MASTER_PORT": port,
        "SPARK_MASTER_WEBUI_PORT": master_page,
        "SPARK_WORKER_WEBUI_PORT": worker_page,
        "SPARK_WORKER_CORES": 2,
        "SPARK_WORKER_MEMORY": "1g",
        "SPARK_WORKER_DIR": tmp_path / "applications",
        "SPARK_LOCAL_DIRS": tmp_path / "local",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_CONF_DIR": conf,
        "WINNOW_SHARED": tmp_path,
        "WINNOW_CACHE": cache_home(),
    }


@guards("docker", "spark_plugin/shipping", "tests/architecture/test_docker_roles.py")
def test_master_worker_and_jobs_work_together(tmp_path: Path, variables: dict[str, object]) -> None:
    """The smoke script on the cluster gives the report of a local replay; health follows."""
    with role(tmp_path, "master", **variables) as master:
        wait_until_well(tmp_path, "master")
        with role(tmp_path, "worker", **variables) as worker:
            wait_until_well(tmp_path, "worker")
            done = run(DOCKER / "smoke.sh", "local", "submit", WINNOW_RUN=tmp_path, **variables)
            assert succeeded(done).endswith("winnow works on: local submit\n")
            workers = list((tmp_path / "applications").glob("app-*/*/stderr"))
            assert workers, "no executor was started"
            assert well(tmp_path, "worker").returncode == 0
        done = well(tmp_path, "worker")
        assert (done.returncode, "is gone" in done.stderr) == (1, True)
        assert worker.returncode == 128 + signal.SIGTERM
        assert well(tmp_path, "master").returncode == 0
    assert master.returncode == 128 + signal.SIGTERM
    assert "is gone" in well(tmp_path, "master").stderr


@pytest.mark.parametrize("fails", ["", "run"])
def test_the_smoke_of_compose_takes_down_what_it_started(tmp_path: Path, fails: str) -> None:
    """With a docker that only notes what it is told."""
    stub = tmp_path / "docker"
    fail = f'case "$*" in *" {fails} "*) exit 3;; esac\n' if fails else ""
    stub.write_text(f'#!/bin/sh\necho "$*" >>{tmp_path}/told\n{fail}')
    stub.chmod(0o755)
    done = run(DOCKER / "smoke_compose.sh", "gpu", DOCKER=stub)
    assert done.returncode == (3 if fails else 0)
    told = (tmp_path / "told").read_text().splitlines()
    every = "compose --project-name winnow-smoke --file compose.yaml --file compose.gpu.yaml "
    assert all(line.startswith(every) for line in told)
    steps = [line.removeprefix(every).split()[0] for line in told]
    assert steps == ["build", "up", "run", "down"]
    assert "--volumes" in told[-1]
    done = run(DOCKER / "smoke_compose.sh", "tpu", DOCKER=stub)
    assert (done.returncode, "say cpu or gpu" in done.stderr) == (2, True)
