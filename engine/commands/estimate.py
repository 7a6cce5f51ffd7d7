"""``winnow estimate``."""

from __future__ import annotations

from engine.commands.asked import Asked
from engine.commands.running import running
from engine.jobs.estimate.run import run_estimate
from engine.options.estimate import ESTIMATE, estimate_of
from engine.report.estimate_table import estimate_shown

COMMAND = ESTIMATE


def run(asked: Asked) -> int:
    """Estimate and print the report."""
    given = asked.given
    options = estimate_of(given)
    with running(asked, given) as job:
        found = run_estimate(options, *job.on)
    job.tell(estimate_shown(found.report, found.aggregates))
    return 0
