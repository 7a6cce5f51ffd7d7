"""The configuration for the RAPIDS Accelerator, without Spark and without a GPU."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

from engine.commands import main
from engine.runtime.errors import DeviceError, SpecError
from spark_plugin.rapids import command, files
from spark_plugin.rapids.options import CONTEXTS, SPARKS, RapidsOptions
from spark_plugin.rapids.settings import settings_of

DOC = ROOT / "docs" / "rapids.md"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path / "cache"))


def conf(**options: Any) -> dict[str, str]:
    return {name: value for name, value, _ in settings_of(RapidsOptions(**options))}


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["spark-conf", *arguments], commands={"spark-conf": command}) == 0
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["spark-conf", *arguments], commands={"spark-conf": command}) == 2
    return capsys.readouterr().err


def test_the_formats_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--master", "yarn", "--gpu", "2", "--cores", "8", "--memory", "16g"]
    whole = json.loads(printed(capsys, *given, "--format", "json"))
    lines = printed(capsys, *given).splitlines()
    reasons, told = lines[::2], lines[1::2]
    assert all(reason.startswith("# ") for reason in reasons)
    assert dict(line.split(" ", 1) for line in told) == whole
    flags = printed(capsys, *given, "--format", "flags")
    shell = subprocess.run(  # noqa: S603 - our own flags, as a shell reads them
        ["/bin/sh", "-c", f"printf '%s\\n' {flags}"], capture_output=True, text=True, check=True
    )
    words = shell.stdout.splitlines()
    assert words[::2] == ["--conf"] * len(whole)
    assert dict(word.split("=", 1) for word in words[1::2]) == whole


def test_coordinates_and_plugin_are_those_of_the_installed_spark() -> None:
    told = conf()
    assert told["spark.plugins"] == "com.nvidia.spark.SQLPlugin"
    assert told["spark.jars.packages"] == "com.nvidia:rapids-4-spark_2.13:26.08.1"
    settings = Path(told["spark.jars.ivySettings"]).read_text()
    assert "[revision]/[artifact]-[revision]-cuda13.[ext]" in settings
    other = Path(conf(classifier="cuda12-arm64")["spark.jars.ivySettings"]).read_text()
    assert "[revision]-cuda12-arm64.[ext]" in other


def test_a_local_master_is_given_no_amounts_and_no_script() -> None:
    for master in ("local", "local[2]", "local[*,4]"):
        told = conf(master=master, jar="/jars/rapids.jar", cores=2, memory="1g")
        assert not [name for name in told if re.match(r"spark\.(executor|task|worker)\.", name)]
        assert told["spark.driver.extraClassPath"] == "/jars/rapids.jar"
    assert conf(jar="/jars/rapids.jar")["spark.jars"] == "/jars/rapids.jar"


def test_each_master_is_told_where_gpus_are_found() -> None:
    own = {
        "spark://host:7077": ("worker",),
        "local-cluster[2,1,1024]": ("worker",),
        "yarn": ("executor",),
        "k8s://https://host": ("executor",),
    }
    for master, (where,) in own.items():
        told = conf(master=master, gpus=2, tasks_per_gpu=3, discovery="/opt/gpus.sh")
        assert told["spark.executor.resource.gpu.amount"] == "2"
        assert told[f"spark.{where}.resource.gpu.discoveryScript"] == "/opt/gpus.sh"
        assert ("spark.executor.resource.gpu.vendor" in told) == master.startswith("k8s")


@pytest.mark.parametrize("tasks", [1, 2, 3, 6, 7, 12, 49, 100])
def test_as_many_tasks_as_asked_for_fit_a_gpu(tasks: int) -> None:
    amount = float(conf(tasks_per_gpu=tasks)["spark.task.resource.gpu.amount"])
    assert int(1 / amount) == tasks  # as Spark divides
    assert tasks == 1 or amount <= 0.5


def test_tasks_follow_the_cores() -> None:
    assert RapidsOptions(cores=8, gpus=2).tasks == 4
    assert RapidsOptions(cores=1).tasks == 1
    assert RapidsOptions().tasks == 4
    assert conf(cores=8, tasks_per_gpu=1)["spark.rapids.sql.concurrentGpuTasks"] == "1"
    assert conf(cores=8, concurrent=3)["spark.rapids.sql.concurrentGpuTasks"] == "3"


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.85])
def test_the_pool_leaves_the_workers_their_share(share: float) -> None:
    told = conf(python_share=share)
    pool = float(told["spark.rapids.memory.gpu.allocFraction"])
    assert float(told["spark.executorEnv.WINNOW_GPU_SHARE"]) == share
    assert pool > 0
    assert pool + share == pytest.approx(1 - CONTEXTS)
    assert told["spark.rapids.memory.gpu.maxAllocFraction"] == f"{pool:g}"
    assert float(told["spark.rapids.memory.gpu.minAllocFraction"]) <= pool


def test_what_is_left_out_is_not_said() -> None:
    assert "spark.rapids.memory.pinnedPool.size" not in conf(pinned="0")
    assert "spark.rapids.shuffle.enabled" not in conf()
    assert conf(shuffle="spark")["spark.rapids.shuffle.enabled"] == "false"
    assert conf(overhead="6g")["spark.executor.memoryOverhead"] == "6g"


REFUSED: dict[str, tuple[list[str], str]] = {
    "no GPU": (["--gpu", "0"], "--gpu is 0; it must be 1 or more"),
    "share": (["--python-share", "0.95"], "--python-share is 0.95; it must be from 0 to 0.85"),
    "cores": (["--gpu", "2", "--cores", "4", "--tasks-per-gpu", "4"], "need 8: raise --cores"),
    "Spark": (["--spark", "4.1.0"], "Spark is 4.1.0, which the RAPIDS Accelerator"),
    "Scala": (["--scala", "2.12"], "--scala is '2.12'"),
    "master": (["--master", "standalon"], "Did you mean 'standalone'"),
    "mode": (
        ["--mode", "explain"],
        "--mode is 'explain'; choose one of executeOnGPU, explainOnly",
    ),
    "format": (["--format", "yaml"], "--format is 'yaml'; choose one of"),
    "size": (["--pinned", "lots"], "--pinned is 'lots'; give a size as Spark does"),
    "classifier": (["--classifier", "cuda11"], "--classifier is 'cuda11'; choose one of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_means_nothing_is_refused(capsys: pytest.CaptureFixture[str], name: str) -> None:
    arguments, said = REFUSED[name]
    assert said in refused(capsys, *arguments)


def test_every_setting_has_its_reason_in_the_docs() -> None:
    section = DOC.read_text().split("### The settings")[1].split("\n## ")[0]
    documented = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))
    told: set[str] = set()
    for master in ("local", "standalone", "yarn", "k8s"):
        sizes = {"cores": 4, "memory": "4g", "overhead": "4g", "shuffle": "spark"}
        told |= set(conf(master=master, **sizes)) | set(conf(master=master, jar="x.jar"))
    assert told == documented


def test_every_option_is_in_the_docs() -> None:
    section = DOC.read_text().split("## Configuration")[1].split("### The settings")[0]
    table = "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE))
    options = {f"`{option.written}`" for option in command.COMMAND.options.values()}
    assert set(re.findall(r"`--[\w-]+`", table)) == options


def test_the_discovery_script_tells_spark_the_gpus(tmp_path: Path) -> None:
    script = files.discovery_script()
    fake = tmp_path / "nvidia-smi"

    def found(answer: str) -> subprocess.CompletedProcess[str]:
        fake.write_text(f"#!/bin/sh\n{answer}\n")
        fake.chmod(0o755)
        path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(  # noqa: S603 - our own script
            [script], capture_output=True, text=True, check=False, env={"PATH": path}
        )

    told = json.loads(found("echo 0; echo 1; echo 7").stdout)
    assert told == {"name": "gpu", "addresses": ["0", "1", "7"]}
    assert found("true").returncode != 0
    assert found("exit 9").returncode == 9


def test_a_package_in_a_zip_gets_a_copy_of_the_script(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    packaged = files.discovery_script()
    monkeypatch.setattr(os, "access", lambda *_: False)  # as where it is no file of its own
    copy = files.discovery_script()
    monkeypatch.undo()
    assert copy.is_relative_to(tmp_path)
    assert os.access(copy, os.X_OK)
    assert copy.read_text() == packaged.read_text()


def test_a_jar_that_cannot_be_fetched_says_where_to_put_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'Server access error at somewhere'; exit 1\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DeviceError, match="Server access error") as caught:
        files.fetched_jar("cuda13")
    place = files.jar_place("cuda13")
    assert f"put it at {place} by hand" in str(caught.value)
    assert not list(place.parent.glob(".ivy-*"))
    place.write_bytes(b"by hand")
    assert files.fetched_jar("cuda13") == place


def test_rapids_needs_the_engine_spark(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    archive = tmp_path / "a.csv"
    archive.write_text("k,t\n1,1\n")
    stream = ["--left", str(archive), "--right", str(archive), "--on", "k", "--time", "t"]
    replay = ["replay", *stream, "--window", "1", "--memory", "4", "--rapids"]
    assert main([*replay, "--engine", "local"]) == 2
    assert "--rapids is a plugin of Spark, and --engine is 'local'" in capsys.readouterr().err
    asked: list[dict[str, Any]] = []

    def engine(**options: Any) -> Any:
        asked.append(options)
        raise SpecError("stop here")

    for given in (["--engine", "spark"], ["--rapids"]):
        main([*replay[:-1], *given], engines={"spark": engine})
    assert asked == [{}, {"rapids": True}]


def test_the_installed_spark_is_listed() -> None:
    assert RapidsOptions().spark_version in SPARKS
