"""The images and compose files: what they name is there, and is what it should be."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from places import ROOT

DOCKER = ROOT / "docker"
SCRIPTS = sorted([*DOCKER.glob("*.sh"), DOCKER / "health.py"])
PLACE = "/usr/local/lib/winnow/"


def instructions() -> list[tuple[str, str]]:
    """Return the Dockerfile's instructions and their arguments, comments and line ends left out."""
    text = (DOCKER / "Dockerfile").read_text()
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines()]  # type: ignore[misc]


def test_all_that_is_copied_is_there_and_not_ignored() -> None:
    ignored = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    assert ignored[0] == "*"
    let_in = {line[1:] for line in ignored if line.startswith("!")}
    copied = [
        source
        for name, told in instructions()
        if name == "COPY" and not told.startswith("--from")
        for source in told.split()[:-1]
    ]
    assert {
        "engine",
        "gpu_kernels",
        "spark_plugin",
        "pyspark_winnow",
        "winnow",
        "docker/requirements",
    } <= set(copied)
    for source in copied:
        assert (ROOT / source).exists(), source
        assert source.split("/")[0] in let_in, source


def test_every_package_of_the_wheel_is_copied() -> None:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = content["tool"]["setuptools"]["packages"]["find"]["include"]
    copied = {word for name, told in instructions() if name == "COPY" for word in told.split()}
    assert {name.rstrip("*") for name in packages} <= copied


def test_every_step_is_a_script_that_is_copied_before() -> None:
    there: set[str] = set()
    for name, told in instructions():
        if name == "COPY":
            *sources, place = told.split()
            there |= {place + Path(source).name for source in sources}
        for script in re.findall(r"/\S+\.(?:sh|py)", told if name != "COPY" else ""):
            assert script in there, f"{name} {told}"
        if name == "RUN":
            words = [word for word in shlex.split(told) if "=" not in word]
            assert words[0] in there, told


