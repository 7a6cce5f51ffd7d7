"""``winnow multijoin``."""

from __future__ import annotations

from engine.commands.running import Asked, carried_out
from engine.jobs.multijoin.run import run_multijoin
from engine.options.multijoin import multijoin_of
from engine.options.multijoin_options import MULTIJOIN
from engine.report.join_tables import print_multijoin

COMMAND = MULTIJOIN


def run(asked: Asked) -> int:
    """Join and print the report."""
    given = asked.given
    options = multijoin_of(given["stream"] or {}, given)
    report = carried_out(asked, given, lambda *on: run_multijoin(options, *on), lambda done: done)
    print_multijoin(report)
    return 0
