"""Stretches of prepared lanes, which lie in the order of time whatever their archives are like."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from engine.archives.canonical import LANE_SEED, codes
from engine.archives.stretches import RowGroups, StretchTuples
from engine.jobs.estimate.outputs import StretchOutputs
from engine.jobs.estimate.plan import Plan, recipe_of
from engine.jobs.estimate.sliced import amounts, sliced
from engine.jobs.estimate.task import Recipe, StretchTask, pairs_between
from engine.jobs.frame import Archives, JobLanes
from engine.lanes.home import lane_home
from engine.lanes.manifest import Prepared
from engine.lanes.parts import parts_of
from engine.lanes.prepare import fingerprint
from engine.lanes.reader import LANE_COLUMNS, LaneFiles
from engine.lanes.stored import Stored
from engine.options.estimate import EstimateOptions
from engine.runtime.cache_folders import LANES, cache_home
from engine.runtime.executors import Stages
from engine.runtime.jit import Floats
from engine.runtime.streams import SIDES, StreamBatch
from engine.sampling.values import columns_of, stored_values


@dataclass(frozen=True)
class LaneRecipe(Recipe):
    """Two streams in lanes that share their keys."""

    lanes: tuple[LaneFiles, ...]

    def read(self, task: StretchTask) -> tuple[Sequence[StretchTuples], int]:
        """Read a stretch of all lanes; return its tuples, and that no row was set aside."""
        ends = [(task.first - window, task.last) for window in self.windows]
        return [self._tuples(side, span) for side, span in enumerate(ends)], 0

    def outputs(self, tuples: Sequence[Any], first: int, last: int) -> StretchOutputs:
        """Return the outputs from one tick to another, of tuples that were read."""
        return pairs_between(self, tuples, first, last)

    def _tuples(self, side: int, span: tuple[int, int]) -> StretchTuples:
        """Return the tuples of a side; the keys of different lanes are different ones."""
        columns, read = self.columns(side), list[pa.Table]()
        names = [*LANE_COLUMNS, *(f"{SIDES[side]}_{name}" for name in columns)]
        for number, files in enumerate(self.lanes):
            stored = (files.left, files.right)[side]
            found = [] if stored is None else _between(stored, names, span)
            if found:
                own = pa.Table.from_batches(found)
                read.append(own.append_column("lane", pa.array([number] * own.num_rows)))
        if not read:
            none = np.empty(0, np.int64)
            return StretchTuples(StreamBatch(none, none, none, np.empty(0)), None, 0)
        table = pa.concat_tables(read)
        if len(self.lanes) > 1:
            table = table.sort_by("_ts")
        ts, key, importance = (
            table.column(name).to_numpy() for name in ("_ts", "_key", "_importance")
        )
        if len(self.lanes) > 1:
            both = [table.column(name).combine_chunks() for name in ("lane", "_key")]
            key = codes(both, LANE_SEED, ts.size)
        batch = StreamBatch(ts, np.arange(ts.size), key, importance)
        payload = table.select(names[len(LANE_COLUMNS) :]).rename_columns(list(columns))
        return StretchTuples(batch, payload if columns else None, 0)


def _between(stored: Stored, names: Sequence[str], span: tuple[int, int]) -> list[pa.RecordBatch]:
    with stored.open() as rows:
        return [own for own in rows.batches(names, between=span) if own.num_rows]


@dataclass(frozen=True)
class LanePlan(Plan):
    """The slices of an exact join that is read from lanes."""

    def stretch(self, place: int, end: int) -> StretchTask:
        """Return the stretch of the slices from one place to another."""
        first, last = int(self.edges[place]), int(self.edges[end]) - 1
        places = [
            own.meeting(first - window, last)
            for own, window in zip(self.groups, self.recipe.windows, strict=True)
        ]
        return StretchTask(place, first, last, (), self.recipe, amounts(self.groups, places))


def prepared_of(options: EstimateOptions, archives: Archives) -> Prepared | None:
    """Return the lanes that were prepared of two archives; None if there are none.

    With one lane a value of the partition columns, and the columns that aggregates read.
    """
    base, columns = options.base, any(spec.columns for spec in options.specs)
    cache = base.cache or cache_home() / LANES
    for payload in (True,) if columns else (False, True):
        mark = fingerprint(
            archives[:2], (base.left_roles, base.right_roles), lanes=1, bad_rows=base.bad_rows,
            payload=payload,
        )  # fmt: skip
        found = lane_home(cache / mark, mark).found()
        if found is not None and all(own.rows for own in found.streams):
            return found
    return None


def lane_plan(
    options: EstimateOptions, archives: Archives, prepared: Prepared, stages: Stages
) -> LanePlan | None:
    """Return the plan of an estimate that reads lanes; None if no lane has both streams.

    Raises
    ------
    WinnowError
        If a column or an aggregate is invalid.
    """
    lanes = tuple(
        own for own in JobLanes(prepared, stages).files if own.left is not None and own.right
    )
    if not lanes:
        return None
    plain = recipe_of(options, archives)
    recipe = LaneRecipe(
        plain.windows, plain.combine, plain.specs, plain.kinds, plain.quarantine, lanes
    )
    names = columns_of(recipe.specs)
    both = [_groups(lanes, side, recipe.columns(side), names[side]) for side in (0, 1)]
    panes = [own.windows.every for own in recipe.specs if own.windows.every]
    start = archives.start_ts(options.base)
    known = [
        [(at, both[at][1][names[at].index(name)]) for at, name in own]
        for own in stored_values(recipe.specs)
    ]
    groups = both[0][0], both[1][0]
    edges, measures = sliced(
        groups, recipe.windows, start, panes, ranges=known, least=recipe.combine == "min"
    )
    return LanePlan(edges, measures, archives[:2], recipe, groups)


def _groups(
    lanes: Sequence[LaneFiles], side: int, columns: Sequence[str], values: Sequence[str]
) -> tuple[RowGroups, list[Floats]]:
    """Return what can be read alone of a stream, as row groups, and ranges of columns in them."""
    names = [f"{SIDES[side]}_{name}" for name in columns]
    found = [
        (number, *part)
        for number, files in enumerate(lanes)
        for stored in [(files.left, files.right)[side]]
        for part in (() if stored is None else parts_of(stored, names, values))
    ]
    lane, rows, low, high, size, keys = np.array([own[:-1] for own in found], np.int64).T
    place = np.arange(rows.size)
    groups = RowGroups(lane, place, rows, low, high, size, keys, np.cumsum(rows) - rows, 0 * rows)
    return groups, [*np.moveaxis(np.array([own[-1] for own in found]), 1, 0)] if values else []
