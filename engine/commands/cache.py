"""``winnow cache``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, TypedDict

from rich.console import Console

from engine.commands.asked import Asked
from engine.lanes.cached import CachedFolder, beyond, cached_lanes, measured, unfinished
from engine.options import where
from engine.options.budget import parse_bytes
from engine.options.command import Command, Group
from engine.options.kinds import Text
from engine.options.meanings import MEANINGS
from engine.options.option import Option
from engine.report.tables import table_of
from engine.runtime.cache_folders import KERNELS, LANES, cache_home
from engine.runtime.errors import OutputError, SpecError
from engine.runtime.storage.disk import remove_folder, remove_leftovers
from engine.runtime.storage.uris import Uri

LIST, CLEAN = "list", "clean"


class What(TypedDict, total=False):
    """What is done."""

    action: Annotated[
        str,
        Option(
            "list shows what is kept, clean removes it",
            Text("{list,clean}"),
            LIST,
            positional=True,
            choices=(LIST, CLEAN),
        ),
    ]
    keep: Annotated[
        str,
        Option("bytes that clean keeps, of what was used last, such as 10GB", default="0B"),
    ]


COMMAND = Command(
    "cache",
    MEANINGS["cache"],
    (Group("", (What,)), Group("where", (where.Cache,))),
    example="winnow cache clean --keep 10GB",
)


def run(asked: Asked) -> int:
    """List what is kept between runs, or remove it."""
    given = asked.given
    if given["action"] == LIST and "keep" in given:
        raise SpecError("--keep is of winnow cache clean, and list removes nothing: leave it out")
    named = given["cache"]
    if named is not None and (isinstance(named, Uri) or not named.is_dir()):
        raise SpecError(f"--cache is {named}, and there is no such folder here: name another")
    lanes = given["cache"] or cache_home() / LANES
    kept = cached_lanes(lanes)
    kernels = measured(cache_home() / KERNELS)
    if given["cache"] is None and kernels.size:
        kept.insert(0, kernels)
    place = given["cache"] or cache_home()
    if given["action"] == LIST:
        _print([*kept, *unfinished(lanes)], place)
        return 0
    most = parse_bytes(given["keep"])
    if most is None:
        raise SpecError(f"--keep is {given['keep']!r}; give bytes such as 10GB")
    left = unfinished(lanes)
    remove_leftovers(lanes)
    left = [own for own in left if not own.folder.exists()]
    gone = beyond(kept, most)
    for own in gone:
        remove_folder(own.folder)
        if own.folder.exists():
            raise OutputError(f"{own.folder} cannot be removed: it may be another user's")
    print(f"{sum(own.size for own in [*left, *gone]):,} bytes removed from {place}")  # noqa: T201
    return 0


def _print(kept: list[CachedFolder], place: Path) -> None:
    table = table_of(("what", "bytes", "days unused", "folder"), texts=(0, 3))
    for own in kept:
        name = own.folder.name
        what = "kernels" if name == KERNELS else "unfinished" if name.startswith(".") else "lanes"
        days = (time.time() - own.used) / 86_400
        table.add_row(what, f"{own.size:,}", f"{days:.1f}", name.lstrip(".").partition(".")[0])
    if kept:
        Console().print(table)
    print(f"{sum(own.size for own in kept):,} bytes in {place}")  # noqa: T201
