"""What the report of a multi-way join says of its lanes, and of how they shed load."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.jobs.multijoin.harvested import Harvested
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.task import Joined
from engine.lanes.placing import json_group
from engine.multiway.streams import basic_counts
from engine.replay.settings import UNLIMITED

MOST_LANES = 1000
"""Lanes that are told of one by one: those with the most tuples."""


def lanes_content(task: MultiJoinTask, lanes: Sequence[Joined]) -> dict[str, Any]:
    """Return how many lanes there were, and of a join that has several what became of each.

    Parameters
    ----------
    task : MultiJoinTask
        Any of the join's.
    """
    options = task.options
    single = not (options.partition_by or options.lanes)
    known = [] if single else [own for own in lanes if own.group]
    most = sorted(known, key=lambda own: -sum(own.tuples))[:MOST_LANES]
    return {
        "per_group": options.lanes or 1,
        "groups": len(known) if options.partition_by else 1,
        "replayed": 1 if single else sum(any(own.tuples) for own in known),
        "partition_by": list(options.partition_by),
        "by_lane": [_lane(task, own) for own in sorted(most, key=lambda own: own.group)],
    }


def _lane(task: MultiJoinTask, lane: Joined) -> dict[str, Any]:
    names, exact = task.options.names, lane.exact
    group = lane.group if task.options.lanes else json_group(lane.group, task.columns.groups)
    found: dict[str, Any] = {
        "lane": list(group),
        "joined": dict(zip(names, lane.tuples, strict=True)),
        "outputs": lane.result.outputs,
        "importance": lane.result.importance,
        "exact_outputs": None if exact is None else exact.outputs,
        "exact_importance": None if exact is None else exact.importance,
    }
    if lane.harvested is not None:
        throttles = [step.throttle for step in lane.harvested.steps]
        found |= {
            "capacity": lane.capacity,
            "comparisons": lane.harvested.comparisons,
            "throttle": throttles[-1] if throttles else None,
            "peak_memory": lane.harvested.peak,
        }
    if lane.retained is not None:
        budgets = [None if own == UNLIMITED else own for own in lane.retained.budgets]
        found |= {
            "memory": dict(zip(names, budgets, strict=True)),
            "peak_memory": lane.retained.peak,
        }
    return found


def harvest_content(task: MultiJoinTask, found: Harvested) -> dict[str, Any]:
    """Return how load was shed."""
    names, settings = task.options.names, task.harvest
    assert settings is not None  # noqa: S101 - it was harvested by them
    by_name = {
        name: dict(zip(names, getattr(found, name), strict=True))
        for name in ("pushes", "pops", "drops", "shed")
    }
    return {
        "settings": {
            name: getattr(settings, name)
            for name in settings.__dataclass_fields__
            if name != "seed"
        },
        "comparisons": found.comparisons,
        **by_name,
        "peak_memory": found.peak,
        "keep": None if found.keep is None else dict(zip(names, found.keep, strict=True)),
        "basic_windows": dict(
            zip(names, basic_counts(task.windows, settings.basic_window), strict=True)
        ),
        "setting": None
        if found.setting is None
        else {
            "counts": found.setting.counts.tolist(),
            "rankings": [[hop.tolist() for hop in hops] for hops in found.setting.rankings],
        },
        "steps": [
            {
                "to": step.at,
                "throttle": step.throttle,
                "beta": step.beta,
                "pushes": list(step.pushes),
                "pops": list(step.pops),
                "drops": list(step.drops),
                "comparisons": step.comparisons,
                "outputs": step.outputs,
            }
            for step in found.steps
        ],
    }
