"""A server of Spark Connect from the installed package, in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyspark
from places import PYTHONPATH

_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
_CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}
_LIMIT = 120
"""Seconds in which it starts."""


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """Start a server on loopback, with its log in `folder`; yield its address, and end it.

    Its workers run this Python and import this tree.
    """
    home = Path(pyspark.__file__).parent
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    conf = _CONF | {"spark.connect.grpc.binding.port": str(port)}
    options = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")
    } | {"SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": PYTHONPATH}
    log = folder / "connect.log"
    with (
        log.open("wb") as out,
        subprocess.Popen(  # noqa: S603 - Spark's own launcher
            [home / "bin" / "spark-submit", "--class", _SERVER, *options, "spark-internal"],
            env=environment, stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=folder,
        ) as process,
    ):  # fmt: skip
        try:
            _wait(port, process, log)
            yield f"sc://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _LIMIT
    while process.poll() is None and time.monotonic() < until:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise RuntimeError(f"Spark Connect does not start: {log.read_text(errors='replace')[-2000:]}")
