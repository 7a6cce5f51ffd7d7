"""Archives and outputs in the object stores of Azure and Google."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from clouds import BUCKET, CLOUDS, Cloud, program
from storage_cases import SECRET, killed_at_each_write, write

import winnow
from engine.commands import main
from engine.jobs.output import write_file
from engine.jobs.output_at import output_at
from engine.runtime.errors import InputError, OutputError
from engine.runtime.storage.listing import dataset, files_at
from engine.runtime.storage.uris import Uri, storing

pytest.importorskip("obstore", reason="obstore is not installed: make extras")
TABLE = pa.table({"ts": pa.array([3, 5], pa.int64())})


@pytest.fixture(scope="module", params=sorted(CLOUDS))
def cloud(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cloud]:
    name, started = CLOUDS[request.param]
    if program(name) is None:
        pytest.skip(f"{name} is not installed: make clouds")
    with started(tmp_path_factory.mktemp(request.param)) as running:
        yield running


ROLES: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 50, "lanes": 3}
POLICY: dict[str, Any] = {"memory": 20, "policy": "prob"}
WORDS = [
    "--on", "k", "--time", "t", "--importance", "i", "--window", "50", "--memory", "20",
    "--policy", "prob", "--lanes", "3", "--engine", "local",
]  # fmt: skip
MOMENTS = 10
"""At which a write is killed."""


def replayed(place: str, out: str | Path, cache: Path, cloud: Cloud) -> pa.Table:
    """Replay the archives at a place and return the rows that were written."""
    winnow.replay(
        f"{place}/left", f"{place}/right/*.parquet", **ROLES, **POLICY, out=out, cache=cache,
        storage_option=cloud.options,
    )  # fmt: skip
    with storing(cloud.options):
        return dataset(Uri(out) if isinstance(out, str) else out).to_table()


def test_rows_are_those_of_files(cloud: Cloud, tmp_path: Path) -> None:
    folder = write(tmp_path / "archives")
    for file in folder.rglob("*.parquet"):
        with cloud.files.open_output_stream(f"{BUCKET}/{file.relative_to(folder)}") as out:
            out.write(file.read_bytes())
    places = enumerate((str(folder), cloud.root))
    here, there = (
        replayed(place, tmp_path / f"out-{i}", tmp_path / f"cache-{i}", cloud)
        for i, place in places
    )
    assert here.num_rows > 100
    assert here.equals(there)


def test_outputs_are_those_of_files(cloud: Cloud, tmp_path: Path) -> None:
    folder, uri = write(tmp_path / "archives"), f"{cloud.root}/out"
    here, there = (
        replayed(str(folder), out, tmp_path / "cache", cloud) for out in (tmp_path / "out", uri)
    )
    assert here.num_rows > 100
    assert here.equals(there)


def test_of_two_runs_one_commits(cloud: Cloud) -> None:
    with storing(cloud.options):
        uri = Uri(f"{cloud.root}/two")
    with output_at(uri) as first, output_at(uri) as second:
        assert first is not None
        assert second is not None
        for own in (first, second):
            write_file(own.draft / "part-00000.a.parquet", TABLE)
        with pytest.raises(InputError, match=r"no _manifest\.json"):
            files_at(uri)
        first.assemble({"part-00000.a.parquet": 2}, TABLE.schema)
        first.commit()
        second.assemble({"part-00000.a.parquet": 2}, TABLE.schema)
        with pytest.raises(OutputError, match="appeared while the job ran"):
            second.commit()
    (file,) = files_at(uri)
    assert file.parent == first.draft
    assert len(cloud.keys("two")) == 3  # manifest, part and _SUCCESS


def test_a_kill_at_any_moment_leaves_no_manifest_and_the_next_run_cleans_up(
    cloud: Cloud, tmp_path: Path
) -> None:
    folder = write(tmp_path / "archives", number=1_000)
    with storing(cloud.options):
        uri = Uri(f"{cloud.root}/killed")
    line = ["replay", "--left", f"{folder}/left", "--right", f"{folder}/right", *WORDS]
    line += ["--cache", str(tmp_path / "cache"), "--out", uri, *cloud.words()]
    assert killed_at_each_write(cloud, "killed", uri, line) >= MOMENTS


@pytest.fixture
def refused(cloud: Cloud) -> Iterator[dict[str, str]]:
    """Return options with credentials that the store does not know."""
    if cloud.root.startswith("abfs:"):
        yield {"account_key": base64.b64encode(SECRET.encode()).decode()}
        return
    cloud.gateway.refuse(True)  # what Google answers; fake-gcs-server knows no credentials
    yield {}
    cloud.gateway.refuse(False)


@pytest.mark.parametrize("way", ["read", "written"])
def test_credentials_that_are_refused_are_said_in_a_sentence(
    cloud: Cloud, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    refused: dict[str, str], way: str,
) -> None:  # fmt: skip
    folder = write(tmp_path / "archives", number=100)
    read = f"{cloud.root}/nothing" if way == "read" else str(folder)
    line = ["replay", "--left", f"{read}/left", "--right", f"{read}/right", *WORDS]
    line += ["--out", f"{cloud.root}/no", *cloud.words(**refused)]
    assert main(line) == 2
    told = capsys.readouterr().err.strip()
    assert "check the credentials, in the environment or by --storage-option" in told
    assert told.splitlines()[-1].startswith("winnow replay: error: ")
    assert not any(own in told for own in refused.values())


def test_what_is_not_there_is_said(cloud: Cloud) -> None:
    missing = cloud.root.replace(BUCKET, "missing")
    for uri in (f"{cloud.root}/nothing", f"{missing}/nothing"):
        with pytest.raises(InputError, match=r"check the (bucket and the path|name of the bucket)"):
            winnow.replay(uri, uri, on="k", time="t", window=5, storage_option=cloud.options)


def test_a_bucket_that_is_not_there_is_said_before_anything_is_written(
    cloud: Cloud, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "archives", number=100)
    line = ["replay", "--left", f"{folder}/left", "--right", f"{folder}/right", *WORDS]
    line += ["--out", f"{cloud.root.replace(BUCKET, 'missing')}/out", *cloud.words()]
    assert main(line) == 2
    told = capsys.readouterr().err.strip().splitlines()[-1]
    assert told.startswith("winnow replay: error: ")
    assert "check the name of the bucket" in told
