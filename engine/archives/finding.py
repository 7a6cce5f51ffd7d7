"""The files of one stream: those that a file's own name, a folder or a glob means.

Links are followed. No file is read twice because a link of a folder leads to it again, and nothing
is left out without a word: what cannot be looked at, and what is no file, is refused by its name.
"""

from __future__ import annotations

import errno
import fnmatch
import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from engine.runtime.errors import InputError, closest, did_you_mean
from engine.runtime.storage import reading
from engine.runtime.storage.listing import check_outside, files_at
from engine.runtime.storage.uris import Uri, checked_text, source_of

ENDINGS = ".parquet, .csv, .tsv, .jsonl, .arrow or .feather (or be text as .gz, .bz2, .zst or .lz4)"
_HIDDEN = ".", "_"
_ABSENT = {errno.ENOENT, errno.ENOTDIR}
_SPECIAL = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def paths_at(place: str) -> list[str]:
    """Return the files of an archive, none where it is not there: whoever opens it tells."""
    with suppress(InputError, OSError, pa.ArrowException):
        return paths_of(source_of(place), "an")
    return []


def stored_bytes(places: Iterable[str]) -> int:
    """Return what the files of archives have in storage, as far as these are there."""
    total = 0
    for place in places:
        with suppress(InputError, OSError, pa.ArrowException):  # told by whoever opens it
            total += sum(reading.sizes_of(paths_at(place)))
    return total


def paths_of(where: str, side: str) -> list[str]:
    """Return the absolute paths of the files that a path, glob or URI means, sorted.

    Raises
    ------
    InputError
        If there is none, or something there cannot be looked at or is neither file nor folder.
    """
    try:
        return list(files_at(where)) if isinstance(where, Uri) else _on_disk(where)
    except InputError as error:
        raise InputError(f"the {side} archive: {error}") from None


def _on_disk(where: str) -> list[str]:
    place = Path(where)
    mode = _mode(place)
    if mode is not None:
        if stat.S_ISDIR(mode):
            fixed, entries = place, _entries(place)
            check_outside(place)
            found = [*_inside(entries, (os.path.realpath(place),))]
        else:
            fixed, found = place.parent, [*_below(place, mode)]
        if not found:
            raise InputError(
                f"folder {where} holds no data file: put files there that end in {ENDINGS} (names "
                "that start with . or _ are skipped)"
            )
    else:
        parts = place.parts
        magic = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts))
        fixed, wanted = Path(*parts[:magic]), parts[magic:]
        hits = [hit for hit in _matches(fixed, wanted) if not hit.name.startswith(_HIDDEN)]
        found = [path for hit in hits for path in _below(hit, _mode(hit))]
        if not found:
            raise InputError(_nothing(where, place))
    return _once(fixed.absolute(), (path.absolute() for path in found))


def _mode(path: Path) -> int | None:
    """Return what is at a path, whatever links lead there; None where nothing has its name.

    Raises
    ------
    InputError
        If that cannot be told, or it is a link that leads nowhere.
    """
    try:
        return path.stat().st_mode
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InputError(f"{path} is a link in a loop of links: remove it") from None
        if error.errno not in _ABSENT:
            raise _refusal(path, error) from None
    if path.is_symlink():
        raise InputError(
            f"{path} is a link to {path.readlink()}, which is not there: put that back, or remove "
            "the link"
        )
    return None


def _refusal(path: Path, error: OSError) -> InputError:
    """Return the error of a file or folder that cannot be looked at."""
    if not isinstance(error, PermissionError):
        return InputError(f"{path} cannot be read ({error.strerror}): give another")
    by = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    closed = (own for own in reversed(path.parents) if not os.access(own, os.X_OK, **by))
    return InputError(
        f"folder {next(closed, path)} may not be read: allow it with chmod u+rx, or give a glob "
        "without it"
    )


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """Return what is in a folder; nothing if it is none."""
    try:
        with os.scandir(folder) as found:
            return sorted(found, key=lambda own: own.name)
    except OSError as error:
        if error.errno in _ABSENT:
            return []
        raise _refusal(folder, error) from None


