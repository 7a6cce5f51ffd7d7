"""``winnow sample``."""

from __future__ import annotations

import sys

from engine.commands.asked import Asked
from engine.commands.running import running
from engine.jobs.sample.run import run_sample
from engine.options.sample import SAMPLE, sample_of
from engine.report.sample_table import sample_shown

COMMAND = SAMPLE


def run(asked: Asked) -> int:
    """Sample and print the report."""
    given = asked.given
    options = sample_of(given)
    if options.on_average:
        print(  # noqa: T201
            f"winnow sample: {options.method} holds its memory on average and may hold more at "
            "times; bottom-k never does",
            file=sys.stderr,
        )
    with running(asked, given, options.base.archives) as job:
        found = run_sample(options, *job.on)
    job.tell(sample_shown(found.report, found.aggregates))
    return 0
