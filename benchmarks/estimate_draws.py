"""Estimates of one join with many seeds: what slices come to is found out once.

An estimate differs by its seed in which slices it draws, so footers are read once, every slice is
joined or replayed once, and the rounds are the product's own.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from engine.jobs.estimate.budgeted import plan_of as replay_plan
from engine.jobs.estimate.budgeted import table_of
from engine.jobs.estimate.decide import Estimating
from engine.jobs.estimate.draw import Joins
from engine.jobs.estimate.joined import Joining
from engine.jobs.estimate.plan import plan_of
from engine.jobs.estimate.recall import Replaying
from engine.jobs.estimate.report import limits_of
from engine.jobs.frame import open_job
from engine.options.estimate import ESTIMATE, estimate_of
from engine.runtime.executors import SerialExecutor, Stages


class Drawn(NamedTuple):
    """An estimate with one seed."""

    tables: dict[str, pa.Table]
    """By aggregate, or by measure."""
    share: float
    """Of the bytes, that was read."""
    whole: bool
    """Whether everything was joined or replayed."""
    slices: int
    """Of which some were drawn."""


class Remembering(SerialExecutor):
    """Does a task once, however many seeds draw it."""

    def __init__(self) -> None:
        self._found: dict[object, Any] = {}

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        """Yield ``function(item)`` for every item, in order."""
        for item in items:
            if not hasattr(item, "place"):
                yield function(item)
                continue
            twice = any(getattr(item, name, ()) for name in ("again", "halved"))
            known = function, item.place, *sorted(item.read.items()), twice
            if known not in self._found:
                self._found[known] = function(item)
            yield self._found[known]


def estimates(given: dict[str, Any], seeds: int, executor: Remembering) -> Iterator[Drawn]:
    """Yield what `winnow.estimate` finds with each seed; without its report."""
    options = estimate_of(ESTIMATE.from_keywords(given))
    with tempfile.TemporaryDirectory() as folder:
        if options.base.exact:
            plan: Any = plan_of(options, open_job(options.base))
        else:
            plan, _ = replay_plan(options, Stages(executor, None), Path(folder))
        for seed in range(seeds):
            joins = Joins(plan, executor, seed)
            asked: Estimating
            if options.base.exact:
                limits = limits_of(options)
                asked = Joining(limits, plan, joins, _silent, plan, options.sizes)
            else:
                own = replace(plan, seed=seed)
                joins.plan = own
                asked = Replaying(limits_of(options), own, joins, _silent, own)
            outcome = asked.run()
            if options.base.exact:
                found = zip(options.specs, outcome.estimates, strict=True)
                tables = {spec.text: one.table for spec, one in found}
            else:
                [one] = outcome.estimates
                drawn = len(outcome.seen.certain) + len(outcome.seen.by_chance)
                tables = {name: table_of(own, drawn) for name, own in one.cells[0].answers.items()}
            share = joins.read["bytes"] / plan.all["bytes"]
            yield Drawn(tables, share, outcome.whole is not None, plan.slices)


def _silent(stage: str, done: int, total: int) -> None:
    del stage, done, total
