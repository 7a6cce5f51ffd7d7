"""The lanes of a multi-way join: which there are, what tasks they make, what capacity each gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from engine.archives.canonical import canonical
from engine.archives.normalise import decoded, with_keys
from engine.archives.roles import JoinColumns
from engine.jobs.multijoin.harvested import index_costs_of, is_on_gpu, profile_of
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.orders import harvest_orders
from engine.jobs.multijoin.read import Share, read_streams
from engine.jobs.multijoin.shares import beside_of, threads_of
from engine.jobs.streams import StreamSource, rows_of
from engine.lanes.placing import Group, distinct_groups
from engine.multiway.fractions.profile import JoinProfile
from engine.multiway.harvest.learning.adapt import shrunken
from engine.multiway.harvest.learning.capacities import capacities_of
from engine.multiway.harvest.settings import HarvestSettings
from engine.multiway.measure import Measures
from engine.multiway.streams import MultiStreams, Windows, basic_counts
from engine.runtime.executors import Executor, Stages


def lane_tasks(whole: MultiJoinTask, executor: Executor, stages: Stages) -> list[MultiJoinTask]:
    """Return a join's lanes as tasks, each with its capacity.

    Parameters
    ----------
    whole : MultiJoinTask
        Of options with partition columns or hash lanes.
    stages : Stages
        Counts the rows of lanes, and measures what they yield.
    """
    hashed = whole.options.lanes or 0
    rows = Counter({(lane,): 1 for lane in range(hashed)})
    if not hashed:
        columns = [replace(whole, sources=(source,)) for source in whole.sources]
        for own in stages.mapped("lanes", _rows_by_group, columns):
            rows.update(own)
    shares = [
        Share(number, lanes=lanes, hashed=hashed)
        for number, lanes in enumerate(dealt(rows, _number(whole, executor, len(rows))))
    ]
    threads = threads_of(executor, len(shares))
    beside = beside_of(executor, len(shares))
    tasks = [replace(whole, share=share, threads=threads, beside=beside) for share in shares]
    return _with_capacities(tasks, stages)


def _number(whole: MultiJoinTask, executor: Executor, lanes: int) -> int:
    """Return how many tasks to make: each reads all rows, and keeps those of its lanes.

    Exact joins use all cores of this process by themselves, and a GPU probes for all lanes of a
    task together.
    """
    if executor.slots:
        return min(lanes, executor.slots)
    apart = whole.options.approximate and not is_on_gpu(whole)
    return min(lanes, executor.threads) if apart else 1


def dealt(rows: Counter[Group], number: int) -> list[tuple[Group, ...]]:
    """Deal lanes out to tasks, the largest first, each to the task that has the fewest rows.

    Parameters
    ----------
    rows : Counter
        Rows of each lane.
    number : int
        Tasks at most; a task has one lane or more.

    Returns
    -------
    list of tuple of Group
        In ascending order; without any lane there is one task without rows.

    Examples
    --------
    >>> dealt(Counter({("a",): 5, ("b",): 2, ("c",): 4}), 2)
    [(('a',),), (('b',), ('c',))]
    """
    if not rows:
        return [((),)]
    held = [0] * min(number, len(rows))
    found: list[list[Group]] = [[] for _ in held]
    for group in sorted(sorted(rows), key=lambda own: -rows[own]):
        least = held.index(min(held))
        held[least] += rows[group]
        found[least].append(group)
    return sorted(tuple(sorted(own)) for own in found)


def _rows_by_group(task: MultiJoinTask) -> Counter[Group]:
    """Return the rows of each group of one stream."""
    source, columns = task.sources[0], task.columns
    found: Counter[Group] = Counter()
    with rows_of(source, source.roles, source.columns) as archive:
        for part in archive.parts(list(dict.fromkeys(source.roles.partition_by))):
            found.update(_counted(decoded(part.table), source, columns))
    return found


def _counted(table: pa.Table, source: StreamSource, columns: JoinColumns) -> dict[Group, int]:
    names = source.roles.partition_by
    whole = with_keys(table, source.roles)
    table = table if whole is None else table.filter(pa.array(whole))
    values = [
        canonical(table.column(name), kind)
        for name, kind in zip(names, columns.groups, strict=True)
    ]
    ids, groups = distinct_groups(values, table.num_rows)
    return dict(zip(groups, np.bincount(ids, minlength=len(groups)).tolist(), strict=True))


def _with_capacities(tasks: list[MultiJoinTask], stages: Stages) -> list[MultiJoinTask]:
    """Divide the capacity over the lanes by what they are expected to yield."""
    settings = tasks[0].harvest
    if settings is None or settings.capacity is None:
        return tasks
    found: dict[Group, JoinProfile] = {}
    for task, own in zip(tasks, stages.mapped("measure", lane_profiles, tasks), strict=True):
        found |= zip(task.share.lanes, own, strict=True)
    capacities = capacities_by_lane(found, settings.capacity)
    return [
        replace(task, capacities=tuple(capacities[lane] for lane in task.share.lanes))
        for task in tasks
    ]


def capacities_by_lane(found: Mapping[Group, JoinProfile], capacity: float) -> dict[Group, float]:
    """Return the capacity of each lane: the same to the last digit, whatever the order of lanes."""
    lanes = sorted(found)
    shares = capacities_of([found[lane] for lane in lanes], capacity) if lanes else ()
    return dict(zip(lanes, shares, strict=True))


def lane_profiles(task: MultiJoinTask) -> list[JoinProfile]:
    """Return what the lanes of a task are measured to cost and to yield, from samples of them."""
    read = read_streams(
        task.sources, task.options.predicate, task.columns, task.windows, payload=False,
        rejected=False, share=task.share,
    )  # fmt: skip
    return [lane_profile(task, lane.streams) for lane in read.lanes]


def lane_profile(task: MultiJoinTask, streams: MultiStreams) -> JoinProfile:
    """Return what a lane is measured to cost and to yield, from samples of its tuples."""
    options, settings, windows = task.options, task.harvest, task.windows
    assert settings is not None  # noqa: S101 - the caller has looked
    orders, found = harvest_orders(
        streams, windows, options.predicate, options.names, options.loops.order,
        settings.basic_window,
    )  # fmt: skip
    costs = index_costs_of(task, streams, orders)
    return profile_of(
        found, windows, orders, settings, costs, _scores(found, windows, orders, settings)
    )


def _scores(
    found: Measures, windows: Windows, orders: Sequence[Sequence[int]], settings: HarvestSettings
) -> list[list[list[float]]]:
    """Return the scores of the logical basic windows, by the ages of the sample's matches."""
    basic = basic_counts(windows, settings.basic_window)

    def of_hop(direction: int, other: int) -> list[float]:
        ages = found.ages[direction, other, : basic[other]]
        flat = settings.shedding == "random-drop" or not ages.any()
        scores = np.ones(ages.size) if flat else shrunken(ages, float(ages.sum()))
        return [float(own) for own in scores]

    return [[of_hop(i, other) for other in order] for i, order in enumerate(orders)]
