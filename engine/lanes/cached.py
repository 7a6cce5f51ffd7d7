"""The cache of prepared lanes: what lies in it, and what may go.

Lanes that nobody used for long go by themselves as others are prepared in the default cache. A use
sets the time of their folder; lanes used lately stay, so no process loses those that it reads.
"""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from engine.lanes.manifest import LANE, MANIFEST
from engine.runtime.storage.disk import remove_folder, remove_leftovers

MOST_BYTES = 50_000_000_000
"""Of lanes in the default cache that stay although they have not been used lately."""
UNUSED_SECONDS = 30 * 86_400
"""After which lanes in the default cache go."""
LATELY_SECONDS = 86_400
"""Since their last use lanes do not go by themselves."""
_LANES = re.compile("[0-9a-f]{32}")
_UNFINISHED = re.compile(r"\.[0-9a-f]{32}\.([0-9a-f]{32}\.tmp|gone)")


class CachedFolder(NamedTuple):
    """Something that is kept between runs."""

    folder: Path
    size: int
    """Bytes of its files."""
    used: float
    """When it was used last, in seconds of the epoch."""


def note_use(folder: Path) -> None:
    """Note that lanes are used now."""
    with suppress(OSError):  # another user's, or only to be read
        os.utime(folder)


def cached_lanes(cache: Path) -> list[CachedFolder]:
    """Return the lanes in a cache, damaged ones too, those used last first."""
    found: list[CachedFolder] = []
    with suppress(OSError):
        named = [own for own in cache.iterdir() if _LANES.fullmatch(own.name)]
        found += map(measured, filter(_has_lanes, named))
    return sorted(found, key=lambda own: own.used, reverse=True)


def unfinished(cache: Path) -> list[CachedFolder]:
    """Return what jobs have not finished in a cache: those that run, or that were killed."""
    with suppress(OSError):
        return [measured(own) for own in cache.iterdir() if _UNFINISHED.fullmatch(own.name)]
    return []


def is_lanes(folder: Path) -> bool:
    """Return whether a folder is what a cache holds, and no cache."""
    return bool(_LANES.fullmatch(folder.name)) and (folder / MANIFEST).is_file()


def _has_lanes(folder: Path) -> bool:
    """Return whether winnow made a folder: others name theirs by 32 digits, too."""
    with suppress(OSError):
        names = [own.name for own in folder.iterdir()]
        return not names or any(own == MANIFEST or LANE.fullmatch(own) for own in names)
    return False


def measured(folder: Path) -> CachedFolder:
    """Return the size of a folder; files that go meanwhile do not count."""
    size, used = 0, 0.0
    with suppress(OSError):
        used = folder.stat().st_mtime
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += (Path(place) / name).stat().st_size
    return CachedFolder(folder, size, used)


def beyond(kept: list[CachedFolder], most_bytes: int) -> list[CachedFolder]:
    """Return what does not fit into so many bytes, where that used last comes first."""
    left, gone = most_bytes, []
    for own in kept:
        if own.size <= left and left > 0:
            left -= own.size
        else:
            gone.append(own)
    return gone


def tidy(cache: Path, *, now: float | None = None) -> None:
    """Remove lanes of the default cache that were not used for long, or are too many."""
    now = time.time() if now is None else now
    lanes = cached_lanes(cache)
    old = [own for own in lanes if now - own.used > UNUSED_SECONDS]
    for own in {*old, *beyond(lanes, MOST_BYTES)}:
        if now - own.used > LATELY_SECONDS:
            remove_folder(own.folder)
    remove_leftovers(cache)
