"""Archives and outputs in the object stores of Azure and Google."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
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
        pytest.skip(f"{name} is not installed: make extras")
    with started(tmp_path_factory.mktemp(request.param)) as running:
        yield running


def test_rows_are_those_of_files(cloud: Cloud, tmp_path: Path) -> None:
    folder = write(tmp_path / "archives")
    for file in folder.rglob("*.parquet"):
        with cloud.files.open_output_stream(f"{BUCKET}/{file.relative_to(folder)}") as out:
            out.write(file.read_bytes())
    roles: dict[str, Any] = {"on": "k", "time": "t", "importance": "i", "window": 50, "lanes": 3}
    found = []
    for place, out in ((str(folder), tmp_path / "out"), (cloud.root, f"{cloud.root}/out")):
        engine.replay_archives(
            f"{place}/left", f"{place}/right/*.parquet", **roles, memory=20, policy="prob",
            out=out, cache=tmp_path / f"cache-{len(found)}", storage_option=cloud.options,
        )  # fmt: skip
        with storing(cloud.options):
            where = Uri(out) if isinstance(out, str) else out
        found.append(dataset(where).to_table())
    assert found[0].num_rows > 100
    assert found[0].equals(found[1])
    assert found[0].equals(pq.read_table(tmp_path / "out"))


def test_of_two_runs_one_commits_and_leftovers_go(cloud: Cloud) -> None:
    with storing(cloud.options):
        uri = Uri(f"{cloud.root}/two")
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
    assert len(files_below(cloud, "two")) == 3  # manifest, part and _SUCCESS


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
