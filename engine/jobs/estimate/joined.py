"""Estimates of an exact join: footers, rounds of stretches, or everything if that pays."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engine.jobs.estimate.cells import Cells, Estimated, windows_of
from engine.jobs.estimate.decide import PILOT, Estimating, Outcome
from engine.jobs.estimate.draw import Joins
from engine.jobs.estimate.keys import cost_of_keys, has_keys, with_keys
from engine.jobs.estimate.plan import Plan, plan_of
from engine.jobs.estimate.prepared import lane_plan, prepared_of
from engine.jobs.estimate.report import Estimation, build_report, limits_of, time_table, until
from engine.jobs.estimate.seen import Earlier, Seen, everything
from engine.jobs.estimate.several import streams_plan
from engine.jobs.estimate.task import Joined, PairRecipe, Together, join_together
from engine.jobs.frame import open_job
from engine.jobs.multijoin.join_task import open_join
from engine.options.estimate import AUTO, FOOTERS, KEYS, AnyEstimate, EstimateOptions
from engine.options.estimate_streams import EstimateStreamsOptions
from engine.report.envelope import windows_report
from engine.runtime.executors import Stages
from engine.runtime.jit import Floats
from engine.runtime.streams import SIDES
from engine.sampling.stretches.answers import Answer
from engine.sampling.stretches.measures import evened


def estimate_join(options: EstimateOptions, stages: Stages) -> Estimation:
    """Estimate totals of the exact join of two archives."""
    begun = time.perf_counter()
    with _footers(stages):
        archives = open_job(options.base)
        plan = plan_of(options, archives)
    more: dict[str, Any] = {}
    if isinstance(plan.recipe, PairRecipe) and plan.recipe.facts is not None:
        with stages.timed("facts"):
            more = {"fact": plan.recipe.facts.summary.report}
    return _estimated(options, plan, stages, begun, (archives.unit, archives.zone), more)


def estimate_lanes(options: EstimateOptions, stages: Stages) -> Estimation | None:
    """Estimate totals of the exact join of two archives from their prepared lanes, if any are."""
    begun = time.perf_counter()
    with _footers(stages):
        archives = open_job(options.base)
        prepared = prepared_of(options, archives)
        plan = None if prepared is None else lane_plan(options, archives, prepared, stages)
    if plan is None or prepared is None:
        return None
    more = {
        "lanes": str(prepared.folder),
        "rows": {name: own.rows for name, own in zip(SIDES, prepared.streams, strict=True)},
        "rejected": sum(own.rejected for own in prepared.streams),
    }
    return _estimated(options, plan, stages, begun, (archives.unit, archives.zone), more)


def estimate_streams(options: EstimateStreamsOptions, stages: Stages) -> Estimation:
    """Estimate totals of the exact join of several archives."""
    begun = time.perf_counter()
    with _footers(stages):
        task = open_join(options.base)
        plan = streams_plan(options, task)
    base = task.options
    more = {"predicate": base.predicate.text, "join_graph": base.graph, "top": base.top}
    tick = task.unit, task.sources[0].zone
    return _estimated(options, plan, stages, begun, tick, more)


@contextmanager
def _footers(stages: Stages) -> Iterator[None]:
    stages.progress("footers", 0, 1)
    with stages.timed("footers"):
        yield
    stages.progress("footers", 1, 1)


def _estimated(
    options: AnyEstimate,
    plan: Plan,
    stages: Stages,
    begun: float,
    tick: tuple[str, str | None],
    more: Mapping[str, Any],
) -> Estimation:
    """Draw slices and join them; `tick` is what one is, and the time zone."""
    joins = Joins(plan, stages.executor, options.seed, until(options, begun))
    with stages.timed("stretches"):
        asked = Joining(limits_of(options), plan, joins, stages.progress, plan, options.sizes)
        outcome = asked.run()
    by_time = time_table(plan, outcome.seen, asked.by_time(outcome.seen))
    tables = {
        spec.text: own.table for spec, own in zip(options.specs, outcome.estimates, strict=True)
    }
    window = windows_report(options.names, plan.recipe.windows, *tick)
    report = build_report(options, asked.join, joins, outcome, tables, by_time, stages, window)
    counted = asked.join.measures.counted
    share = asked.passed / max(1, plan.all["bytes"])
    joined = [*joins.found.values(), *(outcome.seen.certain if outcome.whole else ())]
    read = report.content["read"]
    read["tuples"] = sum(one.tuples for one in joined)
    if read["needed"] is not None:  # besides the pass over the keys
        read["needed"] = min(1.0, share + read["needed"])
    report.content.update({"sizes": KEYS if counted else FOOTERS, "pass": share, **more})
    return Estimation(report, tables, by_time)


@dataclass
class Joining(Estimating):
    """Estimates aggregates of an exact join."""

    join: Plan
    """The plan."""
    by: str
    """By what slices are drawn, as `--sizes` has it."""
    passed: int = field(init=False, default=0)
    """Bytes of the keys that were read."""

    def run(self) -> Outcome:
        """Draw, or read everything."""
        if self.by == KEYS and self.plan.worth and not self._read_keys():
            raise KeyboardInterrupt
        return super().run()

    def sharper(self, found: Sequence[Estimated]) -> bool:
        """Read the keys, if bytes are limited and one slice outweighs the others.

        That takes few bytes, but most of the exact join's time, which does better otherwise.
        """
        limits = self.limits
        if self.by != AUTO or self.join.measures.counted or limits.seconds is not None:
            return False
        if limits.read is None or not has_keys(self.join):
            return False
        if not any(one.dominated for one in found):
            return False
        left = self.size()
        return cost_of_keys(self.join) + self.expected(PILOT) < left and self._read_keys()

    def _read_keys(self) -> bool:
        """Read the keys; return whether that was not stopped."""
        before = self.joins.read["bytes"]
        plan = with_keys(self.join, self.joins, self.progress)
        self.passed = self.joins.read["bytes"] - before
        if plan is None:
            return False
        self.join = self.plan = self.joins.plan = plan
        self.size_by(plan.measures.first)
        return True

    def spread(self, worth: Floats) -> Floats:
        """Return the sizes by which slices are drawn.

        More of those that may have large values; of no window of an aggregate too few.
        """
        specs = self.join.recipe.specs
        finest = max((windows_of(self.join, one) for one in specs), key=len)
        sizes = self.plan.measures.valued(worth)
        return evened(sizes, [one[1:] for one in finest])

    def estimates(self, own: Seen, earlier: Sequence[Sequence[Earlier]]) -> list[Estimated]:
        """Return the estimates of every aggregate."""
        return [
            Cells(self.join, own, i).estimated(self.limits.confidence, [one[i] for one in earlier])
            for i in range(len(self.join.recipe.specs))
        ]

    def first(self, own: Seen) -> Answer:
        """Return the first aggregate over all of its windows and groups."""
        cells = Cells(self.join, own, 0, grouped=False)
        [(group, cell)] = cells.cells(0, self.plan.slices)
        return cells.answer(group, cell, self.limits.confidence)

    def by_time(self, own: Seen) -> list[Answer]:
        """Return the first aggregate over its groups, by parts of time."""
        return Cells(self.join, own, 0, grouped=False).by_time(self.limits.confidence)

    def totals(self, found: Sequence[Joined]) -> Floats:
        """Return what slices came to, a column an aggregate."""
        return np.array([[one.sums[:, 0].sum() for one in own.sums] for own in found])

    def whole(self) -> Seen | None:
        """Join everything, of which nothing is read where an archive is empty."""
        tasks = self.join.together() if self.plan.worth else []
        found, stretches = list[Joined](), sum(len(task.parts) for task in tasks)

        def joined(one: Together) -> None:
            found.extend(one.joined)
            self.joins.rates.append(one.seconds / max(1, one.rows))
            self.progress("exact join", len(found), stretches)

        self.joins.run(tasks, joined, join_together)
        return everything(self.plan, found) if len(found) == stretches else None
