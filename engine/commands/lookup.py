"""``winnow lookup``."""

from __future__ import annotations

from engine.commands.asked import Asked
from engine.commands.bars import progress_bars
from engine.commands.telling import telling
from engine.jobs.lookup.whole import look_up
from engine.options.lookup import LOOKUP, lookup_of
from engine.report.joins import lookup_shown

COMMAND = LOOKUP


def run(asked: Asked) -> int:
    """Look up and print the report."""
    given = asked.given
    options = lookup_of(given)
    stream, fact = given.needed("stream"), given.needed("fact")
    told = telling(asked, given)
    with progress_bars() as progress:
        report = look_up(options, stream, fact, progress)
    told.tell(lookup_shown(report))
    return 0
