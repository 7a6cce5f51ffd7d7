"""Archives in HDFS."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hdfs
import pyarrow.parquet as pq
import pytest
from places import ROOT
from storage_cases import write

from engine.commands import main

pytestmark = pytest.mark.skipif(
    not hdfs.LIBRARY.exists(), reason="HDFS is not installed: make clouds"
)
WORDS = [
    "--on", "k", "--time", "t", "--importance", "i", "--window", "50", "--memory", "20",
    "--policy", "prob", "--lanes", "3", "--engine", "local",
]  # fmt: skip
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
    done = run("-m", "engine.commands", *replay(*uris, *there))
    assert done.returncode == 0, done.stderr
    assert "Exception" not in done.stderr  # as libhdfs tells of files that are not there
    rows = [pq.read_table(tmp_path / name) for name in ("here", "there")]
    assert rows[0].num_rows > 100
    assert rows[0].equals(rows[1])


@pytest.mark.parametrize("left", ["{place}/nothing", "hdfs://127.0.0.1:9/left"])
def test_what_is_wrong_is_said_in_a_sentence(place: str, left: str) -> None:
    uri = left.format(place=place)
    done = run("-m", "engine.commands", *replay(uri, uri))
    assert done.returncode == 2
    wanted = f"left archive: {uri} is not there: check the name node, its port and the path"
    assert done.stderr.splitlines()[-1] == f"winnow replay: error: {wanted}"


def test_outputs_are_refused(place: str, tmp_path: Path) -> None:
    folder = write(tmp_path / "archives")
    out = replay(f"{folder}/left", f"{folder}/right", "--out", f"{place}/out")
    done = run("-m", "engine.commands", *out)
    assert done.returncode == 2
    assert "cannot be written: give a URI of s3, gs or abfs, or a path" in done.stderr
