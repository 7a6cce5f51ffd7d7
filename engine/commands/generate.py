"""``winnow generate zipf | age | gaussian``: synthetic streams."""

from __future__ import annotations

import sys

from engine.commands.asked import Asked
from engine.commands.bars import progress_bars
from engine.generate.source import write_streams
from engine.options.generate import GENERATE, sources_of

COMMAND = GENERATE


def run(asked: Asked) -> int:
    """Generate what is asked for, write it and list the files on standard output.

    Raises
    ------
    SpecError
        If an option is invalid.
    OutputError
        If the folder has files and ``--overwrite`` is not given, or it cannot be written.
    """
    given = asked.given
    sources = sources_of(asked.command.name, given)
    place = given.needed("out")
    with progress_bars() as progress:
        written = write_streams(
            place, sources, given["format"], overwrite=given["overwrite"], progress=progress
        )
    for path, rows in written.items():
        sys.stdout.write(f"{path}: {rows} rows\n")
    return 0
