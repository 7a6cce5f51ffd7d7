"""What would run on a GPU, by the real jar in its mode explainOnly: docs/rapids.md has the rest."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from places import PYTHONPATH, ROOT, SUPPORT
from rapids_plans import REPLAYS, SHARED, archives
from spark_cases import archived
from thorough import guards

from engine.runtime.errors import DeviceError, SpecError
from spark_plugin.rapids.files import fetched_jar, jar_place
from spark_plugin.rapids.options import PLUGIN, SPARKS, RapidsOptions
from spark_plugin.rapids.settings import settings_of
from spark_plugin.spread import hashed_to

pytestmark = guards(
    "spark_plugin/rapids", "tests/spark/test_rapids_plans.py", "tests/support/rapids_plans.py"
)

_LOG = """rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %m%n
"""
NODE = re.compile(r"^ *([*!@#?]+)(Exec|Partitioning|Output|) <([^>]*)>(.*)$", re.MULTILINE)
# They follow from the reason of an expression or a neighbour, where there is another reason.
FOLLOWS = (
    "not all expressions can be replaced",
    "Columnar exchange without columnar children is inefficient",
)
PYTHON = "MapInArrowExec"
CAUSES: dict[str, set[str]] = {
    "rows by position": {"rows numbered by their position in Parquet files"},
    "times: without a zone": {"timestamps without a time zone, in DataFrames"},
    "importance: wide decimals": {"importances with more than 15 digits"},
    "handed on: binary": {"binary columns"},
    "handed on: decimals": {"decimal columns that are handed on"},
    "handed on: structs": {"structs that are handed on"},
    "keys: bits": {"binary columns"},
    "keys: wide": {"join attributes with more than 18 digits"},
    "archives, lanes: bits": {"binary columns"},
    "archives, lanes: money": {"decimal columns that are handed on"},
    "archives, lanes: wide": {"join attributes with more than 18 digits"},
}
"""Rows of the table in docs/rapids.md, by case; every other case runs on the GPU whole."""
TABLES = {"tables that winnow makes, of facts, lanes and blocks of files"}
"""In every case with several lanes or with facts."""


class Row(NamedTuple):
    """A row of the table in docs/rapids.md."""

    cause: str
    operators: frozenset[str]
    reasons: frozenset[str]


def documented() -> dict[str, Row]:
    section = (ROOT / "docs" / "rapids.md").read_text().split("## What runs on the GPU")[1]
    rows = re.findall(r"^\| ([^|]+) \| (`[^|]+`) \| (`[^|]+`) \|", section, re.MULTILINE)
    return {
        cause: Row(
            cause,
            *(frozenset(re.findall(r"`([^`]+)`", cell)) for cell in (operators, reasons)),
        )
        for cause, operators, reasons in rows
    }


@pytest.fixture(scope="module")
def jar() -> Path:
    try:
        return fetched_jar("cuda13")
    except DeviceError as error:
        if "cannot be fetched" in str(error):
            pytest.skip(f"the Maven repository cannot be reached: {error}")
        raise


@pytest.fixture(scope="module")
def folder(jar: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001 - first
    """Run every case in a session of its own, with the plugin."""
    place = tmp_path_factory.mktemp("plans")
    archives(place)
    (place / "log4j2.properties").write_text(_LOG.format(place / "spark.log"))
    options = f"-Dlog4j2.configurationFile={place}/log4j2.properties -Djava.io.tmpdir={place}"
    submit = "--master local[2] --driver-memory 1g --conf spark.log.level=WARN"
    submit += f" --driver-java-options '{options}'"
    submit += " --conf spark.sql.parquet.outputTimestampType=TIMESTAMP_MICROS"
    submit += " --conf spark.sql.shuffle.partitions=3 pyspark-shell"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, str(SUPPORT / "rapids_plans.py"), str(place)],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": submit, "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place


@pytest.fixture(scope="module")
def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "plans.json").read_text())
    return found


class Left(NamedTuple):
    """Operators that would stay on the CPU, and why: the types at fault, or RAPIDS' words."""

    operators: set[str]
    reasons: set[str]


