"""A sweep, replayed or estimated: then all cells on the same slices of prepared lanes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from engine.jobs.estimate.decide import Limits, Outcome
from engine.jobs.estimate.draw import Joins
from engine.jobs.estimate.recall import Reached, Recalls, Replaying
from engine.jobs.estimate.replays import LEAD, LIFETIMES, SHORT, LaneSlices
from engine.jobs.estimate.seen import Earlier, Seen, everything
from engine.jobs.frame import JobLanes
from engine.jobs.sweep.bounds import places_of
from engine.jobs.sweep.by_lanes import GridPart, Swept, sweep_points
from engine.jobs.sweep.cells import CellResult, Exact
from engine.jobs.sweep.layout import Layout, Settings, lay_out
from engine.jobs.sweep.rows import Row, Total, rows_of
from engine.jobs.sweep.run import SweepResult, run_sweep
from engine.jobs.trial.stretches import TimesTask, rows_by_time
from engine.options.cells import Point
from engine.options.sweep import SweepOptions
from engine.runtime.device_choice import ON_CPU
from engine.runtime.executors import Executor, Progress
from engine.runtime.jit import Floats, Ints
from engine.sampling.stretches import density, slices
from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.load import Held, unevenness
from engine.sampling.stretches.measures import measures_of
from gpu_kernels.devices import Choice

_TUPLES = 10_000
"""Of a slice, at least, where that leaves enough of them: each cell takes a while to begin."""
_ON_CPU = Choice(ON_CPU, "stretches are replayed on the CPU")
_PARTS = 8
"""Parts of a slice whose tuples are counted before any is drawn."""


def run_grid(
    options: SweepOptions, executor: Executor, progress: Progress | None = None
) -> SweepResult:
    """Find out what the cells of a grid come to: exactly, or within what the options ask for."""
    if options.within is None:
        return run_sweep(options, executor, progress)
    estimating = partial(_estimate_points, Limits(options.within, options.confidence))
    return run_sweep(options, executor, progress, estimating)


def _estimate_points(limits: Limits, part: GridPart) -> Swept:
    """Estimate some cells of a grid."""
    points, settings, stages = part.points, part.settings, part.stages
    lanes = part.prepared()
    outcome, plan = None, None
    if lanes.files:
        layout = lay_out(points, settings, lanes, part.profile)
        plan = _plan(points, settings, lanes, layout, part.base.seed)
        joins = Joins(plan, stages.executor, part.base.seed)
        asked = _Sampling(limits, plan, joins, stages.progress, plan)
        with stages.timed("replay"):
            outcome = asked.run()
    if plan is None or outcome is None or outcome.whole is not None:
        swept = sweep_points(part)
        why = "there are no rows" if outcome is None else outcome.whole
        return swept._replace(
            rows=[_exactly(row) for row in swept.rows], estimated=_told(points, plan, None, why)
        )
    [found] = outcome.estimates
    rows = _rows(points, settings, layout, lanes, outcome, found)
    return Swept(rows, lanes.prepared, [_ON_CPU], {}, _told(points, plan, outcome, None))


class _Sampling(Replaying):
    """Leaves it to the sweep to replay everything."""

    def whole(self) -> Seen:
        """Return that nothing was replayed here."""
        return everything(self.plan, [])

    def estimates(self, own: Seen, earlier: Sequence[Sequence[Earlier]]) -> list[Recalls]:
        """Return the estimates of all cells, as one; none of a sweep's own."""
        return [] if own.whole else super().estimates(own, earlier)


def _plan(
    points: Sequence[Point], settings: Settings, lanes: JobLanes, layout: Layout, seed: int
) -> LaneSlices:
    """Return the slices of lanes, once their tuples are counted by time."""
    exact = {point.window: settings[point.number] for point in points}
    longest = max(exact)
    span = lanes.prepared.span
    assert span is not None  # noqa: S101 - they have rows
    start = exact[longest].start_ts
    begin = span[0] if start is None else max(span[0], start)
    last = max(span[1], begin)
    ticks = last - begin + 1
    group = ticks / max(slices.ENOUGH, slices.GROUPS * sum(lanes.rows) / _TUPLES)
    length = slices.length_of(ticks, longest + 1, group, (LIFETIMES[0],) * 2)
    edges = slices.cut((begin, last), length, ())
    fine = _finer(np.unique(np.append(edges, [span[0], span[1] + 1])))
    tasks = [TimesTask(files, tuple(fine.tolist())) for files in lanes.files]
    counts = np.sum(lanes.stages.mapped("times", rows_by_time, tasks, lanes.rows), axis=0)
    spreads = [density.spread_of(fine[:-1], fine[1:] - 1, own) for own in counts]
    before: Floats = spreads[0].before(edges) + spreads[1].before(edges)
    kept = slices.longer(before)
    edges, before = edges[kept], before[kept]
    known = measures_of(edges, (spreads[0], spreads[1]), (longest, longest))
    executor = lanes.stages.executor
    memories = [
        Held(one.windows, budget, one.settings.pooled)
        for one, budget in zip(layout.cells[0], _budgets(layout), strict=True)
    ]
    return LaneSlices(
        edges, known, tuple(lanes.files), tuple(tuple(own) for own in layout.cells),
        tuple(exact.values()), seed,
        executor.slots or executor.threads, span[0],
        unevenness(edges, spreads, memories), before,
    )  # fmt: skip


