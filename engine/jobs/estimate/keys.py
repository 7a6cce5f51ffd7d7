"""What slices are worth by their keys: a pass over the join attributes alone, before any draw.

Keys that are hot for a short time have no more rows than others, but many times the outputs, and no
sample shows those that it misses. Rows are spread evenly over the time of their row group, in their
order, and joined by key within the windows: times need not be read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives.canonical import LANE_SEED, canonical, codes
from engine.archives.normalise import decoded
from engine.archives.roles import JoinColumns
from engine.archives.stretches import FileGroups, RowGroups, group_columns, to_read
from engine.exact import count_pairs
from engine.jobs.estimate.draw import Joins
from engine.jobs.estimate.plan import Plan
from engine.jobs.estimate.task import PairRecipe
from engine.runtime.executors import Progress
from engine.runtime.jit import Floats, Ints
from engine.runtime.streams import SIDES, StreamBatch


class KeyGroups(NamedTuple):
    """Row groups of one file whose keys are read."""

    file: FileGroups
    low: tuple[int, ...]
    high: tuple[int, ...]
    """`low`, `high`: First and last tick of each."""


@dataclass(frozen=True)
class KeyTask:
    """Slices whose keys are to be joined."""

    place: int
    """Of the first of them."""
    edges: tuple[int, ...]
    """First tick of each, and the tick after the last."""
    files: tuple[tuple[KeyGroups, ...], tuple[KeyGroups, ...]]
    on: tuple[tuple[str, ...], tuple[str, ...]]
    joined: JoinColumns
    windows: tuple[int, int]
    read: dict[str, int]
    """Bytes of the keys; rows and row groups count where stretches are read."""


class KeyPairs(NamedTuple):
    """What the keys of slices make."""

    place: int
    pairs: Floats
    """(slices,) float64."""
    seconds: float
    rejected: int = 0
    """Rows that were set aside: not known, as times and importances are not read."""


def pairs_by_keys(task: KeyTask) -> KeyPairs:
    """Read the keys of some slices and count the pairs that they make in each."""
    begun = time.perf_counter()
    left, right = (
        _spread(task.files[side], name, task.on[side], task.joined)
        for side, name in enumerate(SIDES)
    )
    found = np.zeros(len(task.edges) - 1)
    for at in range(found.size):
        first, after = task.edges[at], task.edges[at + 1]
        mine, its = (
            _between(own, first - window, after)
            for own, window in zip((left, right), task.windows, strict=True)
        )
        found[at] = count_pairs(mine, its, *task.windows, start_ts=first, threads=1).outputs
    return KeyPairs(task.place, found, time.perf_counter() - begun)


def _spread(
    files: Sequence[KeyGroups], side: str, on: Sequence[str], joined: JoinColumns
) -> StreamBatch:
    """Return the rows that have a key, as far as it and the order of rows tell of them."""
    times, keys = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for file, low, high in files:
        rows, key = keys_of(group_columns(file, side, [*dict.fromkeys(on)]), on, joined)
        parts = [
            begin + _even(end - begin + 1, last - first)
            for begin, end, (first, last) in zip(low, high, file.rows, strict=True)
        ]
        times.append(np.concatenate(parts)[rows])
        keys.append(key)
    ts, key = np.concatenate(times), np.concatenate(keys)
    order = np.argsort(ts, kind="stable")
    return StreamBatch(ts[order], np.arange(ts.size), key[order], np.ones(ts.size))


def keys_of(table: pa.Table, on: Sequence[str], joined: JoinColumns) -> tuple[Ints, Ints]:
    """Return the places of the rows that have every join attribute, and their keys."""
    table, rows = decoded(table), np.arange(table.num_rows)
    lacking = [table.column(name).is_null() for name in on if table.column(name).null_count]
    if lacking:
        rows = np.flatnonzero(~np.logical_or.reduce([own.to_numpy() for own in lacking]))
        table = table.take(rows)
    keys = [canonical(table.column(name), kind) for name, kind in zip(on, joined.keys, strict=True)]
    return rows, codes(keys, LANE_SEED, rows.size)


def _even(ticks: int, rows: int) -> Ints:
    """Return ticks after the first at which so many rows come, evenly."""
    found: Ints = np.floor((np.arange(rows) + 0.5) * (ticks / rows)).astype(np.int64)
    return found


def _between(own: StreamBatch, first: int, after: int) -> StreamBatch:
    part = slice(*np.searchsorted(own.ts, [first, after]).tolist())
    return StreamBatch(own.ts[part], own.row[part], own.key[part], own.importance[part])


def has_keys(plan: Plan) -> bool:
    """Return whether tuples join by equal keys alone."""
    return isinstance(plan.recipe, PairRecipe) and plan.recipe.facts is None


def cost_of_keys(plan: Plan) -> int:
    """Return the bytes that the pass reads."""
    return sum(int(own.key_bytes.sum()) for own in plan.groups)


def with_keys(plan: Plan, joins: Joins, progress: Progress) -> Plan | None:
    """Return the plan with what keys tell of its slices; None if the pass was stopped."""
    tasks = [_task(plan, *both) for both in plan.whole(apart=False)]
    pairs, done = np.zeros(plan.slices), 0

    def found(one: KeyPairs) -> None:
        nonlocal done
        done += 1
        pairs[one.place : one.place + one.pairs.size] = one.pairs
        progress("keys", done, len(tasks))

    joins.run(tasks, found, pairs_by_keys)
    if done < len(tasks):
        return None
    return replace(plan, measures=plan.measures.with_keys(pairs))


def _task(plan: Plan, place: int, end: int) -> KeyTask:
    recipe, edges = plan.recipe, plan.edges[place : end + 1]
    assert isinstance(recipe, PairRecipe)  # noqa: S101 - others have no keys
    files, size = [], 0
    for archive, own, window in zip(plan.archives, plan.groups, recipe.windows, strict=True):
        at = own.meeting(int(edges[0]) - window, int(edges[-1]) - 1)
        size += int(own.key_bytes[at].sum())
        files.append(tuple(_with_times(file, own) for file in to_read(archive, own, at)))
    return KeyTask(
        place, tuple(edges.tolist()), (files[0], files[1]),
        (recipe.roles[0].on, recipe.roles[1].on), recipe.joined[0],
        (recipe.windows[0], recipe.windows[1]),
        {"bytes": size, "row_groups": 0, "rows": 0},
    )  # fmt: skip


def _with_times(file: FileGroups, groups: RowGroups) -> KeyGroups:
    """Return row groups of a file with their times."""
    first = np.array([begin for begin, _ in file.rows])
    at = np.searchsorted(groups.first, first)
    return KeyGroups(file, tuple(groups.low[at].tolist()), tuple(groups.high[at].tolist()))
