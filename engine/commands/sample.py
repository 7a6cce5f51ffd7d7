"""``winnow sample``."""

from __future__ import annotations

from engine.commands.running import Asked, carried_out
from engine.jobs.sample.run import run_sample
from engine.options.sample import SAMPLE, sample_of
from engine.report.sample_table import print_sample

COMMAND = SAMPLE


def run(asked: Asked) -> int:
    """Sample and print the report."""
    given = asked.given
    options = sample_of(given)
    found = carried_out(
        asked, given, lambda *on: run_sample(options, *on), lambda found: found.report
    )
    print_sample(found.report, found.aggregates)
    return 0
