"""``winnow sweep``."""

from __future__ import annotations

from engine.commands.running import Asked, carried_out
from engine.jobs.sweep.run import run_sweep
from engine.jobs.sweep.table import print_sweep
from engine.options.sweep import SWEEP, sweep_of
from engine.report.envelope import Report

COMMAND = SWEEP


def run(asked: Asked) -> int:
    """Sweep and print what was found."""
    given = asked.given
    options = sweep_of(given)
    result = carried_out(
        asked, given, lambda *on: run_sweep(options, *on), lambda found: Report(found.report)
    )
    print_sweep(result)
    return 0
