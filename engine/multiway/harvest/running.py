"""The clock run beyond adaptations, in compiled code: settings follow one from the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.harvest import layout
from engine.multiway.harvest.joining import Arrivals, Batch, Learning, Run, run_joined
from engine.multiway.harvest.layout import WHOLE, Clock, Plans, ReadPlan
from engine.multiway.harvest.learning.adaptation import Adapting, adapt, skip_empty
from engine.multiway.harvest.learning.intervals import Chosen, chosen
from engine.multiway.harvest.learning.learnt_layout import JoinShape
from engine.multiway.harvest.probing.found import Found
from engine.multiway.harvest.probing.walk_layout import Walk, WalkJoin
from engine.multiway.predicate import Condition
from engine.runtime.jit import Ints, jit


class Quick(NamedTuple):
    """What compiled code does by itself at adaptations."""

    adapts: bool
    """Whether it adapts."""
    harvests: bool
    """Whether it makes settings."""
    shape: JoinShape


@jit
def beside(whole: Plans, plan: ReadPlan) -> Plans:
    """Return the first of some plans, and a plan behind it."""
    m, split = plan.runs.shape[0], whole.first[0, -1]
    runs, first = np.empty((2, m, m), np.int64), np.empty((2, m + 1), np.int64)
    runs[0], runs[1], first[0], first[1] = whole.runs[0], plan.runs, whole.first[0], plan.first
    first[1] += split
    youngest = np.concatenate((whole.youngest[:split], plan.youngest))
    oldest = np.concatenate((whole.oldest[:split], plan.oldest))
    return Plans(plan.order, runs, first, youngest, oldest)


@jit
def same_plan(one: ReadPlan, other: ReadPlan) -> bool:
    """Return whether plans of the same join orders read the same."""
    return (
        one.youngest.size == other.youngest.size
        and bool(np.all(one.runs == other.runs))
        and bool(np.all(one.first == other.first))
        and bool(np.all(one.youngest == other.youngest))
        and bool(np.all(one.oldest == other.oldest))
    )


@jit
def run_on(
    join: WalkJoin, condition: Condition, clock: Clock, arrivals: Arrivals, run: Run, known: Found,
    batch: Batch, walk: Walk, learning: Learning, adapting: Adapting, quick: Quick, plan: ReadPlan,
    batched: Ints,
) -> tuple[int, bool, WalkJoin, list[ReadPlan], Chosen]:  # fmt: skip
    """Run the clock, and adapt, until something has to be done that this does not do.

    Returns
    -------
    int
        See `run_joined`; `NOTED`: take over what is recorded.
    bool
        Whether the plan is made.
    WalkJoin
        With the plans in force.
    list of ReadPlan
        The plan that was in force first, and those that came after it.
    Chosen
        The last setting; without counts if none was made.
    """
    ready, plans = run.ready, [plan]
    m = plan.runs.shape[0]
    last = Chosen(np.zeros((0, m - 1), np.int64), np.zeros((m, m - 1, 1), np.int64), plan)
    while True:
        throttle = adapting.throttle[0]
        own = Run(
            run.cost, throttle if throttle < 1 else WHOLE, run.number + len(plans) - 1, ready,
            run.until, run.foreseen,
        )  # fmt: skip
        why = run_joined(
            join, condition, clock, arrivals, own, known, batch, walk, learning, adapting,
            batched,
        )  # fmt: skip
        if why == layout.ADAPT and quick.adapts:
            adapt(clock, adapting)
            skip_empty(join.streams, clock, arrivals.order, arrivals.t0, adapting)
            ready = ready and not quick.harvests
            if adapting.number[0] < adapting.done.shape[0]:
                continue
            why = layout.NOTED
        elif why == layout.MORE and not ready and quick.adapts:
            found = chosen(
                quick.shape, adapting.throttle[0], adapting.rates, adapting.comparisons,
                adapting.passes, adapting.ages, last.counts,
            )  # fmt: skip
            if found.counts.shape[0]:
                last, ready = found, True
                if same_plan(plans[-1], found.plan):
                    continue
                plans.append(found.plan)
                join = WalkJoin(
                    join.streams, join.rules, join.constant, join.matching, join.admitted,
                    beside(join.plans, found.plan),
                )  # fmt: skip
                if not run.foreseen:
                    continue
        return why, ready, join, plans, last