def left_on_cpu(report: str) -> Left:
    """Return what a report says would stay on the CPU."""
    left = Left(set(), set())
    nodes = NODE.findall(report)
    assert nodes, report
    for marks, _, operator, words in nodes:
        if "replacing sortMergeJoin" in words or ("!" not in marks and "could run" in words):
            continue  # the sort goes with the join; the parent is what stays
        if "!" not in marks:
            assert re.search(r"will .*run on GPU", words), words
            continue
        left.operators.add(operator)
        reasons = [_reason(part) for part in words.split("because", 1)[1].split(";")]
        own = {reason for reason in reasons if reason not in FOLLOWS}
        left.reasons.update(own or reasons)
    return left


def _reason(words: str) -> str:
    """Return the type that a reason is about, else its words without names."""
    if kind := re.search(r"unsupported data types?.*?(\w+Type)\b", words):
        return kind[1]
    return re.sub(r"operator class .*", "operator class", words).strip()


def test_all_operators_run_on_the_gpu_but_those_that_the_docs_list(told: dict[str, Any]) -> None:
    table = documented()
    seen = {row: Left(set(), set()) for row in table}
    assert set(CAUSES) <= set(told["reports"])
    for case, report in told["reports"].items():
        rows = CAUSES.get(case, set()) | (TABLES if "lanes" in case or "facts" in case else set())
        rows |= TABLES if case.startswith("keys") or case == "exact" else set()
        found = left_on_cpu(report)
        assert found.operators <= {name for row in rows for name in table[row].operators}, case
        assert found.reasons <= {reason for row in rows for reason in table[row].reasons}, case
        for row in rows:
            assert found.operators & table[row].operators, f"{case}: {row} is no obstacle any more"
            seen[row].operators.update(found.operators & table[row].operators)
            seen[row].reasons.update(found.reasons & table[row].reasons)
    for name, row in table.items():
        assert (seen[name].operators, seen[name].reasons) == (row.operators, row.reasons), name


def test_every_row_of_the_table_is_tried() -> None:
    assert set().union(TABLES, *CAUSES.values()) == set(documented())


def expected_operators(case: str) -> set[str]:
    if not case.startswith("archives"):
        return {"UnionExec", "SortExec", "ShuffleExchangeExec"}
    scan = {"FileSourceScanExec", "ProjectExec"}
    if "lanes" not in case:
        return scan
    return scan | {"FilterExec", "BroadcastHashJoinExec", "ShuffleExchangeExec", "SortExec"}


def test_python_stages_are_there_and_take_their_data_from_the_gpu(told: dict[str, Any]) -> None:
    for case, report in told["reports"].items():
        if case.startswith("look-up"):  # in Spark's SQL alone
            continue
        marks = {operator: marks for marks, _, operator, _ in NODE.findall(report)}
        table = documented()
        stays = any(PYTHON in table[row].operators for row in CAUSES.get(case, ()))
        assert ("!" in marks[PYTHON]) == stays, case
        assert expected_operators(case) <= set(marks), case


def test_a_written_replay_runs_on_the_gpu_to_its_end(folder: Path, told: dict[str, Any]) -> None:
    assert told["conf"]["spark.rapids.sql.mode"] == "explainOnly"
    assert "spark.python.unix.domain.socket.enabled" not in told["conf"]
    log = (folder / "spark.log").read_text()
    reports = re.findall(r"^\*Exec <DataWritingCommandExec>.*\n(?: +\S.*\n)+", log, re.MULTILINE)
    whole = reports[0]  # before Spark adapts it: the others are parts of it
    assert "*Exec <FileSourceScanExec>" in whole
    assert f"*Exec <{PYTHON}>" in whole
    assert left_on_cpu(whole).operators == {"LocalTableScanExec"}


def test_rows_are_those_of_the_archives(folder: Path) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - for this test alone
    from spark_cases import ORDER  # noqa: PLC0415 - the same

    expected = archived(folder, **SHARED)
    found = pq.read_table(folder / "rows").sort_by(ORDER)
    assert expected.num_rows
    assert found.column_names == expected.column_names
    for name in found.column_names:
        assert found[name].to_pylist() == expected[name].to_pylist(), name


