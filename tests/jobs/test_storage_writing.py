"""Outputs in an object store: whole by their manifest, or not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from storage_cases import BUCKET, SECRET, Store, killed_at_each_write, needs_store, served, write

import winnow
from engine.commands import main
from engine.jobs.output import write_file
from engine.jobs.output_at import output_at
from engine.runtime.errors import InputError, OutputError
from engine.runtime.storage.listing import files_at, files_of
from engine.runtime.storage.reading import parquet_file
from engine.runtime.storage.uploads import write_bytes
from engine.runtime.storage.uris import Uri, storing

pytest.importorskip("obstore", reason="obstore is not installed: make extras")
pytestmark = needs_store
WORDS = ["--on", "k", "--time", "t", "--importance", "i", "--window", "50", "--engine", "local"]
TABLE = pa.table({"ts": pa.array([3, 5], pa.int64())})
MOMENTS = 10
"""At which a write is killed."""


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    with served() as running:
        yield running


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("archives"), number=2_000)


def place(store: Store, name: str) -> Uri:
    with storing(store.options):
        return Uri(f"s3://{BUCKET}/{name}")


def words_of(folder: Path, *more: str) -> list[str]:
    return ["--left", f"{folder}/left", "--right", f"{folder}/right", *WORDS, *more]


JOBS: dict[str, list[str]] = {
    "replay": ["--memory", "20", "--policy", "prob", "--lanes", "3"],
    "sample": ["--fraction", "0.4", "--lanes", "2"],
    "bound": ["--memory", "20"],
    "multijoin": [],
    "lookup": [],
}


def asked(job: str, folder: Path) -> list[str]:
    """Return the command line of a job."""
    if job == "lookup":
        streams = ["--stream", f"{folder}/left", "--fact", f"{folder}/right"]
        return [job, *streams, "--on", "k", "--time", "t", "--engine", "local"]
    if job == "multijoin":
        named = [f"--stream={name}={folder}/{name}" for name in ("left", "right")]
        return [job, *named, "--predicate", "equi:k", *WORDS[2:]]
    return [job, *words_of(folder, *JOBS[job])]


@pytest.mark.parametrize("job", sorted(JOBS))
def test_outputs_are_those_of_files(
    store: Store, archives: Path, tmp_path: Path, job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    uri, line = place(store, f"out/{job}"), asked(job, archives)
    assert main([*line, "--out", str(tmp_path / "out")]) == 0
    assert main([*line, "--out", uri, *store.words()]) == 0
    files = files_of(uri)
    assert set(files) == {
        own.relative_to(tmp_path / "out").as_posix()
        for own in (tmp_path / "out").rglob("*")
        if own.is_file()
    }
    for name, file in files.items():
        if name.endswith(".parquet"):
            assert parquet_file(file).read().equals(pq.read_table(tmp_path / "out" / name))
    manifest = json.loads(store.read(f"out/{job}/_manifest.json"))
    assert store.keys(f"out/{job}") == sorted(
        ["_manifest.json", *(own["object"] for own in manifest["files"])]
    )
    capsys.readouterr()
    assert main(["report", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert main(["report", uri, *store.words()]) == 0
    again = capsys.readouterr().out.splitlines()
    assert [own for own in again if "│" in own] == [own for own in shown if "│" in own]
    assert main([*line, "--out", uri, *store.words()]) == 2
    assert f"output folder {uri} exists" in capsys.readouterr().err
    assert not any(
        SECRET.encode() in store.read(f"out/{job}/{key}") for key in store.keys(f"out/{job}")
    )


def test_a_sweep_and_a_sample_with_its_tables(
    store: Store, archives: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep = ["sweep", *words_of(archives, "--memory", "10,20", "--policies", "prob,rand")]
    assert main([*sweep, "--out", place(store, "swept"), *store.words()]) == 0
    names = {"sweep.parquet", "sweep.csv", "sweep.json"}
    assert names < files_of(place(store, "swept")).keys()
    sample = ["sample", *words_of(archives, "--fraction", "0.4", "--aggregate", "count(*)")]
    sample += ["--aggregates-out", place(store, "totals"), "--out", place(store, "sampled")]
    assert main([*sample, *store.words()]) == 0
    assert {"aggregate-1.parquet", "aggregate-1.csv"} < files_of(place(store, "totals")).keys()
    for name in ("swept", "sampled"):
        assert main(["report", place(store, name), *store.words()]) == 0
        told = capsys.readouterr()
        assert "left out" not in told.err


def test_outputs_are_an_archive_and_a_plan(store: Store, archives: Path, tmp_path: Path) -> None:
    roles: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 50}
    sides, where = (f"{archives}/left", f"{archives}/right"), {"cache": tmp_path / "cache"}
    own: dict[str, Any] = {"storage_option": store.options}
    plan, uri = tmp_path / "plan", place(store, "plan")
    for out in (plan, uri):
        winnow.bound(*sides, **roles, memory=20, out=out, **where, **own)
    found = [
        winnow.replay(*sides, **roles, memory=20, plan=out, **where, **own).report["result"]
        for out in (plan, uri)
    ]
    assert found[0] == found[1]
    joined, there = tmp_path / "joined", place(store, "joined")
    for out in (joined, there):
        winnow.replay(*sides, **roles, lanes=2, out=out, **where, **own)
    again = [
        winnow.lookup(out, f"{archives}/right", on="left_k", fact_on="k", time="ts", **own).report[
            "outputs"
        ]
        for out in (joined, there)
    ]
    assert again[0] == again[1] > 0


def test_results_in_python_read_what_they_wrote(store: Store, archives: Path) -> None:
    left, right = (parquet_file(archives / side / "0.parquet").read() for side in ("left", "right"))
    bad = left.set_column(0, "t", pa.array([None, *left["t"].to_pylist()[1:]]))
    common: dict[str, Any] = {"time": "t", "storage_option": store.options}
    window: dict[str, Any] = common | {"window": 50, "bad_rows": "quarantine"}
    streams = {"a": bad, "b": right}
    joins: dict[str, Any] = {
        "replay": lambda **own: winnow.replay(bad, right, on="k", memory=20, **window, **own),
        "lookup": lambda **own: winnow.lookup(left, right, on="k", fact_on="k", **common, **own),
        "multijoin": lambda **own: winnow.multijoin(streams, predicate="equi:k", **window, **own),
    }
    for name, run in joins.items():
        kept, here = run(out=place(store, f"api/{name}")), run()
        assert pa.table(kept).num_rows == pa.table(here).num_rows > 10
        assert kept.rejected.keys() == here.rejected.keys()


def test_parts_without_a_manifest_are_refused(store: Store) -> None:
    uri = place(store, "half")
    with output_at(uri) as output:
        assert output is not None
        write_file(output.draft / "part-00000.a.parquet", TABLE)
        for meant in (uri, Uri(f"{uri}/*", uri.options)):
            with pytest.raises(InputError, match=r"no _manifest.json|outputs of winnow in part"):
                files_at(meant)
    assert store.keys("half") == []


def test_an_object_that_was_replaced_is_noticed(store: Store, tmp_path: Path) -> None:
    uri = place(store, "replaced")
    with output_at(uri) as output:
        assert output is not None
        write_file(output.draft / "part-00000.a.parquet", TABLE)
        output.assemble({"part-00000.a.parquet": 2}, TABLE.schema)
        output.commit()
    (file,) = files_at(uri)
    assert parquet_file(file).read().equals(TABLE)
    pq.write_table(pa.table({"ts": [4, 5]}), tmp_path / "other")
    store.put(tmp_path / "other", file.below)
    with pytest.raises(InputError, match=f"{file} is not what {uri}/_manifest.json says"):
        files_at(uri)


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"part-00000.a.parquet": 3}, "holds 2 rows, and its task has reported 3"),
        ({"part-00000.b.parquet": 2}, "is not there"),
        ({"part-00000.a.parquet": 2, "part-00000.c.parquet": 2}, "came twice"),
        ({"part-00000.d.parquet": 2}, "is damaged"),
    ],
)
def test_parts_that_are_not_as_reported(store: Store, parts: dict[str, int], why: str) -> None:
    def written() -> None:
        with output_at(place(store, "odd")) as output:
            assert output is not None
            write_file(output.draft / "part-00000.a.parquet", TABLE)
            write_bytes(output.draft / "part-00000.d.parquet", b"PAR1 and no more PAR1")
            output.assemble(parts, TABLE.schema)
            output.commit()

    with pytest.raises(OutputError, match=why):
        written()
    assert store.keys("odd") == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"access_key": "unknown"}, "check the credentials"),
        ({"region": "eu-north-1"}, "give the bucket's region by --storage-option region=NAME"),
        ({"role_arn": "arn:x"}, "--storage-option role_arn, which is for reading"),
        ({"endpoint_override": "http://127.0.0.1:9"}, "check the network"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    store: Store, archives: Path, capsys: pytest.CaptureFixture[str],
    changed: dict[str, str], words: str,
) -> None:  # fmt: skip
    line = [*asked("replay", archives), "--out", f"s3://{BUCKET}/no", *store.words(**changed)]
    assert main(line) == 2
    (told,) = capsys.readouterr().err.strip().splitlines()[-1:]
    assert told.startswith(f"winnow replay: error: s3://{BUCKET}/")
    assert words in told
    assert SECRET not in told


def test_a_bucket_that_is_not_there(
    store: Store, archives: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = [*asked("replay", archives), "--out", "s3://no-such-bucket/x", *store.words()]
    assert main(line) == 2
    assert "check the name of the bucket" in capsys.readouterr().err


def test_a_kill_at_any_moment_leaves_no_manifest_and_the_next_run_cleans_up(
    store: Store, archives: Path, tmp_path: Path
) -> None:
    uri = place(store, "killed")
    line = [*asked("replay", archives), "--cache", str(tmp_path / "cache"), "--out", uri]
    assert killed_at_each_write(store, "killed", uri, [*line, *store.words()]) >= MOMENTS
