"""Estimates of joins of archives without order or statistics: a sample of keys, not of time.

Two passes: over the keys alone, which counts the rows of every part of the keys, and over all rows,
which keeps those of the parts that are drawn. Tuples join only within a part, so that a part is
joined exactly from them (a universe sample; Horvitz and Thompson's estimates over parts, drawn with
chances by their sizes). A hot key makes its part so large that it is drawn for certain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives.source import Archive
from engine.archives.stretches import RowGroups, StretchTuples
from engine.jobs.estimate.decide import PILOT
from engine.jobs.estimate.draw import Joins
from engine.jobs.estimate.joined import Joining
from engine.jobs.estimate.outputs import Pairs
from engine.jobs.estimate.plan import Plan, recipe_of
from engine.jobs.estimate.report import Estimation, build_report, limits_of, until
from engine.jobs.estimate.scan import Scanned, ScanTask, Source, by_group, scan, sources_of
from engine.jobs.estimate.seen import Seen, everything
from engine.jobs.estimate.sliced import Task
from engine.jobs.estimate.sums import sums_of
from engine.jobs.estimate.task import Joined, PairRecipe
from engine.jobs.frame import Archives, open_job
from engine.lanes.key_parts import BUCKETS
from engine.options.estimate import FOOTERS, EstimateOptions
from engine.report.envelope import windows_report
from engine.runtime.errors import InputError, NoStretchesError
from engine.runtime.executors import Progress, Stages
from engine.runtime.jit import Floats, Ints
from engine.runtime.work import ANSWERING
from engine.sampling.stretches.measures import Measures

_PART, _MOST = 0.1, 1024
"""Share of the rows that the first draws are worth, about, and the most draws: a pass reads all
rows, however few it keeps."""
_HELD, _AT_ONCE = 20_000_000, 16
"""Rows that a pass keeps, about, where everything is joined, and joins that these make."""


_PREPARE = "or have winnow prepare write its lanes, with the same columns and one lane"


@dataclass(frozen=True)
class BucketTask:
    """A part of the keys to be joined."""

    place: int
    sides: tuple[StretchTuples, StretchTuples]
    recipe: PairRecipe
    first: int
    """First tick whose outputs count."""
    read: dict[str, int]


def join_bucket(task: Any) -> Joined:  # noqa: ANN401 - a BucketTask
    """Join a part of the keys exactly."""
    begun = time.perf_counter()
    recipe = task.recipe
    windows = recipe.windows[0], recipe.windows[1]
    pairs = Pairs(task.sides, windows, recipe.combine, task.first)
    sums = sums_of(pairs, recipe.specs, recipe.kinds)
    return Joined(task.place, sums, 0, time.perf_counter() - begun, sum(pairs.sizes))


class Place(NamedTuple):
    """A part of the keys that is to be read and joined."""

    place: int
    read: Mapping[str, int]
    """Nothing yet."""


@dataclass(frozen=True)
class KeyPlan(Plan):
    """The parts of the keys; places stand for ticks, and what was read at once for row groups."""

    sources: tuple[Source, ...]
    counts: tuple[Ints, Ints]
    """Rows of every part, by side."""
    first: int
    """First tick whose outputs count."""

    counted = "tuples"

    work = staticmethod(join_bucket)

    @cached_property
    def costs(self) -> Floats:
        """Tuples of each part, (slices,) float64."""
        found: Floats = (self.counts[0] + self.counts[1]).astype(np.float64)
        return found

    @cached_property
    def all(self) -> dict[str, int]:
        """What an exact join reads and joins."""
        return self.read_by(self.sources) | {"tuples": int(self.costs.sum())}

    def read_by(self, sources: Sequence[Source]) -> dict[str, int]:
        """Return what a pass over all rows reads."""
        return {
            "bytes": sum(own.bytes for own in sources),
            "row_groups": sum(own.row_groups for own in sources),
            "rows": int(sum(own.rows.sum() for own in self.groups)),
        }

    @property
    def odd(self) -> Ints:
        """None: a part with many pairs is large."""
        return np.empty(0, np.int64)

    def task(self, place: int, draws: int = 0) -> Task:
        """Return the task of a part, which has no tuples yet."""
        del draws
        return Place(place, {})


@dataclass
class KeyJoins(Joins):
    """Reads all rows for each round, and joins parts of the keys."""

    progress: Progress = field(default=lambda *_: None)
    seconds: float = 0.0
    """That passes took, on all cores together."""

    def run(
        self,
        tasks: Sequence[Any],
        found: Callable[[Any], None],
        work: Callable[[Any], Any] | None = None,
        least: int = 0,
    ) -> None:
        """Read the parts of the keys and join them."""
        assert work is None  # noqa: S101 - nothing else is done with them
        of = np.full(BUCKETS, -1)
        of[[task.place for task in tasks]] = np.arange(len(tasks))
        self._join(of, [task.place for task in tasks], found, least)

    def together(self, places: Ints, found: Callable[[Any], None]) -> None:
        """Read many parts of the keys and join them, not told apart."""
        of = np.full(BUCKETS, -1)
        of[places] = np.arange(places.size) % _AT_ONCE
        self._join(of, list(range(min(_AT_ONCE, places.size))), found)

    def _join(
        self, of: Ints, names: Sequence[int], found: Callable[[Any], None], least: int = 0
    ) -> None:
        """Join groups of the parts: which group each part is of, and the names of the groups."""
        plan = self.plan
        assert isinstance(plan, KeyPlan)  # noqa: S101 - it is made for one
        recipe = plan.recipe
        assert isinstance(recipe, PairRecipe)  # noqa: S101 - of which it is made
        try:
            sides = self._read(plan, of, len(names))
        except KeyboardInterrupt:
            self.stopped = "interrupted"
            ANSWERING.set()
            return
        joined = [
            BucketTask(name, (left, right), recipe, plan.first, _joined_of(left, right))
            for name, left, right in zip(names, *sides, strict=True)
        ]
        super().run(joined, found, least=least)

    def _read(self, plan: KeyPlan, of: Ints, groups: int) -> list[list[StretchTuples]]:
        """Return the tuples by side and group."""
        tasks = [ScanTask(source, of >= 0) for source in plan.sources]
        found: list[list[Scanned]] = [[], []]
        for done, one in enumerate(self.executor.map(scan, tasks)):
            found[one.side].append(one)
            self.seconds += one.seconds
            self.rejected += 0 if one.tuples is None else one.tuples.rejected
            self.progress("all rows", done + 1, len(tasks))
        self.read.update(plan.read_by(plan.sources))
        return [by_group(own, of, groups) for own in found]


def _joined_of(left: StretchTuples, right: StretchTuples) -> dict[str, int]:
    tuples = left.batch.ts.size + right.batch.ts.size
    return {"bytes": 0, "row_groups": 0, "rows": 0, "tuples": tuples}


@dataclass
class KeyJoining(Joining):
    """Estimates aggregates of an exact join from parts of its keys."""

    def _first(self) -> int:
        """Return the parts of the first round."""
        size = _PART * min(self.cost_of_all, _HELD / 2)
        return max(1, min(self.plan.worth, max(PILOT, min(_MOST, self.most(size)))))

    def whole(self) -> Seen | None:
        """Join everything, in as many passes as fit."""
        size, found = np.cumsum(self.plan.costs) // _HELD, list[Joined]()
        for part in np.unique(size).tolist():
            places = np.flatnonzero((size == part) & (self.plan.measures.tuples > 0))
            if not places.size:
                continue
            before, joins = len(found), self.joins
            assert isinstance(joins, KeyJoins)  # noqa: S101 - made with it
            joins.together(places, found.append)
            if len(found) - before < min(_AT_ONCE, places.size):
                return None
        return everything(self.plan, found)


def estimate_by_keys(
    options: EstimateOptions, stages: Stages, error: NoStretchesError
) -> Estimation:
    """Estimate totals of the exact join of two archives of which no stretch can be read alone.

    Raises
    ------
    InputError
        If something is asked for that keys do not tell.
    """
    begun = time.perf_counter()
    if options.read is not None:
        raise InputError(f"--read is of archives of which parts can be read: {error}, {_PREPARE}")
    if any(spec.every is not None for spec in options.specs):
        raise InputError(f"every is of parts of time, and keys have none: {error}, {_PREPARE}")
    archives = open_job(options.base)
    with stages.timed("keys"):
        plan = _plan(options, archives, stages, error)
    joins = KeyJoins(
        plan, stages.executor, options.base.seed, until(options, begun), progress=stages.progress
    )
    joins.read["bytes"] = passed = sum(own.key_bytes for own in plan.sources)
    with stages.timed("stretches"):
        asked = KeyJoining(limits_of(options), plan, joins, stages.progress, plan, FOOTERS)
        outcome = asked.run()
    tables = {
        spec.text: own.table for spec, own in zip(options.specs, outcome.estimates, strict=True)
    }
    none = pa.table({"begin": pa.array([], pa.int64()), "end": pa.array([], pa.int64())})
    window = windows_report(options.names, plan.recipe.windows, archives.unit, archives.zone)
    report = build_report(options, plan, joins, outcome, tables, none, stages, window)
    content = report.content
    content["slices"]["ticks"] = None
    content["exact"]["seconds"] = _exact_seconds(joins, plan)
    how = "sample of keys" if outcome.whole is None else "exact join"
    content.update(
        {"how": how, "why": outcome.whole or str(error), "sizes": "keys",
         "pass": passed / max(1, plan.all["bytes"])}
    )  # fmt: skip
    return Estimation(report, tables, none)


def _exact_seconds(joins: KeyJoins, plan: KeyPlan) -> float:
    """Return about how long one pass and the joins of all parts take."""
    cores = max(1, joins.executor.slots or joins.executor.threads)
    passes = max(1, joins.read["rows"] // max(1, plan.all["rows"]))
    share = joins.read["tuples"] / max(1, plan.all["tuples"])
    return (joins.seconds / passes + sum(joins.rates) / max(share, 1e-9)) / cores


def _plan(
    options: EstimateOptions, archives: Archives, stages: Stages, error: NoStretchesError
) -> KeyPlan:
    """Return the parts of the keys, once their rows are counted."""
    recipe = recipe_of(options, archives)
    sources = tuple(
        own for side, archive in enumerate(archives[:2]) for own in _sources(archive, side, recipe)
    )
    size = sum(own.key_bytes + own.bytes for own in sources)
    stage = f"keys; all rows are read, {size:,} bytes, for {error.short}"
    stages.progress(stage, 0, len(sources))
    counts, rows = np.zeros((2, BUCKETS), np.int64), list[list[int]]([[], []])
    tasks = [ScanTask(own, None) for own in sources]
    for done, one in enumerate(stages.executor.map(scan, tasks)):
        counts[one.side] += one.counts
        rows[one.side].append(one.rows)
        stages.progress(stage, done + 1, len(sources))
    left, right = counts.astype(np.float64)
    pairs = left * right
    some = pairs > 0
    tuples, alike = np.where(some, left + right, 0.0), np.minimum(left, right)
    measures = Measures(*(own / max(1.0, own.sum()) for own in (pairs, tuples, alike)))
    start = archives.start_ts(options.base)
    return KeyPlan(
        np.arange(BUCKETS + 1), measures, archives[:2], recipe,
        (_at_once(sources, 0, rows[0]), _at_once(sources, 1, rows[1])), sources,
        (counts[0], counts[1]), np.iinfo(np.int64).min // 4 if start is None else start,
    )  # fmt: skip


def _at_once(sources: Sequence[Source], side: int, rows: Sequence[int]) -> RowGroups:
    """Return what is read of an archive at once, as row groups of unknown times."""
    own = [one for one in sources if one.side == side]
    none = np.zeros(len(own), np.int64)
    bytes_, key_bytes = (
        np.array([getattr(one, name) for one in own], np.int64) for name in ("bytes", "key_bytes")
    )
    counted = np.array(rows, np.int64)
    first = np.cumsum(counted) - counted
    return RowGroups(none, none, counted, none, none, bytes_, key_bytes, first, none)


def _sources(archive: Archive, side: int, recipe: PairRecipe) -> list[Source]:
    return sources_of(
        archive, side, recipe.roles[side], recipe.joined[side], recipe.columns(side),
        quarantine=recipe.quarantine,
    )  # fmt: skip
