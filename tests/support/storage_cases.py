"""Archives on a disk and in an object store, and the store itself: `object_store.py`, run aside."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import object_store
import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import pytest
from file_formats import WRITE

from engine.runtime.errors import InputError
from engine.runtime.storage.listing import files_at
from engine.runtime.storage.reading import parquet_file
from engine.runtime.storage.uris import Uri

BUCKET = "archives"
SECRET = "a-secret-that-nobody-may-see"  # noqa: S105 - of no store but the tests' own
GROUP = 20_000
"""Rows of a row group."""
needs_store = pytest.mark.skipif(
    importlib.util.find_spec("moto") is None, reason="moto is not installed: make extras"
)


class Store:
    """A running object store with an empty bucket.

    Attributes
    ----------
    options : dict of str to str
        By which winnow reaches it.
    """

    def __init__(self, port: str) -> None:
        self._control = f"http://127.0.0.1:{port}/_"
        self.options = {
            "access_key": object_store.KEY,
            "secret_key": SECRET,
            "endpoint_override": f"http://127.0.0.1:{port}",
            "region": object_store.REGION,
        }
        self._files = pafs.S3FileSystem(**self.options, allow_bucket_creation=True)
        self._files.create_dir(BUCKET)

    def words(self, **changed: str) -> list[str]:
        """Return the options of a command line."""
        options = (self.options | changed).items()
        return [word for name, own in options for word in ("--storage-option", f"{name}={own}")]

    def put(self, file: Path, key: str) -> str:
        """Copy a file into the bucket and return its URI."""
        with self._files.open_output_stream(f"{BUCKET}/{key}", compression=None) as out:
            out.write(file.read_bytes())
        return f"s3://{BUCKET}/{key}"

    def keys(self, folder: str) -> list[str]:
        """Return the keys below a folder of the bucket, without it."""
        return keys_below(self._files, f"{BUCKET}/{folder}")

    def read(self, key: str) -> bytes:
        """Return the content of an object."""
        with self._files.open_input_file(f"{BUCKET}/{key}") as file:
            return bytes(file.read())

    def remove(self, folder: str) -> None:
        """Remove a folder."""
        self._files.delete_dir(f"{BUCKET}/{folder}")

    def remove_object(self, key: str) -> None:
        """Remove an object."""
        self._files.delete_file(f"{BUCKET}/{key}")

    def fetched(self) -> int:
        """Return the bytes of objects sent since the last call, and forget them."""
        log = self._asked("clear")
        return sum(own["bytes"] for own in log if own["method"] == "GET" and not own["query"])

    def reads(self) -> list[tuple[str, str, str]]:
        """Return method, path and query of reads and removals since the last call; forget them."""
        log = self._asked("clear")
        return [(own["method"], own["path"], own["query"]) for own in log if not own["writes"]]

    def writes(self) -> list[str]:
        """Return the paths of writes since the last call, but for removals, and forget them."""
        return [own["path"] for own in self._asked("clear") if own["writes"]]

    def kill(self, pid: int, at: int, *, before: bool) -> None:
        """Have a process killed at a write to come, counted from 0, before or after it is done."""
        self._asked("kill", json.dumps({"pid": pid, "at": at, "before": before}).encode())

    def _asked(self, what: str, body: bytes | None = None) -> Any:
        with urllib.request.urlopen(self._control + what, body, timeout=60) as answer:  # noqa: S310
            return json.load(answer)


@contextmanager
def served() -> Iterator[Store]:
    """Yield an object store on loopback; it ends with the block, or with this process."""
    with subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, str(Path(object_store.__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdin is not None
        try:
            yield Store(server.stdout.readline().strip())
        finally:
            server.stdin.close()


def rows(seed: int, number: int) -> pa.Table:
    """Return a stream with columns that a join reads, and two that it does not."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "t": np.sort(rng.integers(0, number, number)),
            "k": rng.integers(0, 200, number),
            "i": rng.integers(1, 9, number).astype(np.float64),
            "note": rng.random(number),
            "other": rng.random(number),
        }
    )