@pytest.mark.parametrize("name", REPLAYS)
def test_rows_of_archives_that_queries_read_are_those_of_tasks(
    folder: Path, told: dict[str, Any], name: str
) -> None:
    import pyarrow.parquet as pq  # noqa: PLC0415 - as above

    expected = archived(folder, **REPLAYS[name])
    assert expected.num_rows
    assert pq.read_table(folder / f"archives-{name}.parquet").equals(expected)
    assert told["said"] == ["Relational"] * len(REPLAYS)  # and of nothing that tasks must do


def test_lanes_are_spread_evenly(told: dict[str, Any]) -> None:
    assert sorted(told["placed"]) == [[lane, lane % 8] for lane in range(37)]


def test_hashes_are_undone(spark: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - for this test alone

    values = [0, 1, 2, 7, 8, 1000, 65535, 65536, 2**31 - 1]
    rows = [(value, hashed_to(value)) for value in values]
    frame = spark.createDataFrame(rows, "value int, origin int")
    assert frame.where(F.hash("origin") != F.col("value")).count() == 0


def test_the_jar_knows_the_settings_and_the_versions(jar: Path) -> None:
    with zipfile.ZipFile(jar) as content:
        inside = (
            "spark420/com/nvidia/spark/rapids/RapidsConf$.class",
            "spark-shared/com/nvidia/spark/rapids/python/PythonConfEntries$.class",
        )
        known = "".join(content.read(name).decode("latin-1") for name in inside)
        shims = {name.split("/")[0] for name in content.namelist() if name.startswith("spark")}
    for options in (RapidsOptions(), RapidsOptions(shuffle="spark")):
        for name, _, _ in settings_of(options):
            if name.startswith("spark.rapids."):
                assert name in known, name
    versions = {m[1] for shim in shims if (m := re.fullmatch(r"spark(\d{3})", shim))}
    assert versions == {version.replace(".", "") for version in SPARKS}
    assert jar == jar_place("cuda13")


def test_a_spark_that_runs_without_it_cannot_get_it(spark: Any) -> None:
    from spark_plugin.session import get_session  # noqa: PLC0415 - the parent has no use for Spark

    with pytest.raises(SpecError, match="started without the RAPIDS Accelerator"):
        get_session(rapids=True)
    assert get_session() is spark


@pytest.mark.parametrize(
    ("configured", "added"),
    [("--master local[2]", True), (f"--conf spark.plugins={PLUGIN}", False)],
)
def test_the_jar_comes_along_unless_the_user_brings_it(
    monkeypatch: pytest.MonkeyPatch, configured: str, added: bool
) -> None:
    from spark_plugin.rapids.session import jar_on_classpath  # noqa: PLC0415 - as above

    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{configured} pyspark-shell")
    monkeypatch.setenv("SPARK_DIST_CLASSPATH", "/other.jar")
    with jar_on_classpath(RapidsOptions(jar="/rapids.jar")) as placed:
        assert placed.jar == "/rapids.jar"
        expected = "/other.jar:/rapids.jar" if added else "/other.jar"
        assert os.environ["SPARK_DIST_CLASSPATH"] == expected
    assert os.environ["SPARK_DIST_CLASSPATH"] == "/other.jar"


def test_the_users_configuration_wins(spark: Any) -> None:
    from pyspark import SparkConf  # noqa: PLC0415 - as above

    from spark_plugin.rapids.session import configure  # noqa: PLC0415 - as above

    assert spark  # SparkConf needs a JVM
    own = {"spark.master": "spark://host:7077", "spark.jars": "/own.jar"}
    own |= {"spark.rapids.sql.concurrentGpuTasks": "3"}
    conf = SparkConf(loadDefaults=False).setAll(list(own.items()))
    configure(conf, RapidsOptions(jar="/rapids.jar"))
    assert conf.get("spark.jars") == "/own.jar,/rapids.jar"
    assert conf.get("spark.rapids.sql.concurrentGpuTasks") == "3"
    assert conf.get("spark.executor.resource.gpu.amount") == "1"
    local = SparkConf(loadDefaults=False).set("spark.master", "local[2]")
    configure(local, RapidsOptions(jar="/rapids.jar"))
    assert local.get("spark.task.resource.gpu.amount") is None
