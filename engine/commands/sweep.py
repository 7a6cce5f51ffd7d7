"""``winnow sweep``."""

from __future__ import annotations

from engine.commands.running import Asked, running
from engine.jobs.sweep.run import run_sweep
from engine.jobs.sweep.table import print_sweep
from engine.options.sweep import SWEEP, sweep_of
from engine.report.envelope import Report

COMMAND = SWEEP


def run(asked: Asked) -> int:
    """Sweep and print what was found."""
    given = asked.given
    options = sweep_of(given)
    with running(asked, given) as job:
        result = run_sweep(options, *job.on)
    job.save(Report(result.report))
    print_sweep(result)
    return 0
