"""Runs an estimate: of the exact join, or of a replay within a memory."""

from __future__ import annotations

from engine.archives.moments import time_type, windows_timed
from engine.jobs.aggregate_tables import write_tables
from engine.jobs.estimate.budgeted import estimate_replay
from engine.jobs.estimate.joined import estimate_join, estimate_lanes, estimate_streams
from engine.jobs.estimate.report import Estimation
from engine.jobs.estimate.universe import estimate_by_keys
from engine.jobs.output import Output
from engine.jobs.output_at import output_at
from engine.options.estimate import KEYS, EstimateOptions
from engine.options.estimate_streams import EstimateStreamsOptions
from engine.runtime.errors import NoStretchesError
from engine.runtime.executors import Executor, Progress, Stages


def run_estimate(
    options: EstimateOptions | EstimateStreamsOptions,
    executor: Executor,
    progress: Progress | None = None,
) -> Estimation:
    """Estimate totals of a join, or of two archives recall within a memory.

    The same for any executor, unless seconds limit it.
    """
    stages = Stages(executor, progress)
    with output_at(options.aggregates_out, "--aggregates-out") as place:
        found = _estimated(options, stages)
        if place is not None:
            _write(place, found)
    return found


def _write(place: Output, found: Estimation) -> None:
    """Write the aggregates, with windows as times."""
    window = found.report.content["window"]
    kind = time_type(window["tick"], window["zone"])
    timed = [windows_timed(own, kind) for own in found.aggregates.values()]
    place.assemble(write_tables(place, timed), timed[-1].schema)
    place.commit()


def _estimated(options: EstimateOptions | EstimateStreamsOptions, stages: Stages) -> Estimation:
    """Estimate by stretches of time, or where an archive has none by keys."""
    if isinstance(options, EstimateStreamsOptions):
        return estimate_streams(options, stages)
    if not options.base.exact:
        return estimate_replay(options, stages)
    try:
        return estimate_join(options, stages)
    except NoStretchesError as error:
        if options.base.fact is not None:
            raise
        found = None if options.sizes == KEYS else estimate_lanes(options, stages)
        return found or estimate_by_keys(options, stages, error)