def _below(path: Path, mode: int | None, above: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield the files that something stands for: itself, or what lies below it to any depth.

    `above` are the folders that it lies in, without links: one that leads back there is left out.
    """
    if mode is None:
        return  # removed since it was listed
    if stat.S_ISREG(mode):
        yield path
    elif not stat.S_ISDIR(mode):
        what = _SPECIAL.get(stat.S_IFMT(mode), "something else")
        raise InputError(f"{path} is {what} and no file: give a file, or take it away")
    elif (own := os.path.realpath(path)) not in above:
        yield from _inside(_entries(path), (*above, own))


def _inside(entries: Iterable[os.DirEntry[str]], above: tuple[str, ...]) -> Iterator[Path]:
    """Yield the files of a folder, which is the last of `above`, to any depth."""
    for entry in entries:
        if not entry.name.startswith(_HIDDEN):
            yield from _below(Path(entry.path), _mode_of(entry), above)


def _mode_of(entry: os.DirEntry[str]) -> int | None:
    """Return what an entry of a folder is as `_mode` does, of files and folders without asking."""
    if entry.is_file(follow_symlinks=False):
        return stat.S_IFREG
    return stat.S_IFDIR if entry.is_dir(follow_symlinks=False) else _mode(Path(entry.path))


def _matches(folder: Path, parts: Sequence[str], above: tuple[str, ...] = ()) -> Iterator[Path]:
    """Yield what the rest of a pattern matches in a folder; ``**`` is folders to any depth."""
    if not parts:
        yield folder
        return
    part, rest = parts[0], parts[1:]
    if not glob.has_magic(part):
        if rest or os.path.lexists(folder / part):
            yield from _matches(folder / part, rest)
        return
    deep = part == "**"
    if deep:
        own = os.path.realpath(folder)
        if own in above:
            return
        above = (*above, own)
        yield from _matches(folder, rest)
        if not rest:
            return  # all below is of the folder itself
    wanted = re.compile(fnmatch.translate("*" if deep else part))
    for entry in _entries(folder):
        hidden = entry.name.startswith(_HIDDEN) and not part.startswith(_HIDDEN)
        if hidden or not wanted.match(entry.name):
            continue
        if not rest:
            yield Path(entry.path)
        elif _is_folder(entry):
            yield from _matches(Path(entry.path), parts if deep else rest, above if deep else ())


def _is_folder(entry: os.DirEntry[str]) -> bool:
    """Return whether a pattern goes on there; a link that leads nowhere is no folder."""
    try:
        return entry.is_dir()
    except OSError as error:
        if error.errno in (*_ABSENT, errno.ELOOP):
            return False
        raise _refusal(Path(entry.path), error) from None


def _once(fixed: Path, paths: Iterable[Path]) -> list[str]:
    """Return files, sorted, without those to which links of folders below `fixed` lead again.

    Raises
    ------
    InputError
        If a name is not in UTF-8, which Arrow does not open.
    """
    found = sorted({str(path): path.parent for path in paths}.items())
    real = Path(os.path.realpath(fixed))
    linked = {
        folder
        for folder in {folder for _, folder in found}
        if os.path.realpath(folder) != os.path.normpath(real / folder.relative_to(fixed))
    }
    seen = {os.path.realpath(path) for path, folder in found if linked and folder not in linked}
    kept = []
    for path, folder in found:
        own = os.path.realpath(path) if folder in linked else path
        if folder not in linked or own not in seen:
            kept.append(checked_text(path, InputError))
            seen.add(own)
    return kept


def _nothing(where: str, place: Path) -> str:
    if glob.has_magic(where):
        return f"no file matches {where}: check the pattern, and quote it against the shell"
    if not place.parent.is_dir():
        return f"nothing is at {where}: folder {place.parent} does not exist"
    names = [own.name for own in _siblings(place.parent) if closest(place.stem, [own.stem])]
    return f"nothing is at {where}: check the path.{did_you_mean(place.name, names)}"


def _siblings(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []
