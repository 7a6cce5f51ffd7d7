"""Archives and outputs in an object store, read and written by tasks of Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest
from places import ROOT
from pyspark.sql import SparkSession
from storage_cases import BUCKET, Store, needs_store, put, served, write
from thorough import guards

from engine.commands import main
from engine.runtime.errors import InputError
from engine.runtime.storage.listing import dataset
from engine.runtime.storage.uris import Uri
from spark_plugin.executor import SparkExecutor
from spark_plugin.streaming.feed import parquet_archive

pytestmark = needs_store
JOBS = {
    "replay": ["--memory", "20", "--policy", "prob", "--lanes", "3"],
    "sample": ["--fraction", "0.3", "--lanes", "3"],
    "multijoin": [],
}
JOINED = ["--time", "t", "--importance", "i", "--window", "50"]


def test_streams_are_read_from_disks() -> None:
    with pytest.raises(InputError, match="left archive s3://b/x is not on a disk"):
        parquet_archive("s3://b/x", "left")


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with served() as running:
        yield running


def ran(session: SparkSession, job: str, place: str, engine: str, *words: str) -> int:
    """Run a command on archives at a place."""
    streams = ["--left", f"{place}/left", "--right", f"{place}/right", "--on", "k"]
    if job == "multijoin":
        named = (f"--stream={name}={place}/{name}" for name in ("left", "right"))
        streams = [*named, "--predicate", "equi:k"]
    return main(
        [job, *streams, *JOINED, *JOBS[job], "--engine", engine, *words],
        engines={"spark": lambda: SparkExecutor(session)},
    )


def sorted_rows(place: Path | Uri) -> pa.Table:
    """Return the rows of an output in the order of time and of its members."""
    table = dataset(place).to_table()
    names = ["ts", *(name for name in table.column_names if name.endswith("_row"))]
    return table.sort_by([(name, "ascending") for name in names])


@pytest.mark.parametrize("job", sorted(JOBS))
def test_tasks_read_what_files_have(
    spark: SparkSession, store: Store, tmp_path: Path, job: str
) -> None:
    folder = write(tmp_path / f"spark-{job}")
    uri = put(store, folder, folder.name)
    found = []
    for place, engine in ((str(folder), "local"), (uri, "spark")):
        out = tmp_path / engine
        words = [] if job == "multijoin" else ["--cache", str(tmp_path / f"cache-{engine}")]
        assert ran(spark, job, place, engine, "--out", str(out), *words, *store.words()) == 0
        found.append(sorted_rows(out))
    assert found[0].num_rows > 100
    assert found[0].equals(found[1])


@pytest.mark.skipif(find_spec("obstore") is None, reason="obstore is not installed: make extras")
@pytest.mark.parametrize("job", sorted(JOBS))
def test_tasks_put_parts_and_the_driver_the_manifest(
    spark: SparkSession, store: Store, tmp_path: Path, job: str
) -> None:
    folder = write(tmp_path / "archives")
    out = Uri(f"s3://{BUCKET}/spark-out-{job}", tuple(store.options.items()))
    words = [] if job == "multijoin" else ["--cache", str(tmp_path / "cache")]
    assert ran(spark, job, str(folder), "spark", "--out", out, *words, *store.words()) == 0
    assert ran(spark, job, str(folder), "local", "--out", str(tmp_path / "out"), *words) == 0
    found = sorted_rows(out)
    assert found.num_rows > 100
    assert found.equals(sorted_rows(tmp_path / "out"))
    assert not [key for key in store.keys(f"spark-out-{job}") if key.endswith("_owner")]


HIDING = """#!/bin/sh
exec unshare --mount sh -c 'mount -t tmpfs none "{hidden}" && exec "{python}" "$@"' sh "$@"
"""


@guards(
    "spark_plugin",
    "engine/lanes",
    "engine/runtime/storage/places.py",
    "tests/spark/test_spark_storage.py",
)
@pytest.mark.skipif(find_spec("obstore") is None, reason="obstore is not installed: make extras")
def test_machines_that_share_no_folder(store: Store, tmp_path: Path) -> None:
    hidden, script = tmp_path / "driver", tmp_path / "python"
    hidden.mkdir()
    script.write_text(HIDING.format(hidden=hidden, python=sys.executable))
    script.chmod(0o755)
    seen = subprocess.run(  # noqa: S603 - ours
        [script, "-c", f"open('{hidden}/seen', 'w')"], capture_output=True, check=False
    )
    if seen.returncode or (hidden / "seen").exists():
        pytest.skip("folders cannot be hidden from processes here")
    folder = write(hidden / "archives")
    uri = put(store, folder, "alone")
    line = ["replay", "--on", "k", *JOINED, *JOBS["replay"]]
    here = ["--left", f"{folder}/left", "--right", f"{folder}/right", "--out", f"{hidden}/out"]
    assert main([*line, *here, "--cache", f"{hidden}/cache", "--engine", "local"]) == 0
    there = ["--left", f"{uri}/left", "--right", f"{uri}/right", "--out", f"{uri}-out"]
    far = [*line, *there, "--cache", f"{uri}-cache", "--engine", "spark", *store.words()]
    near = [*far[: -len(store.words())], *store.words(), "--cache", f"{hidden}/cache-2"]
    own = os.environ | {
        "PYSPARK_PYTHON": str(script), "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": str(ROOT),
    }  # fmt: skip
    done = [
        subprocess.run(  # noqa: S603 - ours
            [sys.executable, "-m", "winnow", *words], env=own, cwd=hidden, check=False,
            capture_output=True, text=True,
        )
        for words in (near, far)
    ]  # fmt: skip
    assert done[0].returncode, "tasks have seen the driver's folder"
    assert done[1].returncode == 0, done[1].stderr
    found = sorted_rows(Uri(f"{uri}-out", tuple(store.options.items())))
    assert found.num_rows > 100
    assert found.equals(sorted_rows(hidden / "out"))