def test_the_image_is_pinned_healthy_and_nobodys_root() -> None:
    found = instructions()
    (base,) = [told for name, told in found if name == "ARG" and told.startswith("BASE")]
    assert re.fullmatch(r"BASE=debian:\d+\.\d+-slim", base)
    assert all(told.split()[0] in {"${BASE}", "base"} for name, told in found if name == "FROM")
    last = max(i for i, (name, _) in enumerate(found) if name == "FROM")
    final = dict(found[last:])
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", final["USER"])
    assert json.loads(final["HEALTHCHECK"].split("CMD")[1]) == [f"{PLACE}health.py"]
    assert json.loads(final["ENTRYPOINT"])[-1] == f"{PLACE}entrypoint.sh"
    user = (DOCKER / "user.sh").read_text()
    assert f"--uid {final['USER'].split(':')[0]}" in user


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_can_be_run_and_have_no_slips(path: Path) -> None:
    assert path.stat().st_mode & 0o111
    assert path.read_text().startswith("#!/usr/bin/env ")
    if path.suffix == ".sh":
        done = subprocess.run(  # noqa: S603 - our own script
            [Path(sys.executable).with_name("shellcheck"), path],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout


def pins(flavour: str) -> dict[str, str]:
    """Return what a flavour pins, each by hashes."""
    text = (DOCKER / "requirements" / f"{flavour}.txt").read_text().replace("\\\n", " ")
    found = {}
    for line in text.splitlines():
        if line and not line.lstrip().startswith("#"):
            name, version = line.split()[0].split("==")
            assert "--hash=sha256:" in line, name
            found[name] = version
    return found


def test_pins_are_those_of_the_project() -> None:
    """Fails if pyproject.toml changed: run docker/lock.sh."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    cpu, gpu = pins("cpu"), pins("gpu")
    assert cpu.items() <= gpu.items()
    assert "nvidia-cublas" in gpu, "CuPy multiplies vectors with it, and does not require it"
    for told, found in (
        (project["dependencies"], cpu),
        (project["optional-dependencies"]["gpu"], gpu),
    ):
        for requirement in map(Requirement, told):
            assert requirement.specifier.contains(found[requirement.name.lower()]), requirement
    setuptools = Requirement(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"][0]
    )
    assert setuptools.specifier.contains(pins("build")["setuptools"])


def composed(*names: str) -> dict[str, Any]:
    """Return compose files put over each other, as far as services go."""
    services: dict[str, Any] = {}
    for name in names:
        content = yaml.safe_load((DOCKER / name).read_text())
        for service, told in content["services"].items():
            own = services.setdefault(service, {})
            for key, value in told.items():
                own[key] = own[key] | value if isinstance(own.get(key), dict) else value
    return services


def test_the_cluster_is_a_master_two_workers_and_jobs() -> None:
    services = composed("compose.yaml")
    assert set(services) == {"master", "worker", "submit"}
    assert services["worker"]["deploy"]["replicas"] == 2
    assert services["submit"]["profiles"] == ["jobs"]
    for name, own in services.items():
        assert "data:/data" in own["volumes"], name
        assert own["cap_drop"] == ["ALL"]
        waits = own.get("depends_on", {})
        assert all(one["condition"] == "service_healthy" for one in waits.values())
        assert name == "master" or "master" in waits
        assert own["environment"]["SPARK_MASTER"] == "spark://master:7077"
        build = own["build"]
        assert (DOCKER / build["context"] / build["dockerfile"]).exists()


def test_the_gpu_cluster_reserves_devices_and_configures_rapids_first() -> None:
    services = composed("compose.yaml", "compose.gpu.yaml")
    assert set(services) == {"master", "worker", "submit", "conf"}
    (device,) = services["worker"]["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])
    assert services["conf"]["command"][0] == "conf"
    for name in ("worker", "submit"):
        assert services[name]["build"]["args"] == {"FLAVOUR": "gpu"}
        waits = services[name]["depends_on"]
        assert waits["conf"]["condition"] == "service_completed_successfully"
        assert waits["master"]["condition"] == "service_healthy"
    assert services["worker"]["environment"]["WINNOW_GPUS"] == device["count"]


def test_roles_of_compose_are_those_of_the_entry_point() -> None:
    script = (DOCKER / "entrypoint.sh").read_text()
    roles = set(re.findall(r"^    (\w+)\)$", script, re.MULTILINE))
    assert roles == {"master", "worker", "submit", "conf"}
    for own in composed("compose.yaml", "compose.gpu.yaml").values():
        words = [*own.get("entrypoint", [f"{PLACE}entrypoint.sh"]), *own["command"]]
        assert words[words.index(f"{PLACE}entrypoint.sh") + 1] in roles


@contextmanager
def page(state: dict[str, Any]) -> Iterator[str]:
    """Serve the state of a master or worker as Spark's pages do; it may change."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/json/" else 404)
            self.end_headers()
            self.wfile.write(json.dumps(state).encode())

        def log_message(self, *_told: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def health(folder: Path, *role: object) -> tuple[int, str]:
    """Run the check in a container where `role` was started."""
    if role:
        (folder / "role").write_text("".join(f"{one}\n" for one in role))
    done = subprocess.run(  # noqa: S603 - our own script
        [str(DOCKER / "health.py")],
        env={"PATH": "/usr/bin:/bin:/usr/local/bin", "WINNOW_RUN": str(folder)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_health_of_what_was_never_started_or_has_ended(tmp_path: Path) -> None:
    code, said = health(tmp_path)
    assert (code, "nothing was started" in said) == (1, True)
    ended = subprocess.Popen(["true"])  # noqa: S607 - the system's
    ended.wait()
    code, said = health(tmp_path, "submit", ended.pid, "")
    assert (code, "is gone" in said) == (1, True)


def test_health_of_masters_and_workers(tmp_path: Path) -> None:
    own = 1  # a process that is always there
    master: dict[str, Any] = {"status": "ALIVE", "workers": [{"id": "w", "state": "ALIVE"}]}
    with page(master) as leader, page({"id": "w", "masterwebuiurl": leader}) as worker:
        assert health(tmp_path, "master", own, leader) == (0, "")
        assert health(tmp_path, "worker", own, worker) == (0, "")
        master["workers"][0]["state"] = "DEAD"
        assert health(tmp_path, "worker", own, worker) == (1, "the worker is DEAD\n")
        master["workers"].clear()
        assert "unknown to the master" in health(tmp_path, "worker", own, worker)[1]
        master["status"] = "RECOVERING"
        assert health(tmp_path, "master", own, leader) == (1, "the master is RECOVERING\n")
    code, said = health(tmp_path, "master", own, leader)
    assert (code, "does not answer" in said) == (1, True)
    with page({"id": "w", "masterwebuiurl": ""}) as worker:
        assert "found no master" in health(tmp_path, "worker", own, worker)[1]
