"""``winnow profile``."""

from __future__ import annotations

from engine.commands.asked import Asked
from engine.commands.running import running
from engine.jobs.profile.run import run_profile
from engine.options.profile import PROFILE, profile_of
from engine.report.profile_charts import profile_shown

COMMAND = PROFILE


def run(asked: Asked) -> int:
    """Profile the archives and print what was found."""
    given = asked.given
    options = profile_of(given)
    with running(asked, given, options.base.archives) as job:
        found = run_profile(options, *job.on)
    job.tell(profile_shown(found))
    return 0
