"""Streaming replays on Spark: killed and begun again, they give the rows of the archives, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import ROOT
from pyspark.errors import StreamingQueryException
from spark_cases import DGL, ORDER, ROLES, TUPLES, archived, drawn
from stream_cases import parts, same
from thorough import guards

from engine.runtime.errors import SpecError
from spark_plugin.streaming import register, replay
from spark_plugin.streaming.source import check_python

PROGRAM = """
import json, sys
from pathlib import Path
from spark_plugin.session import get_session
from spark_plugin.streaming import replay

folder, options = Path(sys.argv[1]), json.loads(sys.argv[2])
left, right = str(folder / "left"), str(folder / "right")
rows = get_session().readStream.format("winnow").options(left=left, right=right, time="t").load()
(folder / "columns").write_text(",".join(rows.columns[:4]))
kept = replay(left, right, rows_per_batch=40, **options)
query = kept.writeStream.format("parquet").option("path", str(folder / "kept"))
query.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
"""
LIMIT = 600.0
"""Seconds for two micro-batches of a JVM of its own, on a machine that does other things too."""


def killed(folder: Path, options: dict[str, Any]) -> None:
    """Run a streaming replay in a process of its own, and kill it after two micro-batches."""
    submit = (
        "--master local[2] --driver-memory 1g --conf spark.sql.shuffle.partitions=2 pyspark-shell"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYSPARK_SUBMIT_ARGS": submit}
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), json.dumps(options)],
        env=environment,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        waited = time.monotonic() + LIMIT
        while not (folder / "checkpoint" / "commits" / "1").exists():
            if process.poll() is not None or time.monotonic() > waited:
                os.killpg(process.pid, signal.SIGKILL) if process.poll() is None else None
                assert process.stderr is not None
                pytest.fail(process.stderr.read().decode())
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGKILL)


def finish(spark: Any, folder: Path, **options: Any) -> Any:
    """Go on from the checkpoint to the end of the archives."""
    kept = replay(folder / "left", folder / "right", session=spark, **options)
    writer = kept.writeStream.format("parquet").option("path", str(folder / "kept"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(LIMIT)
    return query


def kept(spark: Any, folder: Path) -> pa.Table:
    found: pa.Table = spark.read.parquet(str(folder / "kept")).toArrow().sort_by(ORDER)
    return found


@guards("spark_plugin/streaming", "tests/spark/test_spark_streaming.py")
def test_killed_and_begun_again_it_gives_the_rows_of_the_archives_once(
    spark: Any, tmp_path: Path
) -> None:
    parts(tmp_path, [drawn(1), drawn(2)])
    options = ROLES | TUPLES | DGL | {"policy": "prob", "lanes": 2, "seed": 3}
    expected = archived(tmp_path, policy="prob", lanes=2, seed=3)
    killed(tmp_path, options)
    assert (tmp_path / "columns").read_text() == "side,row,ts,left_t"
    before = kept(spark, tmp_path).num_rows
    assert before < expected.num_rows
    query = finish(spark, tmp_path, rows_per_batch=150, **options)
    assert query.lastProgress.batchId > 2
    same(kept(spark, tmp_path), expected)

    # Killed before the last micro-batch was in place: it is computed again from the state before.
    for log in (tmp_path / "checkpoint" / "commits", tmp_path / "kept" / "_spark_metadata"):
        last = log / str(query.lastProgress.batchId)
        last.with_name(f".{last.name}.crc").unlink(missing_ok=True)
        last.unlink()
    with pytest.raises(StreamingQueryException, match="replay with other options"):
        finish(spark, tmp_path, **(options | {"seed": 4}))
    finish(spark, tmp_path, **options)
    with pytest.raises(StreamingQueryException, match="replay with other options"):
        finish(spark, tmp_path, **(options | {"memory": 7}))  # there is no micro-batch left
    same(kept(spark, tmp_path), expected)


@guards("spark_plugin/streaming", "tests/spark/test_spark_streaming.py")
def test_each_micro_batch_has_its_rows(spark: Any, tmp_path: Path) -> None:
    parts(tmp_path, [drawn(1), drawn(2)])
    options = {"policy": "dimpprob", "columns": "ids", "partition_by": "group", "memory": 8}
    found: dict[int, pa.Table] = {}
    stream = replay(
        tmp_path / "left", tmp_path / "right", session=spark, ticks_per_batch=50,
        **(ROLES | TUPLES | DGL | options),
    )  # fmt: skip
    assert stream.isStreaming
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))

    def hold(frame: Any, number: int) -> None:
        found[number] = frame.toArrow()

    query = writer.foreachBatch(hold).trigger(availableNow=True).start()
    assert query.awaitTermination(LIMIT)
    assert sorted(found) == list(range(len(found)))
    assert len(found) > 1
    ends = [own["ts"].to_pylist() for own in found.values()]
    assert all(max(a) < min(b) for a, b in pairwise(ends))
    same(pa.concat_tables(found.values()).sort_by(ORDER), archived(tmp_path, **options))


def test_a_python_that_only_executors_have_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(pythonExec="./env/bin/python"))
    command = (
        rf"is ./env/bin/python, and {tmp_path}/env/bin/python is not there.*unpack the archive"
    )
    with pytest.raises(SpecError, match=command):
        check_python(session)
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "python").touch()
    check_python(session)
    session.sparkContext.pythonExec = "python3"  # found on the PATH
    check_python(session)


def test_rows_as_they_are(spark: Any, tmp_path: Path) -> None:
    parts(tmp_path, [drawn(1), drawn(2)])
    given = {
        "left": str(tmp_path / "left"), "right": str(tmp_path / "right"), "time": "moment",
        "columns": '["word", "list", "moment"]', "ticks_per_batch": "80min",
    }  # fmt: skip
    reader = spark.readStream.format("winnow").options(**given)
    try:
        stream = reader.load()
    except Exception:  # noqa: BLE001 - an editable installation does not list its packages
        register(spark)
        stream = reader.load()
    out = str(tmp_path / "rows")
    writer = stream.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.option("path", out).trigger(availableNow=True).start()
    assert query.awaitTermination(LIMIT)
    rows = spark.read.parquet(out).toArrow().sort_by([("side", "ascending"), ("row", "ascending")])
    for side in ("left", "right"):
        archive = pq.read_table(tmp_path / side)
        own = rows.filter(pa.compute.equal(rows["side"], side))
        assert own["row"].to_pylist() == list(range(archive.num_rows))
        assert own["ts"].to_pylist() == archive["moment"].cast(pa.int64()).to_pylist()
        for name in ("word", "list", "moment"):
            assert own[f"{side}_{name}"].to_pylist() == archive[name].to_pylist()
