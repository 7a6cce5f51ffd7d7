"""Runs an estimate: footers, rounds of stretches, and the exact join where those do not pay."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.jobs.estimate.cells import Cells, Estimated, Seen, everything, seen
from engine.jobs.estimate.draw import Joins, Round
from engine.jobs.estimate.plan import Plan, plan_of
from engine.jobs.estimate.report import Outcome, build_report, time_table
from engine.jobs.estimate.task import Joined
from engine.jobs.frame import open_job
from engine.options.estimate import EstimateOptions
from engine.report.envelope import Report
from engine.report.estimate_plot import check_plot, draw_plot
from engine.runtime.executors import Executor, Progress, Stages
from engine.runtime.jit import Floats
from engine.sampling.stretches.design import chances
from engine.sampling.stretches.interval import FEWEST, Answer, answer, draws_needed
from engine.sampling.stretches.slices import FIRST

PILOT = 24
"""Slices of the first round."""
PART = 0.4
"""Share of the bytes that may be read which the first round takes, at most."""
GROWTH = 4
"""Times as many slices a round, at most: what a few say of the spread is vague."""
HALF = 0.5
"""Share of the exact join's bytes that stretches may take, about; else it is the better way."""
_HOPE = 3.0
"""A spread may turn out so many times smaller with more slices, which are closer in time."""


class Estimation(NamedTuple):
    """What an estimate gives."""

    report: Report
    aggregates: dict[str, pa.Table]
    """Estimates by the texts that asked for them, as `engine.jobs.estimate.cells.Estimated` has
    them."""
    by_time: pa.Table
    """The first of them by parts of time: begin, end, estimate, low, high."""


def run_estimate(
    options: EstimateOptions, executor: Executor, progress: Progress | None = None
) -> Estimation:
    """Estimate totals of the join of two archives.

    The same for any executor, unless seconds limit it.
    """
    stages = Stages(executor, progress)
    begun = time.perf_counter()
    if options.plot is not None:
        check_plot(options.plot)
    stages.progress("footers", 0, 1)
    with stages.timed("footers"):
        plan = plan_of(options, open_job(options.base))
    stages.progress("footers", 1, 1)
    until = None if options.seconds is None else begun + options.seconds
    joins = Joins(plan, executor, options.base.seed, until)
    with stages.timed("stretches"):
        outcome = _Estimating(options, plan, joins, stages.progress).run()
    by_time = time_table(plan, outcome.seen, options.confidence)
    if options.plot is not None:
        with stages.timed("plot"):
            draw_plot(options.plot, by_time, options.aggregates[0], plan.archives.unit)
    report = build_report(options, plan, joins, outcome, by_time, stages)
    tables = {
        spec.text: own.table for spec, own in zip(options.specs, outcome.estimates, strict=True)
    }
    return Estimation(report, tables, by_time)


