"""``winnow multijoin``."""

from __future__ import annotations

from engine.commands.asked import Asked
from engine.commands.running import running
from engine.jobs.multijoin.run import run_multijoin
from engine.options.multijoin_given import multijoin_of
from engine.options.multijoin_options import MULTIJOIN
from engine.report.joins import multijoin_shown

COMMAND = MULTIJOIN


def run(asked: Asked) -> int:
    """Join and print the report."""
    given = asked.given
    options = multijoin_of(given["stream"] or {}, given)
    with running(asked, given, options.archives) as job:
        report = run_multijoin(options, *job.on)
    job.tell(multijoin_shown(report))
    return 0