def _budgets(layout: Layout) -> list[tuple[int, int]]:
    """Return the tuples of left and right that a cell holds in all lanes, cell by cell."""
    found = np.sum([[one.budget for one in own] for own in layout.cells], axis=0)
    return [(left, right) for left, right in found.tolist()]


def _finer(edges: Ints) -> Ints:
    """Return edges with others between them."""
    parts = [
        np.linspace(begin, end, _PARTS, endpoint=False).astype(np.int64)
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
    return np.unique(np.append(np.concatenate(parts), edges[-1]))


def _rows(
    points: Sequence[Point],
    settings: Settings,
    layout: Layout,
    lanes: JobLanes,
    outcome: Outcome,
    found: Recalls,
) -> list[Row]:
    """Return the rows of a sweep, from estimates."""
    seen = [*outcome.seen.certain, *outcome.seen.by_chance]
    totals = {point.number: Total() for point in points}
    for mine in layout.cells:
        for cell in mine:
            totals[cell.number].allow(cell.budget)
    for at, (point, own) in enumerate(zip(points, found.cells, strict=True)):
        results = [one.cells[at] for one in seen if one.cells[at]]
        peaks = [
            max((sum(lane.peaks[side] for lane in one) for one in results), default=0)
            for side in (0, 1)
        ]
        outputs, importance = (_value(own.answers[name]) for name in ("outputs", "importance"))
        totals[point.number].results.append(
            CellResult(
                point.number, round(outputs), importance, (peaks[0], peaks[1]),
                max((sum(lane.peak for lane in one) for one in results), default=0),
                math.fsum(lane.seconds for one in results for lane in one)
                * len(seen) / max(1, len(results)),
            )
        )  # fmt: skip
    exact = {
        windows[0]: [Exact(round(_value(own[0])), _value(own[1]))]
        for windows, own in found.exact.items()
    }
    joined = sum(stream.joined for stream in lanes.prepared.streams)
    places = places_of(points, layout.cells)
    rows = rows_of(points, settings, totals, exact, joined, {}, places)
    part = sum(one.rows for one in seen) / max(1, sum(lanes.rows))
    return [
        _estimated(row, own, len(seen), part) for row, own in zip(rows, found.cells, strict=True)
    ]


def _value(own: Answer) -> float:
    return own.estimate if math.isfinite(own.estimate) else 0.0


def _estimated(row: Row, own: Reached, stretches: int, part: float) -> Row:
    """Return a row with its recalls and intervals; its rate is of the part that was replayed."""
    ends: dict[str, Any] = {}
    for name, answer in own.answers.items():
        known = answer.reason is None
        ends |= {f"{name}_low": answer.low if known else None}
        ends |= {f"{name}_high": answer.high if known else None}
        if "recall" in name and math.isfinite(answer.estimate):
            ends[name] = answer.estimate
    reasons = [answer.reason for answer in own.answers.values() if answer.reason is not None]
    return row._replace(
        **ends,
        tuples_per_second=row.tuples_per_second * part,
        no_interval=reasons[0] if reasons else None,
        stretches=stretches,
    )


def _exactly(row: Row) -> Row:
    """Return a row of a sweep that was asked to be estimated, and is exact."""
    measures = ("recall", "importance_recall", "outputs", "importance")
    ends = {f"{name}_{end}": getattr(row, name) for name in measures for end in ("low", "high")}
    return row._replace(**ends, stretches=0)


def _told(
    points: Sequence[Point], plan: LaneSlices | None, outcome: Outcome | None, why: str | None
) -> dict[str, Any]:
    """Return how cells were estimated, as a report has it."""
    found: dict[str, Any] = {"lanes": points[0].lanes, "why": why}
    if plan is None or outcome is None:
        return found | dict.fromkeys(
            ("stretches", "all", "ticks", "rounds", "lead_in", "compared_with", "reached",
             "without_interval")
        )  # fmt: skip
    [own] = outcome.estimates
    lacking = sum(one.answers["recall"].reason is not None for one in own.cells)
    return found | {
        "stretches": len(outcome.seen.certain) + len(outcome.seen.by_chance),
        "all": plan.slices,
        "ticks": plan.ticks,
        "rounds": [one.draws for one in outcome.rounds],
        "lead_in": LEAD,
        "compared_with": SHORT,
        "reached": _widest(own.cells),
        "without_interval": lacking,
    }


def _widest(cells: Sequence[Reached]) -> float | None:
    """Return how far the widest interval of a recall reaches, of those that there are."""
    halves = [
        max(one.high - one.estimate, one.estimate - one.low)
        for own in cells
        for name, one in own.answers.items()
        if "recall" in name and one.reason is None
    ]
    return max(halves, default=None)
