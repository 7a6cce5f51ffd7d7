"""``winnow estimate``: of two streams, or of several."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from engine.commands.asked import Asked
from engine.commands.parser import collected
from engine.commands.running import running
from engine.jobs.estimate.run import run_estimate
from engine.options import multijoin_options as several
from engine.options.command import Group
from engine.options.estimate import ESTIMATE, estimate_of
from engine.options.estimate_streams import (
    ESTIMATE_STREAMS,
    EstimateStreamsOptions,
    estimate_streams_of,
)
from engine.options.option import options_of
from engine.options.where import Engine, Report
from engine.report.estimate_table import estimate_shown
from engine.runtime.errors import SpecError

_SEVERAL = (several.Streams, several.On, several.Best)
COMMAND = replace(
    ESTIMATE,
    groups=(
        *ESTIMATE.groups,
        Group(
            "several streams, in place of --left and --right; --time, --importance and --window "
            "may then be NAME=VALUE, several with commas",
            _SEVERAL,
            without=ESTIMATE.options.keys(),
        ),
    ),
)
_WHERE = {*options_of(Engine), *options_of(Report)}


def run(asked: Asked) -> int:
    """Estimate and print the report."""
    values = collected(asked.command, asked.values)
    where = asked.command.given({name: own for name, own in values.items() if name in _WHERE})
    if "stream" in values:
        options: Any = _several(values)
    else:
        for name in sorted(values.keys() & (COMMAND.options.keys() - ESTIMATE.options.keys())):
            raise SpecError(
                f"{COMMAND.options[name].written} is of a join of several streams: name them with "
                "--stream"
            )
        options = estimate_of(asked.command.given(values))
    with running(asked, where) as job:
        found = run_estimate(options, *job.on)
    job.tell(estimate_shown(found.report, found.aggregates))
    return 0


def _several(values: dict[str, Any]) -> EstimateStreamsOptions:
    """Return the estimate of several streams that the values describe.

    Raises
    ------
    SpecError
        If one is missing, invalid or not for several streams.
    """
    own = {name: value for name, value in values.items() if name not in _WHERE}
    for name in sorted(own.keys() - ESTIMATE_STREAMS.options.keys()):
        flag = COMMAND.options[name].written
        instead = ESTIMATE_STREAMS.instead.get(name, "it is of two streams")
        raise SpecError(f"{flag} is not available with --stream: {instead}")
    given = ESTIMATE_STREAMS.given(own)
    return estimate_streams_of(given["stream"], given)
