"""On a true cluster, from the archive alone: the rows and figures of the local engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import multijoin_cases
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster import CORES, WORKERS, Cluster, Done
from fact_job_cases import NAMES, fact_table, facts
from lookup_cases import cases as lookup_streams
from spark_cases import drawn, write
from thorough import guards, repeats

import winnow
from engine.commands import main

pytestmark = guards(
    "spark_plugin", "engine", "tests/spark/test_cluster.py", "tests/support/cluster.py"
)
JOIN = {"on": "k", "time": "t", "importance": "i", "window": 9}
RUN_SPECIFIC = {"seconds", "tuples_per_second", "out", "device", "versions"}
FACTS = {"fact": "fact.parquet"} | NAMES


def words(command: str, folder: Path, **options: Any) -> list[str]:
    """Return a command line on the archives of a folder; names of files there stand for them."""
    line = [command]
    for name, value in ({"left": "left.parquet", "right": "right.parquet"} | options).items():
        for one in value if isinstance(value, list) else [value]:
            text = str(folder / one) if (folder / str(one)).is_file() else str(one)
            line.append(f"--{name.replace('_', '-')}={text}")
    return line


def archives(folder: Path) -> Path:
    """Write two streams with payload of many types, and facts that join them."""
    pq.write_table(fact_table(facts(1)), folder / "fact.parquet")
    return write(folder, drawn(2), drawn(3))


def dataset(place: Path | list[str]) -> pa.Table:
    """Return the rows of an output, in order."""
    table = pq.read_table(place, partitioning=None)
    order = [name for name in table.column_names if name.endswith("row") or name in ("ts", "side")]
    return table.sort_by([(name, "ascending") for name in order])


def committed(place: Path) -> list[str]:
    """Return the files that Spark committed; attempts that it lost may have left others."""
    logs = [log for log in (place / "_spark_metadata").iterdir() if log.name[0] != "."]
    lines = [line for log in logs for line in log.read_text().splitlines()[1:]]
    return sorted({json.loads(line)["path"].removeprefix("file://") for line in lines})


def figures(report: Path) -> dict[str, Any]:
    """Return what a report says but for what differs from run to run or place to place."""
    content = json.loads(report.read_text())
    found = {name: value for name, value in content.items() if name not in RUN_SPECIFIC}
    return found | {"version": content["versions"]["winnowjoin"]}


def right(done: Done) -> Done:
    """Return what came of a job that should have gone well."""
    assert done.status == 0, done.err
    return done


def test_workers_run_what_the_archive_holds(cluster: Cluster) -> None:
    found = json.loads(right(cluster.run(kind="places")).out)
    for place in (*found["driver"].values(), *(worker["engine"] for worker in found["workers"])):
        assert f"{cluster.archive.name}/" in place
    assert not any(worker["winnow"] for worker in found["workers"])
    assert len({worker["executor"] for worker in found["workers"]}) <= WORKERS
    assert len(found["workers"]) > WORKERS * CORES


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("replay", {"policy": "age", "lanes": 3, "memory": 12, "columns": "ids"}),
        ("replay", {"policy": "yield", "lanes": 2, "memory": 12, "on": "word"}),
        ("replay", {"policy": "simpprob", "lanes": 5, "memory": "20%", "reference": "none"}),
        ("replay", {"policy": "prob", "partition_by": "group", "memory": 24}),
        ("replay", {"policy": "simp", "lanes": 3, "memory": 12, **FACTS}),
        ("sample", {"lanes": 3, "memory": 12, "aggregate": "count(*) every 30"}),
        ("bound", {"lanes": 2, "memory": 12}),
        *repeats(
            [
                ("replay", {"policy": "dgl", "lanes": 5, "memory": "10%"}),
                ("replay", {"lanes": 7}),
            ]
        ),
    ],
    ids=lambda given: given if isinstance(given, str) else "-".join(map(str, given)),
)
def test_a_join_is_the_local_engines(
    cluster: Cluster, tmp_path: Path, command: str, options: dict[str, Any]
) -> None:
    folder = archives(tmp_path)
    for name in ("local", "spark"):
        (folder / name).mkdir()
        own = {"out": f"{folder}/{name}/out", "report": f"{folder}/{name}/report.json"}
        own |= {"cache": folder / name / "cache", "engine": name}
        line = words(command, folder, **(JOIN | options | own))
        if name == "local":
            assert main(line) == 0
        else:
            right(cluster.run(kind="command", argv=line))
    local = dataset(folder / "local" / "out")
    assert local.num_rows
    assert dataset(folder / "spark" / "out").equals(local)
    assert figures(folder / "spark" / "report.json") == figures(folder / "local" / "report.json")


def test_a_sweep_is_the_local_engines(cluster: Cluster, tmp_path: Path) -> None:
    folder = archives(tmp_path)
    grid = {"policies": "dgl,age,rand", "memory": "10%,50%", "windows": 9, "lanes": 2}
    join = {name: value for name, value in JOIN.items() if name != "window"}
    for name in ("local", "spark"):
        own = {"out": folder / name, "cache": folder / f"cache-{name}", "engine": name}
        command = words("sweep", folder, **(join | grid | own))
        if name == "local":
            assert main(command) == 0
        else:
            right(cluster.run(kind="command", argv=command))
    tables = [
        pq.read_table(folder / name / "sweep.parquet").drop_columns(
            ["seconds", "tuples_per_second"]
        )
        for name in ("spark", "local")
    ]
    assert tables[0].num_rows == 6
    assert tables[0].equals(tables[1])


def test_a_join_of_three_streams_is_the_local_engines(cluster: Cluster, tmp_path: Path) -> None:
    multijoin_cases.write(tmp_path, multijoin_cases.streams(0))
    for name in ("local", "spark"):
        own = {"out": tmp_path / name, "report": tmp_path / f"{name}.json", "engine": name}
        told = multijoin_cases.words(tmp_path, slices=4, **own)
        if name == "local":
            assert main(told) == 0
        else:
            right(cluster.run(kind="command", argv=told))
    assert dataset(tmp_path / "local").num_rows
    rows = [repr(dataset(tmp_path / name).to_pylist()) for name in ("spark", "local")]
    assert rows[0] == rows[1]  # as text, in which a NaN is what another is
    assert figures(tmp_path / "spark.json") == figures(tmp_path / "local.json")


def test_data_frames_give_the_rows_of_the_archives(cluster: Cluster, tmp_path: Path) -> None:
    folder = archives(tmp_path)
    options = JOIN | {"policy": "dgl", "lanes": 3, "memory": 12}
    paths = {side: str(folder / f"{side}.parquet") for side in ("left", "right")}
    right(cluster.run(kind="frames", **paths, options=options, out=str(folder / "frames")))
    command = words(
        "replay", folder, **options, out=folder / "out", cache=folder / "c", engine="local"
    )
    assert main(command) == 0
    columns = ["left_row", "right_row", "ts", "importance", "left_word", "right_k"]
    local = dataset(folder / "out").select(columns)
    assert local.num_rows
    assert dataset(folder / "frames").select(columns).to_pylist() == local.to_pylist()


def test_a_stream_gives_the_rows_of_the_archives(cluster: Cluster, tmp_path: Path) -> None:
    folder = archives(tmp_path)
    options = JOIN | {"policy": "dgl", "lanes": 3, "memory": 12}
    places = {side: str(folder / f"{side}.parquet") for side in ("left", "right")}
    places |= {name: str(folder / name) for name in ("out", "checkpoint")}
    done = right(cluster.run(kind="stream", **places, options=options | {"rows_per_batch": 400}))
    assert int(done.out) > 0
    command = words(
        "replay", folder, **options, out=folder / "b", cache=folder / "c", engine="local"
    )
    assert main(command) == 0
    columns = ["left_row", "right_row", "ts", "importance", "left_word", "right_k"]
    local = dataset(folder / "b").select(columns)
    assert local.num_rows
    assert dataset(committed(folder / "out")).select(columns).to_pylist() == local.to_pylist()


def test_a_look_up_of_data_frames_is_the_local_one(cluster: Cluster, tmp_path: Path) -> None:
    stream_table, fact = lookup_streams(1)
    for name, table in (("stream", stream_table), ("fact", fact)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    how = {"on": "k", "time": "t", "importance": "w", "fact_on": "a", "columns": "ids"}
    paths = {name: str(tmp_path / f"{name}.parquet") for name in ("stream", "fact")}
    right(cluster.run(kind="lookup", **paths, options=how, out=str(tmp_path / "out")))
    local = winnow.lookup(stream_table, fact, **how).outputs
    assert local.num_rows
    order = [("row", "ascending"), ("fact_row", "ascending")]
    found = pq.read_table(tmp_path / "out").select(local.column_names).sort_by(order)
    assert found.to_pylist() == local.sort_by(order).to_pylist()


def test_bad_rows_are_set_aside_and_errors_are_said_as_locally(
    cluster: Cluster, tmp_path: Path
) -> None:
    good = drawn(2)
    times = [None if i % 50 == 7 else t for i, t in enumerate(good.column("t").to_pylist())]
    bad = good.set_column(good.schema.get_field_index("t"), "t", pa.array(times, pa.int64()))
    folder = write(tmp_path, bad, drawn(3))
    shared = JOIN | {"lanes": 3, "memory": 12, "engine": "spark", "cache": folder / "cache"}
    refused = cluster.run(kind="command", argv=words("replay", folder, **shared, out=folder / "a"))
    assert refused.status == 2
    assert "column t: 5 rows are null" in refused.err
    assert not (folder / "a").exists()
    command = words("replay", folder, **shared, out=folder / "b", bad_rows="quarantine")
    right(cluster.run(kind="command", argv=command))
    assert pq.read_metadata(folder / "b" / "_rejected" / "left.parquet").num_rows == 5


def test_spark_submit_of_the_package_replays(cluster: Cluster, tmp_path: Path) -> None:
    """As users do, with an application of its own beside the one that waits on the cluster."""
    folder = archives(tmp_path)
    shared = JOIN | {"lanes": 3, "memory": 12, "policy": "dgl"}
    command = words("replay", folder, **shared, out=folder / "spark", cache=folder / "cache")
    application = cluster.submit(
        *command, conf={"spark.cores.max": "2", "spark.executor.cores": "1"}
    )
    out, err = application.communicate(timeout=600)
    assert application.returncode == 0, err
    assert "recall" in out
    assert main(words("replay", folder, **shared, out=folder / "local", engine="local")) == 0
    assert dataset(folder / "spark").equals(dataset(folder / "local"))
