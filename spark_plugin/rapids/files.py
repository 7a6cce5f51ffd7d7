"""Files for Spark: the jar, its Ivy settings, and the discovery script."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import uuid
from importlib import resources
from pathlib import Path

from engine.runtime.errors import DeviceError
from spark_plugin.configured import java
from spark_plugin.rapids.options import MODULE, VERSION

_IVY = """<ivysettings>
  <!-- {module} for {classifier}; its POM is not read, for it names a parent that is not published.
       Everything else as usual. -->
  <settings defaultResolver="central"/>
  <resolvers>
    <ibiblio name="central" m2compatible="true"/>
    <ibiblio name="rapids" m2compatible="true" usepoms="false"
      pattern="[organisation]/[module]/[revision]/[artifact]-[revision]-{classifier}.[ext]"/>
  </resolvers>
  <modules>
    <module organisation="com.nvidia" name="{module}" resolver="rapids"/>
  </modules>
</ivysettings>
"""
_SECONDS = 1800


def ivy_settings(classifier: str) -> Path:
    """Return a file for ``spark.jars.ivySettings``, written if need be.

    Spark's coordinates have no classifier, and Ivy rejects a POM whose parent it cannot find:
    without this file ``spark.jars.packages`` finds the build for another CUDA, or none.

    Raises
    ------
    DeviceError
        If winnow's cache cannot be written.
    """
    text = _IVY.format(module=MODULE, classifier=classifier)
    place = _home() / f"ivysettings-{classifier}.xml"
    return _cached(place, text, 0o644)


def discovery_script() -> Path:
    """Return Spark's discovery script as an executable file: the package's, or a copy.

    Raises
    ------
    DeviceError
        If winnow's cache cannot be written.
    """
    packaged = resources.files("spark_plugin.rapids") / "discover_gpus.sh"
    if isinstance(packaged, Path) and os.access(packaged, os.X_OK):
        return packaged
    text = packaged.read_text(encoding="utf-8")
    return _cached(_home() / "discover_gpus.sh", text, 0o755)


def _home() -> Path:
    from engine.runtime.cache_folders import cache_home  # noqa: PLC0415 - with numba, and winnow is light

    return cache_home() / "rapids"


def _cached(place: Path, text: str, mode: int) -> Path:
    """Return a file of winnow's cache with this content."""
    try:
        if not (place.exists() and place.read_text(encoding="utf-8") == text):
            place.parent.mkdir(parents=True, exist_ok=True)
            draft = place.with_name(f".{place.name}.{uuid.uuid4().hex}")
            draft.write_text(text, encoding="utf-8")
            draft.chmod(mode)
            draft.replace(place)
    except OSError as error:
        raise DeviceError(
            f"{place} cannot be written: {error}: set WINNOW_CACHE to a folder that can be written"
        ) from error
    return place


def jar_place(classifier: str) -> Path:
    """Return where `fetched_jar` stores the jar, and looks for one put there by hand."""
    return _home() / f"{MODULE}-{VERSION}-{classifier}.jar"


def fetched_jar(classifier: str) -> Path:
    """Return the jar of the RAPIDS Accelerator, fetched once by the Ivy that comes with Spark.

    Raises
    ------
    DeviceError
        If it is not there and cannot be downloaded.
    """
    place = jar_place(classifier)
    if place.exists():
        return place
    settings = ivy_settings(classifier)
    draft = place.parent / f".ivy-{uuid.uuid4().hex}"
    try:
        _resolve(settings, draft, place)
        found = next(draft.rglob(f"{MODULE}-*.jar"), None)
        if found is None:
            raise _missing(place, "Ivy kept no jar")
        found.replace(place)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return place


def _resolve(settings: Path, cache: Path, place: Path) -> None:
    """Have Ivy fetch the jar into a cache of its own; it compares the checksum."""
    command = [java() or "java", "-cp", str(_ivy_jar()), "org.apache.ivy.Main"]
    command += ["-settings", str(settings), "-cache", str(cache)]
    command += ["-dependency", "com.nvidia", MODULE, VERSION]
    try:
        done = subprocess.run(  # noqa: S603 - Spark's own Ivy
            command, capture_output=True, text=True, check=False, timeout=_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _missing(place, str(error)) from error
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
        errors = [line for line in lines if "rror" in line or "not found" in line]
        raise _missing(place, (errors or lines or ["it says nothing"])[0])


def _missing(place: Path, reason: str) -> DeviceError:
    return DeviceError(
        f"the jar com.nvidia:{MODULE}:{VERSION} cannot be fetched ({reason}): put it at "
        f"{place} by hand"
    )


def _ivy_jar() -> Path:
    """Return the Ivy of the Spark that is installed."""
    homes = [Path(home) for home in (os.environ.get("SPARK_HOME"),) if home]
    spec = importlib.util.find_spec("pyspark")
    homes += [Path(origin) for origin in (spec.submodule_search_locations or ())] if spec else []
    for home in homes:
        if found := sorted((home / "jars").glob("ivy-*.jar")):
            return found[0]
    raise DeviceError("no Spark was found, whose Ivy fetches jars: pip install pyspark")