def write(
    folder: Path, number: int = 4_000, parts: int = 3, kind: str = "parquet", group: int = GROUP
) -> Path:
    """Write the folders ``left`` and ``right`` of an archive in parts."""
    for side, name in enumerate(("left", "right")):
        table, own = rows(side, number), folder / name
        own.mkdir(parents=True)
        for at, part in enumerate(np.array_split(np.arange(number), parts)):
            taken = table.take(pa.array(part))
            if kind in WRITE:
                WRITE[kind](taken, own / f"{at}.{kind}")
            else:
                pq.write_table(taken, own / f"{at}.parquet", row_group_size=group)
    return folder


def put(store: Store, folder: Path, under: str) -> str:
    """Copy a folder into the bucket and return its URI."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            store.put(file, f"{under}/{file.relative_to(folder)}")
    return f"s3://{BUCKET}/{under}"


class Killing(Protocol):
    """A store that can kill who writes there."""

    def kill(self, pid: int, at: int, *, before: bool) -> None:
        """Have a process killed at a write to come, counted from 0, before or after it is done."""

    def writes(self) -> list[str]:
        """Return the paths of writes since the last call, but for removals, and forget them."""
        ...

    def keys(self, folder: str) -> list[str]:
        """Return the keys below a folder of the bucket, without it."""
        ...

    def remove(self, folder: str) -> None:
        """Remove a folder."""


def killed_at_each_write(store: Killing, folder: str, uri: Uri, line: list[str]) -> int:
    """Run a command that writes to a folder, killed at every write; return how many moments.

    Raises
    ------
    AssertionError
        If a kill before the manifest leaves one, anything is read then, or what a killed run has
        left stays when the next is through.
    """
    with _forking(line) as run:
        store.writes()
        assert run(None) == 0
        writes, wanted = store.writes(), store.keys(folder)
        last = next(at for at, path in enumerate(writes) if path.endswith("_manifest.json"))
        store.remove(folder)
        moments = [(at, True) for at in range(last + 1)] + [(at, False) for at in range(last)]
        for at, before in moments:
            assert run(partial(store.kill, at=at, before=before)) == -signal.SIGKILL, (at, before)
            assert "_manifest.json" not in store.keys(folder), (at, before)
            with pytest.raises(InputError, match=r"no _manifest\.json|is not there"):
                files_at(uri)
        assert run(None) == 0
        assert len(store.keys(folder)) == len(wanted)
        rows = sum(parquet_file(own).metadata.num_rows for own in files_at(uri))
        store.remove(folder)
        assert run(partial(store.kill, at=last, before=False)) == -signal.SIGKILL
        assert sum(parquet_file(own).metadata.num_rows for own in files_at(uri)) == rows > 0
    return len(moments)


_FORKING = """
import os, sys
import engine.jobs.replay.run
from engine.commands import main
while os.read(0, 1):
    pid = os.fork()
    if not pid:
        os.read(0, 1)
        with open(os.devnull, "w") as sys.stdout, open(os.devnull, "w") as sys.stderr:
            os._exit(main(sys.argv[1:]))
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
"""Runs a command line again and again, each time in a process of its own that has all modules."""


@contextmanager
def _forking(line: list[str]) -> Iterator[Callable[[Callable[[int], None] | None], int]]:
    """Yield what runs a command, once its process is made known, and returns its status."""
    with subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-c", _FORKING, *line],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    ) as home:  # fmt: skip
        assert home.stdin is not None
        assert home.stdout is not None
        given, said = home.stdin, home.stdout

        def run(known: Callable[[int], None] | None) -> int:
            given.write("+")
            given.flush()
            pid = int(said.readline())
            if known is not None:
                known(pid)
            given.write("+")
            given.flush()
            return int(said.readline())

        try:
            yield run
        finally:
            given.close()


def keys_below(files: pafs.FileSystem, folder: str) -> list[str]:
    """Return the keys below a folder, without it."""
    found = files.get_file_info(pafs.FileSelector(folder, recursive=True, allow_not_found=True))
    begin = len(f"{folder}/")
    return sorted(own.path[begin:] for own in found if own.type == pafs.FileType.File)
