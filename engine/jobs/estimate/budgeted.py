"""Estimates what a replay within a memory would come to, from slices replayed after a lead-in."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from engine.jobs.age_curves import Curves, curves_given
from engine.jobs.estimate.decide import Outcome
from engine.jobs.estimate.draw import Joins
from engine.jobs.estimate.plan import joined_by
from engine.jobs.estimate.recall import Reached, Replaying
from engine.jobs.estimate.replays import LEAD, LIFETIMES, SHORT, ArchiveSlices
from engine.jobs.estimate.report import Estimation, build_report, limits_of, time_table, until
from engine.jobs.estimate.sliced import groups_of, sliced, spread_of
from engine.jobs.estimate.unprepared import archive_lane
from engine.jobs.frame import Archives, open_job
from engine.jobs.trial.layout import cells_of
from engine.jobs.trial.lead_in import loses_keys
from engine.lanes.facts import FactRelation
from engine.lanes.unwritten import Unwritten
from engine.options.budget import EXPECTED, POOLED
from engine.options.estimate import EstimateOptions
from engine.report.envelope import memory_report, plain_parameters, window_report
from engine.runtime.executors import Stages
from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.load import Held, unevenness


def estimate_replay(options: EstimateOptions, stages: Stages) -> Estimation:
    """Estimate recall and outputs of the replay of two archives within a memory."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        plan, archives = plan_of(options, stages, Path(folder))
        facts = plan.files[0].facts
        joins = Joins(plan, stages.executor, options.base.seed, until(options, begun))
        asked = Replaying(limits_of(options), plan, joins, stages.progress, plan)
        with stages.timed("stretches"):
            outcome = asked.run()
    by_time = time_table(plan, outcome.seen, asked.by_time(outcome.seen))
    [found] = outcome.estimates
    number = len(outcome.seen.certain) + len(outcome.seen.by_chance)
    tables = {measure: table_of(own, number) for measure, own in found.cells[0].answers.items()}
    window = window_report(archives.windows(options.base), archives.unit, archives.zone)
    report = build_report(options, plan, joins, outcome, tables, by_time, stages, window)
    report.content.update(_details(options, plan, found.cells[0], outcome))
    if isinstance(facts, FactRelation):
        report.content["fact"] = facts.summary.report
    return Estimation(report, tables, by_time)


def plan_of(
    options: EstimateOptions, stages: Stages, folder: Path
) -> tuple[ArchiveSlices, Archives]:
    """Return what is drawn from: the archives as a lane, and the replay of it."""
    base = options.base
    with stages.timed("footers"):
        archives = open_job(base)
        roles, joined, facts = joined_by(options, archives)
        left, right = groups_of(archives[:2], roles, joined[0])
        groups = left, right
        windows = archives.windows(base)
        start = archives.start_ts(base)
        begin = min((own.span[0] for own in groups if own.rows.size), default=0)
        edges, measures = sliced(groups, windows, start, (), LIFETIMES)
    if facts is not None:
        with stages.timed("facts"):
            facts.index()
    lane = archive_lane(
        archives, roles, joined, groups, windows, stages, folder,
        quarantine=base.bad_rows == "quarantine", facts=facts,
    )  # fmt: skip
    settings = archives.settings(base)
    given: Curves = curves_given(settings) if base.policy == "age" else (None, None)
    cells, *_ = cells_of([base], archives, lane, given=given)
    threads = stages.executor.slots or stages.executor.threads
    cell, uneven = cells[0][0], None
    if measures.pairs.any():
        held = Held(windows, cell.budget, cell.settings.pooled)
        uneven = unevenness(edges, spread_of(groups)[1], [held])
    plan = ArchiveSlices(
        edges, measures, tuple(lane.files), tuple(tuple(own) for own in cells),
        (settings,), base.seed, threads, begin, uneven, groups,
    )  # fmt: skip
    return plan, archives


def table_of(own: Answer, slices: int) -> pa.Table:
    """Return an estimate as a table, as those of aggregates are."""
    none = pa.array([None], pa.int64())
    numbers = np.array([own.estimate, own.low, own.high, own.error])
    columns = ("estimate", "low", "high", "standard_error")
    return pa.table(
        {
            "window_begin": none,
            "window_end": none,
            **{
                name: pa.array([number], mask=np.isnan([number]))
                for name, number in zip(columns, numbers, strict=True)
            },
            "no_interval": pa.array([own.reason], pa.string()),
            "stretches": pa.array([slices], pa.int64()),
        }
    )


def _passed(plan: ArchiveSlices, *, keys: bool) -> float:
    """Return the share of the bytes that the pass before any draw reads."""
    files, total = plan.files[0], 0
    for own, stored in zip(plan.groups, (files.left, files.right), strict=True):
        read = own.bytes
        if not keys and isinstance(stored, Unwritten) and not stored.null_keys:
            read = own.bytes - own.key_bytes
        total += int(read.sum())
    return total / max(1, plan.all["bytes"])


def _details(
    options: EstimateOptions, plan: ArchiveSlices, found: Reached, outcome: Outcome
) -> dict[str, Any]:
    """Return what a report says of the replay that is estimated."""
    base, own, cell = options.base, found.left_over, plan.cells[0][0]
    return {
        "how": "sample" if outcome.whole is None else "whole replay",
        "policy": {
            "name": base.policy,
            "parameters": plain_parameters(base.parameters),
            "estimator": base.estimator,
            "probe": base.probe,
        },
        "memory": memory_report(base.memory, [cell.budget], pooled=base.split == POOLED)
        | {"split": str(base.split)},
        "pass": _passed(
            plan,
            keys=base.split == EXPECTED or base.policy == "age" or base.fact is not None,
        ),
        "lead_in": None
        if own is None
        else {
            "lifetimes": LEAD,
            "compared_with": SHORT,
            "stretches": own.stretches,
            "share": own.share if np.isfinite(own.share) else None,
            "error": own.error if np.isfinite(own.error) else None,
            "lasting": own.lasting,
            "loses_keys": loses_keys(cell.settings),
        },
    }
