"""The report of an estimate: what was estimated, from what part, and what all would have cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from engine.jobs.estimate.decide import Limits, Outcome
from engine.jobs.estimate.draw import Joins
from engine.jobs.estimate.plan import Plan
from engine.jobs.estimate.replays import ArchiveSlices
from engine.jobs.estimate.seen import Seen
from engine.jobs.estimate.sliced import Slices
from engine.options.estimate import AnyEstimate
from engine.report.envelope import Report, envelope
from engine.runtime.executors import Stages
from engine.runtime.short_windows import warn_of_short_windows
from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.design import chances
from engine.sampling.stretches.interval import FEWEST


class Estimation(NamedTuple):
    """What an estimate gives."""

    report: Report
    aggregates: dict[str, pa.Table]
    """Estimates by the texts that asked for them, as `engine.jobs.estimate.cells.AnyEstimate` has
    them; of a replay by measure."""
    by_time: pa.Table
    """The first of them by parts of time: begin, end, estimate, low, high."""


def limits_of(options: AnyEstimate) -> Limits:
    """Return what limits an estimate."""
    return Limits(options.target, options.confidence, options.seconds, options.read)


def until(options: AnyEstimate, begun: float) -> float | None:
    """Return when to stop, by `time.perf_counter`; None if at no time."""
    return None if options.seconds is None else begun + options.seconds


def time_table(plan: Slices, seen: Seen, found: Sequence[Answer]) -> pa.Table:
    """Return the first estimate by parts of time.

    Columns begin and end (ticks, int64), estimate, low, high (float64) and no_interval (string).
    Each interval is for itself.
    """
    ends = np.array(seen.parts(plan.times)).T
    columns = {
        name: pa.array(plan.edges[own]) for name, own in zip(("begin", "end"), ends, strict=True)
    }
    for name in ("estimate", "low", "high"):
        numbers = np.array([getattr(one, name) for one in found], np.float64)
        columns[name] = pa.array(numbers, mask=np.isnan(numbers))
    columns["no_interval"] = pa.array([one.reason for one in found], pa.string())
    return pa.table(columns)


def build_report(
    options: AnyEstimate,
    plan: Plan | ArchiveSlices,
    joins: Joins,
    outcome: Outcome,
    tables: Mapping[str, pa.Table],
    by_time: pa.Table,
    stages: Stages,
    window: Mapping[str, Any],
) -> Report:
    """Put an estimate's results together; `window` is what the report says of the windows."""
    read = {name: joins.read[name] for name in plan.all}
    share = joins.read["bytes"] / max(1, plan.all["bytes"])
    reached = max((one.reached for one in outcome.estimates), default=math.inf)
    reached = reached if outcome.whole is None else 0.0
    rows = [int(own.rows.sum()) for own in plan.groups]
    spans = [own.span for own in plan.groups if own.rows.size]
    span = (min(own[0] for own in spans), max(own[1] for own in spans)) if spans else None
    given, stated = options.windows_given
    warn_of_short_windows(given, (window["tick"], stated), sum(rows), span)
    return Report(
        {
            "rows": dict(zip(options.names, rows, strict=True)),
            "window": dict(window),
            "how": "sample" if outcome.whole is None else "exact join",
            "why": outcome.whole,
            "stopped": joins.stopped,
            "confidence": options.confidence,
            "within": {
                "asked": options.target,
                "reached": reached if math.isfinite(reached) else None,
            },
            "aggregates": [_summary(text, own) for text, own in tables.items()],
            "read": read
            | {"share": share, "asked": options.read, "needed": _needed(options, plan, outcome)},
            "exact": plan.all | {"seconds": _exact_seconds(plan, joins)},
            "rejected": joins.rejected,
            "slices": {
                "all": plan.slices,
                "ticks": plan.ticks,
                "drawn": len(outcome.seen.certain) + len(outcome.seen.by_chance),
                "certain": len(outcome.seen.certain),
            },
            "rounds": [own.draws for own in outcome.rounds],
            "by_time": [_part(own) for own in by_time.to_pylist()],
            **envelope(stages.seconds, seed=options.seed, aggregates_out=options.aggregates_out),
        }
    )


def _needed(options: AnyEstimate, plan: Slices, outcome: Outcome) -> float | None:
    """Return about what share of everything has stretches enough for an interval.

    1 where that is the exact join; None where no limit on what is read left too few stretches.
    It is more than was read: fewer draws may leave more to chance, but then less is certain.
    """
    if options.read is None or outcome.whole or len(outcome.seen.by_chance) >= FEWEST:
        return None
    last = outcome.rounds[-1]
    more = max(FEWEST, last.joined + 1)
    for draws in range(more, plan.worth if plan.worth >= 2 * FEWEST else 0):
        chance = chances(last.sizes, draws, plan.odd)
        if chance[chance < 1].sum() >= FEWEST:
            return float((chance * plan.costs).sum()) / max(1, plan.all[plan.counted])
    return 1.0


def _part(line: dict[str, Any]) -> dict[str, Any]:
    """Return an estimate of a part of time, which a report tells by its first and last tick."""
    begin, end = line.pop("begin"), line.pop("end")
    return {"from": begin, "to": end - 1, **line}


def _exact_seconds(plan: Slices, joins: Joins) -> float | None:
    """Return about how long the exact join takes on the same cores; None if that is not known.

    The first stretch of each core also waits for compilation, and for what is loaded.
    """
    cores = max(1, joins.executor.slots or joins.executor.threads)
    rates = joins.rates[cores:]
    return statistics.median(rates) * plan.all["rows"] / cores if rates else None


def _summary(text: str, own: pa.Table) -> dict[str, Any]:
    """Return how many estimates an aggregate has, and the only one."""
    found: dict[str, Any] = {
        "aggregate": text,
        "estimates": own.num_rows,
        "without_interval": own.num_rows - own.column("no_interval").null_count,
    }
    names = ("estimate", "low", "high", "standard_error", "no_interval")
    line = own.select(names).to_pylist()[0] if own.num_rows == 1 else {}
    return found | {name: line.get(name) for name in names}
