"""The packages that winnow needs as one archive, usable wherever it is unpacked."""

from __future__ import annotations

import gzip
import io
import sys
import tarfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from engine.runtime.errors import SpecError
from spark_plugin.shipping.code import WINNOW, archive_at

LEFT_OUT = ("pyspark", "py4j")
"""Spark brings these to its workers itself."""
_FOLDERS_LEFT_OUT = {"tests", "__pycache__"}
_COMPRESSION = 3  # a third of the time of 6, and 4 % more bytes
_PYTHON = """#!/bin/sh
# Python {version} of this machine, with the packages of this archive. WINNOW_PYTHON names another.
home=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd) || exit 1
python=${{WINNOW_PYTHON:-python{version}}}
command -v "$python" > /dev/null || {{
    echo "$python is not on this machine: install Python {version}, or set WINNOW_PYTHON" >&2
    exit 127
}}
PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}$home/lib"
export PYTHONPATH
[ ! -d "$home/kernels" ] || export WINNOW_KERNELS="${{WINNOW_KERNELS:-$home/kernels}}"
exec "$python" "$@"
"""


def packed(extras: Sequence[str] = ()) -> list[metadata.Distribution]:
    """Return the packages that winnow needs, as installed here, and those that they need.

    Parameters
    ----------
    extras : sequence of str
        Extras of winnow whose packages count as well.

    Raises
    ------
    SpecError
        If there is no such extra, or a package is not installed, or not from its own files.
    """
    winnow = _installed(WINNOW, "winnow")
    known = winnow.metadata.get_all("Provides-Extra") or []
    for extra in extras:
        if extra not in known:
            raise SpecError(f"--extra is {extra!r}; choose of {', '.join(sorted(known))}")
    found: dict[str, metadata.Distribution] = {}
    waiting = [(winnow, frozenset(extras))]
    seen = set()
    while waiting:
        own, wanted = waiting.pop()
        for need in _needs(own, wanted):
            name = canonicalize_name(need.name)
            key = name, frozenset(need.extras)
            if name in LEFT_OUT or key in seen:
                continue
            seen.add(key)
            found[name] = _installed(name, own.name)
            waiting.append((found[name], key[1]))
    return [found[name] for name in sorted(found)]


def _needs(own: metadata.Distribution, extras: frozenset[str]) -> Iterator[Requirement]:
    for text in own.requires or []:
        need = Requirement(text)
        environments = [{"extra": extra} for extra in (*extras, "")]
        if need.marker is None or any(map(need.marker.evaluate, environments)):
            yield need


def _installed(name: str, by: str) -> metadata.Distribution:
    try:
        return metadata.distribution(name)
    except metadata.PackageNotFoundError as error:
        raise SpecError(
            f"package {name}, which {by} needs, is not installed here: install it with pip"
        ) from error


def write_environment(
    path: Path, packages: Sequence[metadata.Distribution], kernels: Path | None = None
) -> Path:
    """Write packages as an archive for ``--archives``; ``bin/python`` in it runs with them.

    Parameters
    ----------
    path : Path
        ``.tar.gz``.
    packages : sequence of importlib.metadata.Distribution
    kernels : Path or None
        A folder of compiled kernels for any processor.

    Raises
    ------
    OutputError
        If it cannot be written.
    SpecError
        If the files of a package are not known.
    """
    files = {f"lib/{name}": file for own in packages for name, file in files_of(own)}
    if kernels is not None:
        compiled = (file for file in kernels.rglob("*") if file.is_file())
        files |= {f"kernels/{file.relative_to(kernels)}": file for file in compiled}
    with (
        archive_at(path) as own,
        own.open("wb") as raw,
        gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as packer,
        tarfile.open(fileobj=packer, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        _add(archive, "bin/python", python_script().encode(), 0o755)
        for name in sorted(files):
            executable = bool(files[name].stat().st_mode & 0o100)
            content = files[name].read_bytes()
            _add(archive, name, content, 0o755 if executable else 0o644)
    return path


def python_script() -> str:
    """Return ``bin/python``: this version of Python as the machine has it, and the packages."""
    return _PYTHON.format(version=f"{sys.version_info.major}.{sys.version_info.minor}")


def files_of(package: metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """Yield the importable files of a package and their names, without its tests.

    Raises
    ------
    SpecError
        If they are unknown or lie elsewhere.
    """
    listed = package.files
    if listed is None or (package.read_text("direct_url.json") or "").find('"editable": true') >= 0:
        raise SpecError(
            f"the files of package {package.name} are not where packages are: install it with pip, "
            "and not with --editable"
        )
    for file in listed:
        place = PurePosixPath(file)
        beside = ".." in place.parts or place.is_absolute()  # scripts, manual pages
        if beside or place.suffix == ".pyc" or _FOLDERS_LEFT_OUT & set(place.parts):
            continue
        source = Path(str(package.locate_file(file)))
        if source.is_file():
            yield str(place), source


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    archive.addfile(info, io.BytesIO(content))
