"""Whether the files that a command writes are apart: from one another, and from what it reads."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from engine.archives.finding import paths_at
from engine.runtime.errors import SpecError
from engine.runtime.storage.places import is_stream
from engine.runtime.storage.uris import Place, Uri, between

_Identity: TypeAlias = tuple[int, int] | str


def check_apart(
    written: Mapping[str, Place], read: Iterable[str | Place], *, archives: bool = True
) -> None:
    """Refuse files that would replace one another or one that is read, or be read the next time.

    Parameters
    ----------
    written : mapping
        Files, by the options that name them.
    read : iterable of str or Place
        Files, folders and globs.
    archives : bool
        Whether folders that are read are archives, of which every file counts.

    Raises
    ------
    SpecError
        If so.
    """
    read = [*read]
    seen: dict[_Identity, str] = {}
    for option, place in written.items():
        if not isinstance(place, Uri) and is_stream(place):
            continue
        other = seen.setdefault(_identity(place), option)
        if other != option:
            raise SpecError(f"{other} and {option} are both {place}: name two files")
    replaced = [own for own in written.values() if isinstance(own, Uri) or own.is_file()]
    there = [isinstance(own, Uri) for own in replaced]
    for own in read:
        if isinstance(own, Uri) not in there:
            continue  # so nothing in storage is looked at in vain
        for path in paths_at(own if isinstance(own, Uri) else os.fspath(own)):
            found = seen.get(_identity(path))
            if found is not None:
                raise SpecError(f"{found} {path} is a file that is read: name another")
    for own in read if archives else ():
        for option, place in written.items():
            if _is_below(place, own):
                raise SpecError(
                    f"{option} {place} lies in {own}, which is read, and would be read with it the "
                    "next time: name a place outside"
                )


def _is_below(place: Place, folder: str | Place) -> bool:
    """Tell whether a place lies in a folder, under names that are not skipped there."""
    if not isinstance(folder, Uri):
        folder = Path(folder)
        if not folder.is_dir():
            return False
    names = between(place, folder)
    return bool(names) and not any(name.startswith((".", "_")) for name in names or ())


def _identity(place: str | Place) -> _Identity:
    """Return what two names of one file have in common."""
    if isinstance(place, Uri):
        return str(place)
    try:
        found = Path(place).stat()
    except OSError:
        return os.path.realpath(place)
    return found.st_dev, found.st_ino
