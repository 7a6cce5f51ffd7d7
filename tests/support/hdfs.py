"""HDFS on loopback: Hadoop's mini cluster, and the libhdfs by which pyarrow reaches it.

Run as a script, as `make clouds` does, it gets both: jars by Maven, and the source of libhdfs from
the crate hdfs-sys, which it compiles. Hadoop's client itself is in pyspark.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from quick_java import OPTIONS

HOME = Path(sys.prefix) / "hdfs"
LIBRARY = HOME / "libhdfs.so"
_HADOOP, _JUNIT = "3.5.0", "5.12.2"
_JARS = (
    f"org.apache.hadoop:hadoop-client-minicluster:{_HADOOP}",
    f"org.junit.jupiter:junit-jupiter-api:{_JUNIT}",
    "org.mockito:mockito-core:4.11.0",
)
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_CRATE = """[package]
name = "get"
version = "0.1.0"
[lib]
path = "lib.rs"
[dependencies]
hdfs-sys = { version = "0.3", features = ["vendored"] }
"""
MOST_SECONDS = 300.0


def classes() -> str:
    """Return the class path of a client."""
    import pyspark  # noqa: PLC0415 - tests without HDFS need none

    jars = Path(pyspark.__file__).parent / "jars"
    return ":".join(map(str, sorted(jars.glob("*.jar"))))


def variables() -> dict[str, str]:
    """Return the environment of a process that reads HDFS."""
    own = {"CLASSPATH": classes(), "ARROW_LIBHDFS_DIR": str(HOME), "JAVA_HOME": str(java_home())}
    return os.environ | own


def java_home() -> Path:
    """Return where the Java of the PATH lies."""
    return Path(shutil.which("java") or "java").resolve().parents[1]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Yield the URI of a mini cluster of one data node, with its files in a folder."""
    told = folder / "details.json"
    line = [
        "java", *OPTIONS.split(), "-Xmx400m", "-cp", f"{HOME}/jars/*:{classes()}",
        "org.apache.hadoop.test.MiniDFSClusterManager",
        "-format", "-datanodes", "1", "-writeDetails", str(told),
    ]  # fmt: skip
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(line, cwd=folder, stdout=log, stderr=log) as server,  # noqa: S603 - Hadoop's
    ):
        try:
            end = time.monotonic() + MOST_SECONDS
            while not told.exists():
                if server.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"HDFS has not started: {(folder / 'log').read_text()}")
                time.sleep(0.1)
            time.sleep(0.1)
            yield f"hdfs://127.0.0.1:{json.loads(told.read_text())['namenode_port']}"
        finally:
            server.terminate()


def main() -> None:
    """Get what is missing, where the tools are there."""
    if LIBRARY.exists() or not all(map(shutil.which, ("java", "mvn", "cargo", "cc"))):
        return
    java = java_home()
    draft = HOME.with_name("hdfs.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir()
    for jar in _JARS:
        _run("mvn", "-q", "-B", _COPY, f"-Dartifact={jar}", f"-DoutputDirectory={draft}/jars")
    (draft / "Cargo.toml").write_text(_CRATE)
    (draft / "lib.rs").touch()
    _run("cargo", "vendor", "-q", "crates", folder=draft)
    source = draft / "crates" / "hdfs-sys" / "libhdfs" / "hdfs_3_3"
    files = [*source.glob("*.c"), *source.glob("os/posix/*.c")]
    folders = [source, source / "include", source / "os", source / "os" / "posix", source.parent]
    folders += [java / "include", java / "include" / "linux"]
    server = java / "lib" / "server"
    _run(
        "cc", "-O1", "-w", "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", str(draft / LIBRARY.name),
        *(f"-I{one}" for one in folders), *map(str, files),
        f"-L{server}", "-ljvm", f"-Wl,-rpath,{server}", "-lpthread",
    )  # fmt: skip
    draft.rename(HOME)


def _run(*line: str, folder: Path | None = None) -> None:
    subprocess.run(line, check=True, cwd=folder, stdout=subprocess.DEVNULL)  # noqa: S603 - as named


if __name__ == "__main__":
    main()
