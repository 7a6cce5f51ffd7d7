"""Archives and outputs in the object stores of Azure and Google."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from clouds import BUCKET, CLOUDS, Cloud, program
from storage_cases import write

import engine
from engine.jobs.output import write_file
from engine.jobs.output_at import output_at
from engine.runtime.errors import InputError, OutputError
from engine.runtime.listing import dataset, files_at
from engine.runtime.uris import Uri, storing

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


@pytest.fixture
def written(cloud: Cloud) -> Cloud:
    if cloud.root.startswith("gs:"):
        pytest.skip("fake-gcs-server has not the XML API by which obstore writes")
    return cloud


ROLES: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 50, "lanes": 3}
POLICY: dict[str, Any] = {"memory": 20, "policy": "prob"}


def replayed(place: str, out: str | Path, cache: Path, cloud: Cloud) -> pa.Table:
    """Replay the archives at a place and return the rows that were written."""
    engine.replay_archives(
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


def test_outputs_are_those_of_files(written: Cloud, tmp_path: Path) -> None:
    folder, uri = write(tmp_path / "archives"), f"{written.root}/out"
    here, there = (
        replayed(str(folder), out, tmp_path / "cache", written) for out in (tmp_path / "out", uri)
    )
    assert here.num_rows > 100
    assert here.equals(there)


def test_of_two_runs_one_commits(written: Cloud) -> None:
    with storing(written.options):
        uri = Uri(f"{written.root}/two")
    with output_at(uri) as first, output_at(uri) as second:
        assert first is not None
        assert second is not None
        for own in (first, second):
            write_file(own.draft / "part-00000.a.parquet", TABLE)
        with pytest.raises(InputError, match=r"no _manifest\.json"):
            files_at(uri)
        first.commit({"part-00000.a.parquet": 2}, TABLE.schema)
        with pytest.raises(OutputError, match="appeared while the job ran"):
            second.commit({"part-00000.a.parquet": 2}, TABLE.schema)
    (file,) = files_at(uri)
    assert file.parent == first.draft
    assert len(files_below(written, "two")) == 3  # manifest, part and _SUCCESS


def files_below(cloud: Cloud, folder: str) -> list[str]:
    """Return the files of the bucket below a folder."""
    infos = cloud.files.get_file_info(pafs.FileSelector(f"{BUCKET}/{folder}", recursive=True))
    return [own.path for own in infos if own.type == pafs.FileType.File]


def test_what_is_not_there_is_said(cloud: Cloud) -> None:
    missing = cloud.root.replace(BUCKET, "missing")
    for uri in (f"{cloud.root}/nothing", f"{missing}/nothing"):
        with pytest.raises(InputError, match=r"check the (bucket and the path|name of the bucket)"):
            engine.replay_archives(
                uri, uri, on="k", time="t", window=5, storage_option=cloud.options
            )
