"""Parts of a cluster fail while a job runs: its result is complete and equal, or there is none.

``WINNOW_FAULT_TIMES`` says how often each fault is tried. If it is not set, that is once where
outputs are on a disk, and where they are objects ten times for `make thorough`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cluster import Cluster, waited
from estimate_cases import JOIN as FEW
from estimate_cases import large
from places import SUPPORT
from spark_cases import drawn, write
from storage_cases import BUCKET, Store, needs_store, served
from test_cluster import JOIN, dataset, figures, right, words
from thorough import guards, often, repeats

from engine.commands import main
from engine.runtime.errors import InputError
from engine.runtime.storage.listing import dataset as dataset_at
from engine.runtime.storage.uris import Uri

pytestmark = guards(
    "spark_plugin", "engine/jobs", "engine/lanes", "engine/runtime",
    "tests/spark/test_cluster_faults.py", "tests/support/cluster.py",
)  # fmt: skip
TIMES = range(int(os.environ.get("WINNOW_FAULT_TIMES", "1")))
OPTIONS = JOIN | {"policy": "dgl", "lanes": 3, "memory": "20%", "report": "report.json"}


class Whole(NamedTuple):
    """What the local engine says of the archives in a folder."""

    folder: Path
    rows: pa.Table
    figures: dict[str, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """Return archives and the local engine's result."""
    folder = write(tmp_path_factory.mktemp("faults"), drawn(2, 600), drawn(3, 600))
    told = command(folder, folder, engine="local")
    assert main(told) == 0
    return Whole(folder, dataset(folder / "out"), figures(folder / "report.json"))


def command(archives: Path, folder: Path, **options: Any) -> list[str]:
    """Return the command line of a replay of the archives, which writes into a folder."""
    places = {"out": folder / "out", "report": folder / "report.json", "cache": folder / "cache"}
    return words("replay", archives, **(OPTIONS | {"engine": "spark"} | places | options))


def fault(folder: Path, kind: str, at: str, when: str) -> dict[str, str]:
    """Return what the application is told of a fault that one task has once."""
    return {"kind": kind, "at": at, "when": when, "marker": str(folder / "marker")}


def met(folder: Path) -> bool:
    """Return whether a task has had its fault."""
    return (folder / "marker").exists()


def nothing_aside(folder: Path) -> bool:
    """Return whether nothing is left of what was written on the way."""
    return not any([*folder.glob(".*"), *(folder / "cache").glob(".*")])


@pytest.mark.parametrize("_again", TIMES)
@pytest.mark.parametrize(
    ("kind", "at", "when"),
    [
        ("fails", "split", "after"),
        ("worker_killed", "write_lanes", "before"),
        ("executor_killed", "replay_lane", "after"),
        ("straggles", "replay_lane", "before"),
        ("lingers", "replay_lane", "after"),
        *repeats(
            [
                ("fails", "replay_lane", "after"),
                ("worker_killed", "replay_lane", "after"),
                ("executor_killed", "split", "after"),
                ("straggles", "write_lanes", "before"),
            ]
        ),
    ],
)
def test_the_result_is_complete_and_equal(
    cluster: Cluster, whole: Whole, tmp_path: Path, kind: str, at: str, when: str, _again: int
) -> None:
    told = command(whole.folder, tmp_path)
    right(cluster.run(kind="command", argv=told, fault=fault(tmp_path, kind, at, when)))
    assert met(tmp_path)
    assert dataset(tmp_path / "out").equals(whole.rows)
    assert figures(tmp_path / "report.json") == whole.figures
    assert {path.suffix for path in (tmp_path / "out").iterdir()} <= {".parquet", ".json", ""}
    assert nothing_aside(tmp_path)
    if kind == "straggles":
        assert (tmp_path / "marker.other").exists()  # and not that it was waited for


@pytest.mark.parametrize("_again", TIMES)
def test_a_task_that_fails_always_fails_the_job_and_leaves_nothing(
    cluster: Cluster, whole: Whole, tmp_path: Path, _again: int
) -> None:
    always = fault(tmp_path / "not there", "fails", "replay_lane", "after")
    done = cluster.run(kind="command", argv=command(whole.folder, tmp_path), fault=always)
    assert done.status is None
    assert "a task failed on Spark" in done.err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "report.json").exists()
    assert nothing_aside(tmp_path)


