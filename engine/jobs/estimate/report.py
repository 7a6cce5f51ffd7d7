"""The report of an estimate: what was estimated, from what part, and what all would have cost."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from engine.jobs.estimate.cells import Cells, Estimated, Seen
from engine.jobs.estimate.draw import Joins, Round
from engine.jobs.estimate.plan import Plan
from engine.options.estimate import EstimateOptions
from engine.report.envelope import Report, envelope, window_report
from engine.runtime.executors import Stages
from engine.runtime.streams import SIDES
from engine.sampling.stretches.interval import Answer, answer


class Outcome(NamedTuple):
    """What an estimate came to."""

    seen: Seen
    estimates: list[Estimated]
    rounds: list[Round]
    exact: str | None
    """Why everything was joined; None if it was not."""
    within: float
    """How far the widest interval reaches relative to its estimate."""


def time_table(plan: Plan, own: Seen, confidence: float) -> pa.Table:
    """Return the first aggregate, over all of its groups, by parts of time.

    Columns begin and end (ticks, int64), estimate, low, high (float64) and no_interval (string).
    Each interval is for itself.
    """
    cells = Cells(plan, own, 0, grouped=False)
    average = cells.spec.function == "avg"
    times = plan.times
    found: list[Answer] = []
    for begin, end in zip(times[:-1].tolist(), times[1:].tolist(), strict=True):
        [(_, cell)] = cells.cells(begin, end)
        found.append(answer(cell, confidence, average=average))
    columns = {"begin": pa.array(plan.edges[times[:-1]]), "end": pa.array(plan.edges[times[1:]])}
    for name in ("estimate", "low", "high"):
        numbers = np.array([getattr(one, name) for one in found], np.float64)
        columns[name] = pa.array(numbers, mask=np.isnan(numbers))
    columns["no_interval"] = pa.array([one.reason for one in found], pa.string())
    return pa.table(columns)


def build_report(
    options: EstimateOptions,
    plan: Plan,
    joins: Joins,
    outcome: Outcome,
    by_time: pa.Table,
    stages: Stages,
) -> Report:
    """Put an estimate's results together."""
    read = {name: joins.read[name] for name in plan.all}
    share = joins.read["bytes"] / max(1, plan.all["bytes"])
    rows = [int(own.rows.sum()) for own in plan.groups]
    return Report(
        {
            "rows": dict(zip(SIDES, rows, strict=True)),
            "window": window_report(plan.recipe.windows, plan.archives.unit, plan.archives.zone),
            "how": "sample" if outcome.exact is None else "exact join",
            "why": outcome.exact,
            "stopped": joins.stopped,
            "confidence": options.confidence,
            "within": {
                "asked": options.target,
                "reached": outcome.within if math.isfinite(outcome.within) else None,
            },
            "aggregates": [
                _summary(text, own)
                for text, own in zip(options.aggregates, outcome.estimates, strict=True)
            ],
            "read": read | {"share": share},
            "exact": plan.all | {"seconds": _exact_seconds(plan, joins)},
            "rejected": joins.rejected,
            "slices": {
                "all": plan.slices,
                "ticks": int(np.diff(plan.edges).max()),
                "drawn": len(outcome.seen.certain) + len(outcome.seen.by_chance),
                "certain": len(outcome.seen.certain),
            },
            "rounds": [own.draws for own in outcome.rounds],
            "by_time": by_time.to_pylist(),
            **envelope(stages.seconds, seed=options.base.seed, plot=options.plot),
        }
    )


def _exact_seconds(plan: Plan, joins: Joins) -> float | None:
    """Return about how long the exact join takes on the same cores; None where nothing was read.

    The median, for the first stretches also wait for compilation.
    """
    if not joins.rates:
        return None
    cores = joins.executor.slots or joins.executor.threads
    return statistics.median(joins.rates) * plan.all["rows"] / max(1, cores)


def _summary(text: str, own: Estimated) -> dict[str, Any]:
    """Return how many estimates an aggregate has, and the only one."""
    found: dict[str, Any] = {
        "aggregate": text,
        "estimates": own.table.num_rows,
        "without_interval": own.table.num_rows - _intervals(own.answers),
    }
    names = ("estimate", "low", "high", "standard_error", "no_interval")
    line = own.table.select(names).to_pylist()[0] if own.table.num_rows == 1 else {}
    return found | {name: line.get(name) for name in names}


def _intervals(answers: Sequence[Answer]) -> int:
    return sum(own.reason is None for own in answers)
