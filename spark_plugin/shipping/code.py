"""The code of winnow as one zip, and the script that starts it."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path

from engine.runtime.errors import OutputError, SpecError
from engine.runtime.storage.disk import full_disk_reported, whole_file

PACKAGES = ("engine", "gpu_kernels", "spark_plugin", "pyspark_winnow", "winnow")
"""What an application imports."""
WINNOW = "winnowjoin"
"""The distribution, by whose metadata reports know winnow's version."""
_SUBMIT = "submit.py"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # of every file: the same code gives the same archive
_LEFT_OUT = ("__pycache__", "kernels")  # compiled ones are read from folders alone


def check_place(path: Path, ending: str, option: str) -> Path:
    """Return the place of an archive.

    Raises
    ------
    SpecError
        If its name does not end as Spark requires.
    OutputError
        If it exists, or its folder does not.
    """
    if not path.name.endswith(ending) or path.name == ending:
        raise SpecError(f"{option} {path} must end in {ending}: Spark goes by the name")
    if path.exists():
        raise OutputError(f"{path} exists: remove it or give another {option}")
    if not path.parent.is_dir():
        raise OutputError(f"{option} {path} is in no folder that exists: create {path.parent}")
    return path


@contextmanager
def archive_at(path: Path) -> Iterator[Path]:
    """Yield where to write an archive that will appear at `path` completely or not at all.

    Raises
    ------
    OutputError
        If it cannot be written.
    """
    try:
        with (
            whole_file(path, path.parent) as own,
            full_disk_reported("archive", path, "give a place on another disk"),
        ):
            yield own
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"archive {path} cannot be written: {error}") from error


def code_places(path: Path) -> tuple[Path, Path]:
    """Return the places of a zip and of the script ``<name>-submit.py`` beside it.

    Raises
    ------
    SpecError, OutputError
        As `check_place`.
    """
    code = check_place(path, ".zip", "--out")
    return code, check_place(path.with_name(f"{path.stem}-{_SUBMIT}"), ".py", "--out")


def write_code(path: Path, launcher: Path) -> None:
    """Write the packages as a zip for ``--py-files``, and the script for ``spark-submit``.

    Raises
    ------
    OutputError
        If they cannot be written; then there is neither.
    """
    with archive_at(path) as own, zipfile.ZipFile(own, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for name, file in sorted(_files(resources.files(package), package)):
                _add(archive, name, file.read_bytes())
        for name, text in _metadata():
            _add(archive, name, text.encode())
        with archive_at(launcher) as script:
            script.write_bytes(resources.files("spark_plugin").joinpath(_SUBMIT).read_bytes())


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = 0o644 << 16
    archive.writestr(info, content)


def _metadata() -> Iterator[tuple[str, str]]:
    """Yield the distribution's metadata, where `importlib.metadata` looks for it in a zip."""
    try:
        own = metadata.distribution(WINNOW)
    except metadata.PackageNotFoundError:  # run from its source: there is none
        return
    text = own.read_text("METADATA") or own.read_text("PKG-INFO")
    if text:
        yield f"{WINNOW}-{own.version}.dist-info/METADATA", text


def _files(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if entry.is_dir():
            if entry.name not in _LEFT_OUT:
                yield from _files(entry, path)
        elif not path.endswith(".pyc"):
            yield path, entry
