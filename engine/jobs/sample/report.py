"""The report of a sample: what it estimates beside what is true, and the memory it took."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.jobs.frame import JobLanes
from engine.jobs.sample.plan import SamplePlan
from engine.jobs.sample.task import LaneSample
from engine.options.sample import SampleOptions
from engine.replay.settings import ReplaySettings
from engine.report.envelope import (
    Report,
    envelope,
    memory_report,
    per_second,
    stream_report,
    window_report,
)
from engine.runtime.streams import SIDES

ESTIMATED = ("estimate", "standard_error", "low", "high")


def build_report(
    options: SampleOptions,
    settings: ReplaySettings,
    lanes: JobLanes,
    plan: SamplePlan,
    results: Sequence[LaneSample],
    totals: tuple[pa.Table, pa.Table],
    aggregates: Mapping[str, pa.Table],
) -> Report:
    """Put the lanes' results together.

    Parameters
    ----------
    results : sequence of LaneSample
        In the plan's order.
    totals : (pyarrow.Table, pyarrow.Table)
        The estimates of outputs and of importance.
    aggregates : mapping
        The other estimates, by their texts.
    """
    prepared, seconds = lanes.prepared, lanes.stages.seconds
    base = options.base
    exact = sum(r.exact[0] for r in results), math.fsum(r.exact[1] for r in results)
    joined = sum(stream.joined for stream in prepared.streams)
    rows, clusters = (totals[0].column(name).to_pylist() for name in ("rows", "clusters"))
    return Report(
        {
            **stream_report(prepared),
            "exact": {"outputs": exact[0], "importance": exact[1]},
            "sample": {"rows": sum(rows), "clusters": sum(clusters)},
            "estimates": {
                name: _estimate(table, truth)
                for name, table, truth in zip(("outputs", "importance"), totals, exact, strict=True)
            },
            "confidence": options.confidence,
            "aggregates": [_summary(text, table) for text, table in aggregates.items()],
            "method": {
                "name": options.method,
                "size": options.sizes if options.method in ("pps-cluster", "bottom-k") else None,
                "count": options.counts if options.method == "uniform" else None,
                "unbiased": options.unbiased,
                "on_average": options.on_average,
                "combine": base.combine,
                "fraction": options.fraction,
                "overflow": options.overflow,
                "profile": None if options.profile is None else str(options.profile),
            },
            "inclusion": _inclusion(plan),
            "memory": memory_report(base.memory, plan.memory)
            | {"expected": _expected(plan), "mean": _mean(plan, results)},
            "peak_memory": {side: sum(r.peaks[i] for r in results) for i, side in enumerate(SIDES)},
            "window": window_report(settings.windows, prepared.unit, prepared.zone),
            "start_ts": settings.start_ts,
            "lanes": {
                "per_group": prepared.lanes_per_group,
                "groups": prepared.groups,
                "sampled": len(results),
            },
            **envelope(
                seconds,
                rate=per_second(joined, seconds.get("sample", 0.0)),
                seed=base.seed,
                out=base.out,
                aggregates_out=options.aggregates_out,
            ),
        }
    )


def _estimate(table: pa.Table, exact: float) -> dict[str, float | None]:
    """Return an estimated total; without any output it is 0, of no interval."""
    line = table.to_pylist()[0] if table.num_rows else {}
    estimate = float(line.get("estimate") or 0.0)
    found = {name: line.get(name) for name in ESTIMATED} | {"estimate": estimate}
    error = abs(estimate - exact) / exact if exact else None
    return found | {"exact": exact, "relative_error": error}


def _summary(text: str, table: pa.Table) -> dict[str, Any]:
    """Return how many estimates an aggregate has, and what share of the intervals covers."""
    covered = None
    if "covered" in table.schema.names:
        covered = pc.mean(table.column("covered")).as_py()
    return {"aggregate": text, "estimates": table.num_rows, "covered": covered}


def _groups(plan: SamplePlan) -> list[int]:
    """Return the position of one lane of each group."""
    return [own[0] for own in plan.members]


def _inclusion(plan: SamplePlan) -> dict[str, float | None]:
    """Return the mean inclusion probability of each side over the groups, None for bottom-k."""
    chosen = [plan.lanes[i].chosen for i in _groups(plan)]
    found: dict[str, float | None] = {}
    for i, side in enumerate(SIDES):
        known = [(one.shares[i], one.rows[i]) for one in chosen if one.shares is not None]
        rows = sum(n for _, n in known)
        found[side] = math.fsum(p * n for p, n in known) / rows if rows else None
    return found


def _expected(plan: SamplePlan) -> dict[str, float | None]:
    """Return the tuples that were to be held on average, None for bottom-k."""
    chosen = [plan.lanes[i].chosen.memory for i in _groups(plan)]
    return {
        side: None
        if None in chosen or not chosen
        else math.fsum(one[i] for one in chosen if one is not None)
        for i, side in enumerate(SIDES)
    }


def _mean(plan: SamplePlan, results: Sequence[LaneSample]) -> dict[str, float]:
    """Return the tuples held on average over each group's own span, added up."""
    pairs = list(zip(plan.lanes, results, strict=True))
    return {
        side: math.fsum(result.held[i] / lane.recipe.span for lane, result in pairs)
        for i, side in enumerate(SIDES)
    }
