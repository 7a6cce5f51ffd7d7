"""Servers of other clouds' object stores, on loopback: Azurite, and fake-gcs-server.

Both are reached through a `gateway`. ``make clouds`` gets them where npm and go are there; tests
that need one are skipped without it.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import NamedTuple

import pyarrow.fs as pafs
from gateway import Gateway, opened
from storage_cases import keys_below

_AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""Of the account that every Azurite has, as its documents say."""
_ACCOUNT = "devstoreaccount1"
BUCKET = "archives"
MOST_SECONDS = 300.0


class Cloud(NamedTuple):
    """A running object store with an empty bucket."""

    root: str
    """URI of the bucket."""
    options: dict[str, str]
    files: pafs.FileSystem
    gateway: Gateway

    def words(self, **changed: str) -> list[str]:
        """Return the options of a command line."""
        options = (self.options | changed).items()
        return [word for name, own in options for word in ("--storage-option", f"{name}={own}")]

    def keys(self, folder: str) -> list[str]:
        """Return the keys below a folder of the bucket, without it."""
        return keys_below(self.files, f"{BUCKET}/{folder}")

    def remove(self, folder: str) -> None:
        """Remove a folder."""
        for key in self.keys(folder):
            self.files.delete_file(f"{BUCKET}/{folder}/{key}")

    def kill(self, pid: int, at: int, *, before: bool) -> None:
        """Have a process killed at a write to come, counted from 0, before or after it is done."""
        self.gateway.kill(pid, at, before=before)

    def writes(self) -> list[str]:
        """Return the paths of writes since the last call, but for removals, and forget them."""
        return self.gateway.writes()


def program(name: str) -> str | None:
    """Return the path of a server: beside this Python, as `make clouds` puts it, or on the PATH."""
    own = Path(sys.executable).parent
    beside = (own / name, own.parent / "node" / "node_modules" / ".bin" / name)
    return next((str(path) for path in beside if path.exists()), shutil.which(name))


@contextmanager
def azure(folder: Path) -> Iterator[Cloud]:
    """Yield Azurite, with its files in a folder."""
    port = _free_port()
    where = ["--location", str(folder), "--blobHost", "127.0.0.1", "--blobPort", str(port)]
    line = [str(program("azurite-blob")), "--silent", "--disableTelemetry", *where]

    def reached(own: int) -> dict[str, str]:
        address = f"127.0.0.1:{own}"
        return {
            "account_key": _AZURE_KEY,
            "blob_storage_authority": address, "blob_storage_scheme": "http",
            "dfs_storage_authority": address, "dfs_storage_scheme": "http",
        }  # fmt: skip

    with _running([*line, "--skipApiVersionCheck"], port), opened(port, "azure") as gateway:
        files = pafs.AzureFileSystem(_ACCOUNT, **reached(port))
        files.create_dir(BUCKET)
        root = f"abfs://{BUCKET}@{_ACCOUNT}.dfs.core.windows.net"
        yield Cloud(root, reached(gateway.port), files, gateway)


@contextmanager
def google(folder: Path) -> Iterator[Cloud]:
    """Yield fake-gcs-server, with its files in a folder."""
    port = _free_port()
    line = [str(program("fake-gcs-server")), "-scheme", "http", "-host", "127.0.0.1"]
    line += ["-port", str(port), "-filesystem-root", str(folder), "-log-level", "error"]
    line += ["-external-url", f"http://127.0.0.1:{port}"]

    def reached(own: int) -> dict[str, str]:
        return {
            "anonymous": "true", "scheme": "http", "endpoint_override": f"127.0.0.1:{own}",
        }  # fmt: skip

    with _running(line, port), opened(port, "google") as gateway:
        files = pafs.GcsFileSystem(**(reached(port) | {"anonymous": True}), project_id="tests")
        files.create_dir(BUCKET)
        yield Cloud(f"gs://{BUCKET}", reached(gateway.port), files, gateway)


CLOUDS: dict[str, tuple[str, Callable[[Path], AbstractContextManager[Cloud]]]] = {
    "azure": ("azurite-blob", azure),
    "google": ("fake-gcs-server", google),
}
"""By name, the program and what starts it."""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as own:
        port: int = own.getsockname()[1]
    return port


@contextmanager
def _running(line: list[str], port: int) -> Iterator[None]:
    with subprocess.Popen(  # noqa: S603 - a program that a test needs
        line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _wait(server, port)
            yield
        finally:
            server.terminate()


def _wait(server: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + MOST_SECONDS
    while server.poll() is None and time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"{server.args} does not answer on port {port}")
