"""Archives in HDFS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hdfs
import hdfs_kills
import pyarrow.parquet as pq
import pytest
from places import ROOT
from storage_cases import write
from thorough import guards

from engine.commands import main

pytestmark = pytest.mark.skipif(
    not hdfs.LIBRARY.exists(), reason="HDFS is not installed: make clouds"
)
WORDS = [
    "--on", "k", "--time", "t", "--importance", "i", "--window", "50", "--memory", "20",
    "--policy", "prob", "--lanes", "3", "--engine", "local",
]  # fmt: skip
MOMENTS = 10
PUT = """
import sys
from pathlib import Path
import pyarrow.fs as pafs
files, folder = pafs.FileSystem.from_uri(sys.argv[1])[0], Path(sys.argv[2])
for file in folder.rglob("*.parquet"):
    name = f"/archives/{file.relative_to(folder)}"
    files.create_dir(name.rpartition("/")[0])
    with files.open_output_stream(name) as out:
        out.write(file.read_bytes())
"""

GET = """
import sys
from pathlib import Path
from engine.runtime.storage.listing import dataset
from engine.runtime.storage.uris import Uri
import pyarrow.parquet as pq
pq.write_table(dataset(Uri(sys.argv[1])).to_table(), sys.argv[2])
"""
TWO = """
import sys
import pyarrow as pa
from engine.jobs.output import write_file
from engine.jobs.output_at import output_at
from engine.runtime.storage.disk import lease_mark
from engine.runtime.errors import OutputError
from engine.runtime.storage.listing import files_of
from engine.runtime.storage.run_folders import OWNER
from engine.runtime.storage.uploads import objects, put
from engine.runtime.storage.uris import Uri
uri, table = Uri(sys.argv[1]), pa.table({"ts": pa.array([3, 5], pa.int64())})
left = uri / f"run-{'a' * 32}"
put(left / OWNER, (lease_mark().rsplit(" ", 2)[0] + " 4194303 1").encode())
put(left / "part-00000.x.parquet", b"x")
with output_at(uri) as first, output_at(uri) as second:
    assert not any(own.name.startswith(left.name) for own in objects(uri))
    for own in (first, second):
        write_file(own.draft / "part-00000.a.parquet", table)
    first.assemble({"part-00000.a.parquet": 2}, table.schema)
    first.commit()
    second.assemble({"part-00000.a.parquet": 2}, table.schema)
    try:
        second.commit()
    except OutputError as error:
        assert "appeared while the job ran" in str(error)
        print("second")
found = {own.name.partition("/")[0] for own in objects(uri)}
whole = found == {"_manifest.json", first.draft.name}
print("manifest" if whole else found, *sorted(files_of(uri)))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hdfs.served(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python where HDFS can be read: a process can load a JVM once."""
    return subprocess.run(  # noqa: S603 - ours
        [sys.executable, *words], capture_output=True, text=True, check=False,
        env=hdfs.variables() | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip


def replay(left: str, right: str, *more: str) -> list[str]:
    """Return a command line."""
    return ["replay", "--left", left, "--right", right, *WORDS, *more]


def test_rows_are_those_of_files(place: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "archives")
    assert run("-c", PUT, f"{place}/", str(folder)).returncode == 0
    here = ["--out", str(tmp_path / "here"), "--cache", str(tmp_path / "cache")]
    assert main(replay(f"{folder}/left", f"{folder}/right", *here)) == 0
    there = ["--out", str(tmp_path / "there"), "--cache", str(tmp_path / "cache")]
    uris = f"{place}/archives/left", f"{place}/archives/right/*.parquet"
    done = run("-m", "winnow", *replay(*uris, *there))
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stderr  # as libhdfs tells of files that are not there
    rows = [pq.read_table(tmp_path / name) for name in ("here", "there")]
    assert rows[0].num_rows > 100
    assert rows[0].equals(rows[1])


@pytest.mark.parametrize("left", ["{place}/nothing", "hdfs://127.0.0.1:9/left"])
def test_what_is_wrong_is_said_in_a_sentence(place: str, left: str) -> None:
    uri = left.format(place=place)
    done = run("-m", "winnow", *replay(uri, uri))
    assert done.returncode == 2
    wanted = f"the left archive: {uri} is not there: check the name node, its port and the path"
    assert done.stderr.splitlines()[-1] == f"winnow replay: error: {wanted}"


def test_outputs_lanes_and_reports_are_those_of_a_disk(place: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "archives")
    assert run("-c", PUT, f"{place}/", str(folder)).returncode == 0
    assert main(replay(f"{folder}/left", f"{folder}/right", "--out", f"{tmp_path}/out")) == 0
    there = ["--out", f"{place}/joined", "--cache", f"{place}/lanes", "--report", f"{place}/r.json"]
    line = replay(f"{place}/archives/left", f"{place}/archives/right", *there)
    done = run("-m", "winnow", *line)
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stderr
    found = run("-c", GET, f"{place}/joined", str(tmp_path / "got"))
    assert found.returncode == 0, found.stderr
    wanted = pq.read_table(tmp_path / "out")
    assert wanted.num_rows > 100
    assert pq.read_table(tmp_path / "got").equals(wanted)
    assert run("-m", "winnow", "report", f"{place}/joined").returncode == 0
    again = run("-m", "winnow", *line)
    assert again.returncode == 2
    assert f"output folder {place}/joined exists" in again.stderr


@guards(
    "tests/jobs/test_storage_hdfs.py", "engine/runtime/storage/hadoop.py",
    "engine/runtime/storage/run_folders.py", "engine/jobs/output_at.py",
)  # fmt: skip
def test_a_kill_at_any_moment_leaves_no_manifest_and_the_next_run_cleans_up(
    place: str, tmp_path: Path
) -> None:
    folder = write(tmp_path / "archives")
    there = ["--out", f"{place}/killed", "--cache", str(tmp_path / "cache")]
    line = replay(f"{folder}/left", f"{folder}/right", *there)
    done = run(hdfs_kills.__file__, f"{place}/killed", str(MOMENTS), *line)
    assert done.returncode == 0, done.stderr
    whole, *killed, last = done.stdout.splitlines()
    assert len(killed) == MOMENTS
    for own in killed:
        assert own.startswith("killed ")
        assert own.endswith(" 0 False")
    assert max(int(own.split()[1]) for own in killed) > 3
    assert last == whole
    assert last.endswith("True")


def test_of_two_runs_one_commits_and_what_is_left_of_killed_ones_goes(place: str) -> None:
    done = run("-c", TWO, f"{place}/two")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["second", "manifest", "_SUCCESS", "part-00000.parquet"]
