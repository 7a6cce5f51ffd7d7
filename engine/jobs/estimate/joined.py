"""Estimates of an exact join: footers, rounds of stretches, or everything if that pays."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.jobs.estimate.cells import Cells, Estimated
from engine.jobs.estimate.decide import Estimating, Seen, everything
from engine.jobs.estimate.draw import Joins
from engine.jobs.estimate.plan import Plan, plan_of
from engine.jobs.estimate.report import (
    Estimation,
    build_report,
    limits_of,
    time_table,
    until,
)
from engine.jobs.estimate.task import Joined, PairRecipe
from engine.jobs.frame import open_job
from engine.options.estimate import EstimateOptions
from engine.runtime.executors import Stages
from engine.runtime.jit import Floats
from engine.sampling.stretches.interval import Answer, answer


def estimate_join(options: EstimateOptions, stages: Stages) -> Estimation:
    """Estimate totals of the exact join of two archives."""
    begun = time.perf_counter()
    stages.progress("footers", 0, 1)
    with stages.timed("footers"):
        archives = open_job(options.base)
        plan = plan_of(options, archives)
    stages.progress("footers", 1, 1)
    facts = plan.recipe.facts if isinstance(plan.recipe, PairRecipe) else None
    fact = {}
    if facts is not None:
        with stages.timed("facts"):
            fact = {"fact": facts.report}
    joins = Joins(plan, stages.executor, options.base.seed, until(options, begun))
    with stages.timed("stretches"):
        asked = Joining(limits_of(options), plan, joins, stages.progress, plan)
        outcome = asked.run()
    by_time = time_table(plan, lambda begin, end: asked.between(outcome.seen, begin, end))
    tables = {
        spec.text: own.table for spec, own in zip(options.specs, outcome.estimates, strict=True)
    }
    report = build_report(options, plan, joins, outcome, tables, by_time, stages, archives)
    report.content.update(fact)
    return Estimation(report, tables, by_time)


@dataclass
class Joining(Estimating):
    """Estimates aggregates of an exact join."""

    join: Plan
    """The plan."""

    def estimates(self, own: Seen) -> list[Estimated]:
        """Return the estimates of every aggregate."""
        specs = range(len(self.join.recipe.specs))
        return [Cells(self.join, own, i).estimated(self.limits.confidence) for i in specs]

    def first(self, own: Seen) -> Answer:
        """Return the first aggregate over all of its windows and groups."""
        return self.between(own, 0, self.plan.slices)

    def between(self, own: Seen, begin: int, end: int) -> Answer:
        """Return the first aggregate over its groups, in slices from one place to another."""
        cells = Cells(self.join, own, 0, grouped=False)
        [(_, cell)] = cells.cells(begin, end)
        return answer(cell, self.limits.confidence, average=cells.spec.function == "avg")

    def totals(self, found: Sequence[Joined]) -> Floats:
        """Return what slices came to, a column an aggregate."""
        return np.array([[one.sums[:, 0].sum() for one in own.sums] for own in found])

    def whole(self) -> Seen | None:
        """Join everything."""
        tasks = [self.join.stretch(*stretch) for stretch in self.join.whole()]
        found = list[Joined]()

        def joined(one: Joined) -> None:
            found.append(one)
            self.progress("exact join", len(found), len(tasks))

        self.joins.run(tasks, joined)
        return everything(self.plan, found) if len(found) == len(tasks) else None