@dataclass
class _Estimating:
    """Decides what to draw."""

    options: EstimateOptions
    plan: Plan
    joins: Joins
    progress: Progress
    sizes: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = self.plan.measures.sizes(FIRST)

    def run(self) -> Outcome:
        """Draw until the target or a limit is reached, or join exactly."""
        joins, number, rounds = self.joins, 0, list[Round]()
        draws = self._first()
        best: tuple[Seen, list[Estimated]] | None = None
        while True:
            why = self._exact_pays(draws)
            if why is not None:
                return self._exact(why, rounds, best)
            own = joins.round(number, draws, self.sizes, self._told)
            before = rounds[-1].joined if rounds else 0
            if own.certain_left or own.joined <= before:
                break  # stopped: the round before says more
            rounds.append(own)
            whole = seen(joins.found, own)
            best = whole, self._estimates(whole)
            if joins.stopped is not None or self._enough(own, best[1]):
                break
            self._learn(own)
            following = self._next(own, best[1])
            if following is None:
                break
            number, draws = number + 1, following
        if best is None:
            raise KeyboardInterrupt
        return Outcome(*best, rounds, None, self._reach(best[1]))

    @property
    def _may_join_all(self) -> bool:
        return self.options.read is None and self._size() >= self.plan.all["bytes"]

    def _learn(self, own: Round) -> None:
        """Set the sizes of slices by what those of a round came to."""
        places = own.places.by_chance
        joined = [self.joins.found[place] for place in places.tolist()]
        totals = np.array([[one.sums[:, 0].sum() for one in own.sums] for own in joined])
        measures = self.plan.measures
        self.sizes = measures.sizes(measures.shares(places, own.sizes[places], totals))

    def _first(self) -> int:
        """Return the slices of the first round."""
        size = self._size()
        pilot = min(PILOT, self._most(PART * size))
        if self.options.target is None and pilot < FEWEST:
            return max(1, min(PILOT, self._most(size)))
        return max(1, pilot)

    def _estimates(self, own: Seen) -> list[Estimated]:
        specs = range(len(self.plan.recipe.specs))
        return [Cells(self.plan, own, i).estimated(self.options.confidence) for i in specs]

    @staticmethod
    def _reach(found: Sequence[Estimated]) -> float:
        """Return how far the widest interval reaches."""
        return max((own.within for one in found for own in one.answers), default=math.inf)

    def _enough(self, own: Round, found: Sequence[Estimated]) -> bool:
        """Return whether the target is reached; by a pilot not by chance, as far as it can tell."""
        if self.options.target is None or self._reach(found) > self.options.target:
            return False
        return own.number > 0 or self._needed(own, found) <= own.draws

    def _expected(self, draws: int) -> float:
        """Return the bytes that so many draws read on average."""
        return float((chances(self.sizes, draws) * self.plan.costs).sum())

    def _most(self, size: float) -> int:
        """Return how many draws read so many bytes."""
        low, high = 0, self.plan.worth
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._expected(middle) <= size else (low, middle - 1)
        return low

    def _affordable(self) -> int:
        """Return how many draws time and bytes permit."""
        return self._most(self._size())

    def _size(self) -> float:
        """Return how many bytes may still be read, as far as is known."""
        options, joins, sizes = self.options, self.joins, [math.inf]
        if options.read is not None:
            sizes.append(options.read * self.plan.all["bytes"] - joins.read["bytes"])
        if joins.until is not None and joins.read["bytes"]:
            now = time.perf_counter()
            begun = joins.until - (options.seconds or 0.0)
            rate = joins.read["bytes"] / max(now - begun, 1e-9)
            sizes.append(0.9 * rate * max(joins.until - now, 0.0))
        return min(sizes)

    def _needed(self, own: Round, found: Sequence[Estimated], hope: float = 1.0) -> int:
        """Return the draws by which all estimates should reach the target."""
        target = self.options.target or 0.0
        wanted = (
            one.wanted._replace(spread=one.wanted.spread / hope) for one in found if one.answers
        )
        counts = [draws_needed(self.sizes, each, target, own.draws) for each in wanted]
        return max(counts, default=self.plan.worth)

    def _next(self, own: Round, found: Sequence[Estimated]) -> int | None:
        """Return how many slices to draw next, None if that leads no further."""
        most = GROWTH * own.draws
        if self.options.target is not None:
            if self._may_join_all:
                hoped = self._expected(self._needed(own, found, _HOPE))
                if hoped > HALF * self.plan.all["bytes"]:
                    return self.plan.worth
            most = min(most, max(self._needed(own, found), own.draws + -(-own.draws // 3)))
        else:
            most = self.plan.worth
        draws = min(most, self._affordable())
        return draws if draws > own.draws else None

    def _exact_pays(self, draws: int) -> str | None:
        """Return why everything is to be joined, None if it is not."""
        if not self._may_join_all:
            return None
        slices = self.plan.worth
        if slices < 2 * FEWEST:
            return f"stretches in all: {slices:,}, of which a sample would say little"
        target = 100 * (self.options.target or 0.0)
        cost = self.joins.read["bytes"] + self._expected(draws)
        if cost > HALF * self.plan.all["bytes"]:
            return (
                f"estimates within {target:g} % take {draws:,} of {slices:,} stretches or more, "
                f"{100 * cost / self.plan.all['bytes']:.0f} % of the bytes that everything has"
            )
        return None

    def _exact(
        self, why: str, rounds: list[Round], best: tuple[Seen, list[Estimated]] | None
    ) -> Outcome:
        """Join everything."""
        tasks = [self.plan.task(*stretch) for stretch in self.plan.whole()]
        found = list[Joined]()

        def joined(one: Joined) -> None:
            found.append(one)
            self.progress("exact join", len(found), len(tasks))

        self.joins.run(tasks, joined)
        if len(found) < len(tasks):
            if best is None:
                raise KeyboardInterrupt
            return Outcome(*best, rounds, None, self._reach(best[1]))
        whole = everything(self.plan, found)
        return Outcome(whole, self._estimates(whole), rounds, why, 0.0)

    def _told(self, own: Round, done: int, tasks: int) -> None:
        """Show how far a round got, and its estimate of the first aggregate."""
        stage = "stretches"
        if not own.certain_left:
            found = total(self.plan, seen(self.joins.found, own), self.options.confidence)
            if np.isfinite(found.within):
                stage += f": {found.estimate:,.6g} within {100 * found.within:.2g} %"
        self.progress(stage, done, tasks)


def total(plan: Plan, own: Seen, confidence: float) -> Answer:
    """Return the first aggregate over all of its windows and groups."""
    cells = Cells(plan, own, 0, grouped=False)
    [(_, cell)] = cells.cells(0, plan.slices)
    return answer(cell, confidence, average=cells.spec.function == "avg")