@pytest.mark.parametrize("_again", TIMES)
@pytest.mark.parametrize(("at", "what"), [("replay_lane", "output"), ("write_lanes", "lanes")])
def test_a_full_disk_is_told_of_at_once_and_nothing_is_left(
    cluster: Cluster, whole: Whole, tmp_path: Path, at: str, what: str, _again: int
) -> None:
    full = fault(tmp_path, "disk_full", at, "before")
    done = cluster.run(kind="command", argv=command(whole.folder, tmp_path), fault=full)
    assert done.status == 2
    assert f"error: {what} " in done.err
    assert "its disk is full" in done.err
    assert "free space on it, or" in done.err
    assert not (tmp_path / "out").exists()
    assert nothing_aside(tmp_path)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Return a folder on a disk of 256 KiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(place)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:  # noqa: S603 - ours
        pytest.skip("a disk of its own takes the right to mount one, which this user has not")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)  # noqa: S603, S607 - ours


@pytest.mark.parametrize("_again", TIMES)
@pytest.mark.parametrize("option", ["out", "cache"])
def test_a_disk_that_fills_up_is_told_of_and_nothing_is_left(
    cluster: Cluster, tmp_path: Path, small_disk: Path, option: str, _again: int
) -> None:
    folder = write(tmp_path, drawn(2, 4000), drawn(3, 4000))
    told = command(folder, tmp_path, memory="100%", **{option: small_disk / "place"})
    done = cluster.run(kind="command", argv=told)
    assert done.status == 2, done.err
    assert "its disk is full" in done.err
    assert f"--{option}" in done.err or "another disk" in done.err
    assert not list(small_disk.iterdir()) or not list((small_disk / "place").iterdir())


def kill_driver(cluster: Cluster, folder: Path, argv: list[str]) -> None:
    """Run a command by a driver of its own, which is killed while one of its tasks is at work."""
    jobs = folder / "jobs"
    jobs.mkdir()
    job = {"kind": "command", "argv": argv, "fault": fault(folder, "hangs", "replay_lane", "after")}
    (jobs / "1.json").write_text(json.dumps(job))
    driver = cluster.start(
        str(SUPPORT / "cluster_app.py"), str(jobs),
        conf={"spark.cores.max": "2", "spark.executor.cores": "1"}, log=subprocess.DEVNULL,
    )  # fmt: skip
    waited(lambda: met(folder), "no task has come so far", cluster.folder)
    time.sleep(0.5)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


@pytest.mark.parametrize("_again", TIMES)
def test_a_killed_driver_leaves_nothing_that_looks_whole(
    cluster: Cluster, whole: Whole, tmp_path: Path, _again: int
) -> None:
    """Killed while tasks write; the job that is run again on the same places is whole."""
    kill_driver(cluster, tmp_path, command(whole.folder, tmp_path))
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "report.json").exists()
    told = command(whole.folder, tmp_path)
    assert list(tmp_path.glob(".out.*.tmp"))
    right(cluster.run(kind="command", argv=told))
    assert dataset(tmp_path / "out").equals(whole.rows)
    assert figures(tmp_path / "report.json") == whole.figures
    assert not list(tmp_path.glob(".out.*.tmp"))


@pytest.mark.parametrize("_again", TIMES)
@pytest.mark.parametrize("kind", ["executor_killed", "straggles", *repeats(["worker_killed"])])
def test_data_frames_are_written_whole_by_sparks_own_committer(
    cluster: Cluster, whole: Whole, tmp_path: Path, kind: str, _again: int
) -> None:
    options = JOIN | {"policy": "dgl", "lanes": 3, "memory": "20%"}
    paths = {side: str(whole.folder / f"{side}.parquet") for side in ("left", "right")}
    told = fault(tmp_path, kind, "", "after")
    out = tmp_path / "out"
    right(cluster.run(kind="frames", **paths, options=options, out=str(out), fault=told))
    assert met(tmp_path)
    assert kind != "straggles" or (tmp_path / "marker.other").exists()
    assert (out / "_SUCCESS").exists()
    columns = ["left_row", "right_row", "ts", "importance"]
    assert dataset(out).select(columns).to_pylist() == whole.rows.select(columns).to_pylist()


@pytest.mark.parametrize("_again", TIMES)
@pytest.mark.parametrize(
    ("kind", "at", "more"),
    [
        ("executor_killed", "join_stretch", {"aggregate": "sum(importance)", "read": "40%"}),
        *repeats(
            [
                ("worker_killed", "join_stretch", {"within": "20%", "sizes": "keys"}),
                (
                    "executor_killed",
                    "replay_slice",
                    {"memory": "20%", "policy": "prob", "read": "40%"},
                ),
            ]
        ),
    ],
)
def test_an_estimate_is_the_same(
    cluster: Cluster, tmp_path: Path, kind: str, at: str, more: dict[str, str], _again: int
) -> None:
    given = {**large(tmp_path), **FEW, "importance": "v", "seed": 3, **more}

    def told(engine: str) -> list[str]:
        own = {**given, "engine": engine, "report": tmp_path / f"{engine}.json"}
        pairs = [(f"--{name}", str(value)) for name, value in own.items()]
        return ["estimate", *(word for pair in pairs for word in pair)]

    assert main(told("local")) == 0
    right(cluster.run(kind="command", argv=told("spark"), fault=fault(tmp_path, kind, at, "after")))
    assert met(tmp_path)
    reports = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("local", "spark")]
    for report in reports:
        del report["seconds"], report["exact"]["seconds"]
    for name, value in reports[0].items():
        assert reports[1][name] == value, name
    assert reports[0]["how"] == "sample"


