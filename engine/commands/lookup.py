"""``winnow lookup``."""

from __future__ import annotations

from engine.api.lookup import look_up
from engine.commands.asked import Asked
from engine.commands.running import progress_bar
from engine.options.lookup import LOOKUP, lookup_of
from engine.report.envelope import check_place
from engine.report.join_tables import print_lookup

COMMAND = LOOKUP


def run(asked: Asked) -> int:
    """Look up and print the report."""
    given = asked.given
    options = lookup_of(given)
    stream, fact = given.needed("stream"), given.needed("fact")
    place = given["report"]
    if place is not None:
        check_place(place)
    with progress_bar() as progress:
        report = look_up(options, stream, fact, progress)
    if place is not None:
        report.save(place)
    print_lookup(report)
    return 0
