"""``winnow bound``."""

from __future__ import annotations

from engine.commands.asked import Asked
from engine.commands.running import running
from engine.jobs.bound.run import run_bound
from engine.options.bound import BOUND, bound_of
from engine.report.joins import bound_shown

COMMAND = BOUND


def run(asked: Asked) -> int:
    """Bound and print the report."""
    given = asked.given
    options = bound_of(given)
    with running(asked, given, options.base.archives) as job:
        found = run_bound(options, *job.on)
    for path in found.texts:
        print(path, end="\n\n")  # noqa: T201 - the command's answer
    job.tell(bound_shown(found.report))
    return 0
