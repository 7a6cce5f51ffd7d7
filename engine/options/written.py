"""Options of what is written, and whether it is apart."""

from __future__ import annotations

import os
from collections.abc import Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

from engine.options.option import Option
from engine.options.storage import Anywhere
from engine.runtime.errors import SpecError
from engine.runtime.storage.uris import Place, within


class Written(Anywhere):
    """A folder that is written to while the work is done, and made if need be."""

    def files(self, flag: str, value: Any) -> list[Any]:  # noqa: ANN401 - see Kind
        """Return nothing: no archive is there."""
        del flag, value
        return []


class NewFolder(Written):
    """A folder that must not exist, and is there, whole, once the work is done."""


class WrittenFile(Written):
    """A file that is written when all else is done."""


FOLDER, NEW_FOLDER, FILE = Written("PATH"), NewFolder("PATH"), WrittenFile("PATH")


def check_nested(options: Mapping[str, Option], given: Mapping[str, Place]) -> None:
    """Refuse places that could not all be written, as one would be in another.

    Parameters
    ----------
    given : mapping
        Values of options by keyword.

    Raises
    ------
    SpecError
        If a file is to hold something, or a new folder what is written before it is there.
    """
    written = [name for name in given if isinstance(options[name].kind, Written)]
    for outer, inner in permutations(written, 2):
        kind, its = options[outer].kind, options[inner].kind
        whole, part = options[outer].written, options[inner].written
        if isinstance(kind, NewFolder) and isinstance(its, WrittenFile):
            continue
        place = given[outer]
        if isinstance(place, Path) and os.path.isdir(place):  # noqa: PTH112 - its own may raise
            continue  # which is refused, if it is, as such
        if isinstance(kind, (NewFolder, WrittenFile)) and within(given[inner], given[outer]):
            if not within(given[outer], given[inner]):
                what = "is to be new" if isinstance(kind, NewFolder) else "is a file"
                raise SpecError(
                    f"{part} {given[inner]} is in {whole} {given[outer]}, which {what}: name "
                    "another place"
                )
            if not isinstance(its, WrittenFile):  # files may be one stream
                raise SpecError(f"{whole} and {part} are both {given[inner]}: name two")
