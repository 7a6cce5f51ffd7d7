"""``winnow sweep``."""

from __future__ import annotations

from engine.commands.asked import Asked
from engine.commands.running import running
from engine.jobs.estimate.sweep import run_grid
from engine.jobs.sweep.shown import sweep_shown
from engine.options.sweep import SWEEP, sweep_of

COMMAND = SWEEP


def run(asked: Asked) -> int:
    """Sweep and print what was found; 1 if a replay of the advice differs from the sweep."""
    given = asked.given
    options = sweep_of(given)
    with running(asked, given, options.base.archives) as job:
        result = run_grid(options, *job.on)
    job.tell(sweep_shown(result))
    checks = [advice.check for advice in result.advice if advice.check is not None]
    return int(any(check.problem is not None for check in checks))
