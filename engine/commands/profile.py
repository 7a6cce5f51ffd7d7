"""``winnow profile``."""

from __future__ import annotations

from engine.commands.running import Asked, carried_out
from engine.jobs.profile.run import run_profile
from engine.options.profile import PROFILE, profile_of
from engine.report.envelope import Report
from engine.report.profile_table import print_profile

COMMAND = PROFILE


def run(asked: Asked) -> int:
    """Profile the archives and print what was found."""
    given = asked.given
    options = profile_of(given)
    found = carried_out(
        asked,
        given,
        lambda *on: run_profile(options, *on),
        lambda profile: Report(profile.content()),
    )
    print_profile(found)
    return 0
