"""What lies in storage: the files that a URI means, and those of outputs by their manifest."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.fs as pafs

from engine.runtime.errors import InputError
from engine.runtime.storage.reading import (
    bytes_at,
    each,
    located,
    parquet_file,
    refusal,
    state_or_none,
)
from engine.runtime.storage.uris import Place, Uri

if TYPE_CHECKING:
    import pyarrow.dataset as ds

MANIFEST = "_manifest.json"
"""In a folder of outputs: what belongs to them (docs/storage.md)."""
RUN = re.compile(r"run-[0-9a-f]{32}")
"""Folder of what one run has written."""
_TABLES = (
    ("_delta_log", "Delta Lake", "deltalake.DeltaTable, or spark.read.format('delta')"),
    (".hoodie", "Hudi", "spark.read.format('hudi')"),
    ("metadata/*.metadata.json", "Iceberg", "pyiceberg's scan().to_arrow(), or spark.table"),
)
"""What lies in the folder of a table, the format, and what reads it."""
_MAGIC = re.compile(r"[*?\[]")


def members(folder: Uri) -> dict[str, Uri] | None:
    """Return the files of outputs by their names, as their manifest has them.

    None where there is no manifest.

    Raises
    ------
    InputError
        If a file is not what the manifest says.
    """
    content = bytes_at(folder / MANIFEST)
    if content is None:
        return None
    files = json.loads(content)["files"]
    places = [folder / own["object"] for own in files]
    for own, place, state in zip(files, places, each(state_or_none, places), strict=True):
        if state is None or (state.size, state.changed) != (own["bytes"], own["etag"]):
            raise InputError(
                f"{place} is not what {folder / MANIFEST} says: it was removed or replaced since; "
                "run again what wrote it"
            )
    return {own["path"]: place for own, place in zip(files, places, strict=True)}


def files_of(outputs: Place) -> dict[str, str]:
    """Return the files of outputs, on a disk or as their manifest has them, by their names."""
    if isinstance(outputs, Uri):
        return dict(members(outputs) or {})
    files = (own for own in sorted(outputs.rglob("*")) if own.is_file())
    return {own.relative_to(outputs).as_posix(): str(own) for own in files}


def rejected_of(outputs: Place) -> dict[str, pa.Table]:
    """Return the rows that were set aside beside outputs, by stream."""
    return {
        Path(name).stem: parquet_file(file).read()
        for name, file in files_of(outputs).items()
        if Path(name).match("_rejected/*.parquet")
    }


def files_at(uri: Uri) -> list[Uri]:
    """Return the files that a URI means, sorted: itself, those below it, or those of a pattern.

    Names that start with ``.`` or ``_`` are skipped, below what is named.

    Raises
    ------
    InputError
        If there is nothing, or the store refuses.
    """
    try:
        return _found(uri)
    except (pa.ArrowException, OSError) as error:
        raise InputError(refusal(uri, error)) from None


def _found(uri: Uri) -> list[Uri]:
    magic = _MAGIC.search(uri.below)
    if magic is None:
        system, path = located(uri)
        if system.get_file_info(path).type == pafs.FileType.File:
            return [uri]
        return _of_folder(uri)
    fixed = uri.below[: magic.start()].rpartition("/")[0]
    root = Uri(f"{uri.partition('://')[0]}://{uri.authority}/{fixed}".rstrip("/"), uri.options)
    found = [own for _, own in _visible(root, uri.below[len(fixed) :].strip("/"))]
    if any(RUN.fullmatch(part) for own in found for part in own.split("/")):
        raise InputError(f"{uri} meets outputs of winnow in part: give their folder, whole")
    if not found:
        raise InputError(f"no file matches {uri}: check the pattern, and quote it for the shell")
    return found


def _of_folder(folder: Uri) -> list[Uri]:
    """Return the files of a folder: those of its manifest, if it has one."""
    known = members(folder)
    if known is not None:
        return [known[name] for name in sorted(known) if not _hidden(name)]
    found = list(_visible(folder, ""))
    if any(RUN.match(below) for below, _ in found):
        raise InputError(
            f"{folder} holds parts of outputs and no {MANIFEST}: the run that wrote them was "
            "killed or still goes on; wait for it, or run it again"
        )
    if not found:
        raise FileNotFoundError
    return [own for _, own in found]


def check_whole(folder: str, names: Iterable[str]) -> None:
    """Raise `InputError` if the names in a folder say that not all its files are its rows."""
    found = set(names)
    for name, what, reader in _TABLES:
        if name in found:
            raise InputError(
                f"folder {folder} is a table of {what}, and some of its files may hold rows that "
                f"it has no longer: read it as a frame ({reader}), and give that to winnow.replay"
            )


def check_outside(folder: Path) -> None:
    """Raise `InputError` if a folder on a disk is that of a table, or lies in one."""
    for own in (folder.absolute(), *folder.absolute().parents):
        found = [name for name, *_ in _TABLES if next(own.glob(name), None) is not None]
        check_whole(str(own), found)


def _hidden(below: str) -> bool:
    return any(part.startswith((".", "_")) for part in below.split("/"))


def _visible(folder: Uri, pattern: str) -> Iterator[tuple[str, Uri]]:
    """Yield the files below a folder that match a pattern or lie below what does, by name."""
    wanted = re.compile(f"{_translated(pattern)}(/.*)?") if pattern else None
    system, path = located(folder)
    selector = pafs.FileSelector(path, recursive=True, allow_not_found=True)
    there = sorted(system.get_file_info(selector), key=lambda own: str(own.path))
    if not pattern:
        check_whole(folder, (info.path[len(path) :].strip("/").split("/")[0] for info in there))
    for info in there:
        below = info.path[len(path) :].strip("/")
        meant = wanted is None or wanted.fullmatch(below)
        if info.type == pafs.FileType.File and meant and not _hidden(below):
            yield below, folder / below


def _translated(pattern: str) -> str:
    """Return a glob as a regular expression: ``**/`` is any folders, ``*`` is within one name."""
    words = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]]+\])", pattern)
    return "".join(words.get(p, p if p.startswith("[") else re.escape(p)) for p in parts)


def dataset(path: Path | Uri) -> ds.Dataset:
    """Return the Parquet file or folder at a place.

    Raises
    ------
    InputError, OSError
        If there is none.
    """
    import pyarrow.dataset as ds  # noqa: PLC0415 - it loads pandas, where that is installed

    if not isinstance(path, Uri):
        return ds.dataset(path, format="parquet")
    files = [located(own)[1] for own in files_at(path)]
    return ds.dataset(files, format="parquet", filesystem=located(path)[0])