def test_a_lane_folder_that_was_left_half_written_is_not_used(
    cluster: Cluster, whole: Whole, tmp_path: Path
) -> None:
    right(cluster.run(kind="command", argv=command(whole.folder, tmp_path)))
    (lanes,) = (tmp_path / "cache").iterdir()
    file = lanes / "lane-00002" / "left.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    (lanes.parent / f".{lanes.name}.{uuid.uuid4().hex}.tmp").mkdir()
    right(cluster.run(kind="command", argv=command(whole.folder, tmp_path, out=tmp_path / "b")))
    assert dataset(tmp_path / "b").equals(whole.rows)
    assert pq.read_metadata(file).num_rows


needs_objects = pytest.mark.skipif(
    find_spec("obstore") is None, reason="obstore is not installed: make extras"
)


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """Return an object store."""
    with served() as running:
        yield running


def stored(store: Store, whole: Whole, folder: Path) -> tuple[Uri, list[str]]:
    """Return the place of objects, and the command line of a replay that writes there."""
    uri = Uri(f"s3://{BUCKET}/{folder.name}-{uuid.uuid4().hex[:6]}", tuple(store.options.items()))
    return uri, [*command(whole.folder, folder, out=uri), *store.words()]


def rows_at(uri: Uri) -> pa.Table:
    """Return the rows of an output in a store, in the order of `dataset`."""
    table = dataset_at(uri).to_table()
    order = [name for name in table.column_names if name.endswith("row") or name in ("ts", "side")]
    return table.sort_by([(name, "ascending") for name in order])


@needs_store
@needs_objects
@pytest.mark.parametrize("_again", often())
@pytest.mark.parametrize(
    ("kind", "at", "when"),
    [
        ("fails", "replay_lane", "after"),
        ("worker_killed", "replay_lane", "after"),
        ("executor_killed", "replay_lane", "after"),
        ("straggles", "replay_lane", "before"),
        ("lingers", "replay_lane", "after"),
    ],
)
def test_objects_are_complete_and_equal(
    cluster: Cluster, whole: Whole, store: Store, tmp_path: Path,
    kind: str, at: str, when: str, _again: int,
) -> None:  # fmt: skip
    uri, told = stored(store, whole, tmp_path)
    right(cluster.run(kind="command", argv=told, fault=fault(tmp_path, kind, at, when)))
    assert met(tmp_path)
    assert rows_at(uri).equals(whole.rows)
    assert figures(tmp_path / "report.json") == whole.figures
    manifest = json.loads(store.read(f"{uri.name}/_manifest.json"))
    named = {own["object"] for own in manifest["files"]} | {"_manifest.json"}
    until = time.monotonic() + 10  # an attempt that is late takes its part back
    while (late := set(store.keys(uri.name)) - named) and time.monotonic() < until:
        time.sleep(0.1)
    assert not late or kind == "lingers"  # whose process puts without looking


@needs_store
@needs_objects
@pytest.mark.parametrize("_again", often())
def test_a_task_that_fails_always_leaves_no_objects(
    cluster: Cluster, whole: Whole, store: Store, tmp_path: Path, _again: int
) -> None:
    uri, told = stored(store, whole, tmp_path)
    always = fault(tmp_path / "not there", "fails", "replay_lane", "after")
    done = cluster.run(kind="command", argv=told, fault=always)
    assert done.status is None
    assert "a task failed on Spark" in done.err
    assert store.keys(uri.name) == []


@needs_store
@needs_objects
@pytest.mark.parametrize("_again", often())
def test_a_killed_driver_leaves_no_manifest_and_the_next_run_cleans_up(
    cluster: Cluster, whole: Whole, store: Store, tmp_path: Path, _again: int
) -> None:
    uri, told = stored(store, whole, tmp_path)
    kill_driver(cluster, tmp_path, told)
    left = store.keys(uri.name)
    assert left
    assert "_manifest.json" not in left
    with pytest.raises(InputError, match=r"no _manifest\.json|is not there"):
        dataset_at(uri)  # executors that outlive the driver may have taken all their parts back
    right(cluster.run(kind="command", argv=told))
    assert rows_at(uri).equals(whole.rows)
    assert not set(left) & set(store.keys(uri.name))
