"""The report of a multi-way join."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from engine.jobs.bound.found import Bounds, best_report
from engine.jobs.exact.counting import Tally
from engine.jobs.multijoin.harvested import together
from engine.jobs.multijoin.join_task import MultiJoinTask
from engine.jobs.multijoin.lane_report import harvest_content, lanes_content
from engine.jobs.multijoin.read import WHOLE
from engine.jobs.multijoin.retained import Retained, held
from engine.jobs.multijoin.task import Joined, MultiJoinResult
from engine.multiway.loops.run import loops_together
from engine.replay.settings import UNLIMITED
from engine.report.envelope import envelope, per_second, plain_parameters
from engine.report.losses import losses
from engine.runtime.device_choice import combined_choice
from gpu_kernels.combine import neumaier
from gpu_kernels.devices import Choice

ON_CPU = Choice("cpu", "exact multi-way joins run on the CPU, but for those of dense vectors")
RETAINED_ON_CPU = Choice("cpu", "multi-way joins within a memory run on the CPU")


def report_content(
    task: MultiJoinTask, results: Sequence[MultiJoinResult], seconds: dict[str, float]
) -> dict[str, Any]:
    """Return the report, as JSON holds it; see docs/multijoin.md for every field.

    Parameters
    ----------
    task : MultiJoinTask
        Any of them.
    results : sequence of MultiJoinResult
        Of all.
    seconds : dict
        By stage.
    """
    options, names = task.options, task.options.names
    lanes = [own for result in results for own in result.lanes]
    first, result = lanes[0], added([own.result for own in lanes])
    counted = [own.exact for own in lanes if own.exact is not None]
    exact = added(counted) if len(counted) == len(lanes) else None
    counts = {name: [own.counts[i] for own in results] for i, name in enumerate(names)}
    stages = dict(seconds)
    for own in results:
        for stage, spent in own.seconds.items():
            stages[stage] = stages.get(stage, 0.0) + spent
    joins = [own.seconds.get("join", 0.0) for own in results]
    joined = {name: sum(own.joined for own in rows) for name, rows in counts.items()}
    sheds = [own.harvested for own in lanes if own.harvested is not None]
    harvested = together(sheds, slices=task.share.lanes == WHOLE.lanes) if sheds else None
    chosen = [own.device for own in lanes if own.device is not None]
    device = combined_choice(chosen, ON_CPU if first.retained is None else RETAINED_ON_CPU)
    if harvested is not None:
        device = Choice(harvested.device["used"], harvested.device["reason"])
    content: dict[str, Any] = {
        "rows": {name: sum(own.rows for own in rows) for name, rows in counts.items()},
        "joined": joined,
        "null_keys": {name: sum(own.null_keys for own in rows) for name, rows in counts.items()},
        "rejected": {name: sum(own.rejected for own in rows) for name, rows in counts.items()},
        "sorted": {name: all(own.in_order for own in rows) for name, rows in counts.items()},
        "result": {"outputs": result.outputs, "importance": result.importance},
    }
    if exact is not None:
        edges = task.edges
        content |= losses([(exact, result)] if edges else [], edges[:-1], max(edges, default=1) - 1)
    content |= {
        "predicate": options.predicate.text,
        "join_graph": options.graph,
        "window": {
            **{s.name: _window(task, i) for i, s in enumerate(options.streams)},
            "tick": task.unit,
            "zone": task.sources[0].zone,
        },
        "method": _method(task, lanes),
        "top": options.top,
        "combine": options.combine,
        "start_ts": task.start_ts,
        "lanes": lanes_content(task, lanes),
        "slices": len(results),
        "expected": None if first.exact_forecast is None else first.exact_forecast._asdict(),
        **envelope(
            stages,
            rate=per_second(sum(joined.values()), taken(joins, task.beside)),
            device=device,
            seed=options.seed,
            out=options.out,
        ),
    }
    retained = [own.retained for own in lanes if own.retained is not None]
    if retained:
        content |= _retention(task, held(retained))
    bounds = [own.bounds for own in lanes if own.bounds is not None]
    if bounds:
        content["bound"] = best_report(Bounds.together(bounds), result.importance)
    if harvested is not None:
        expected = next((own.expected for own in lanes if own.expected is not None), None)
        content["harvest"] = harvest_content(task, harvested) | {
            "expected_seconds": None if expected is None else expected._asdict()
        }
    return content


def taken(tasks: Sequence[float], beside: int) -> float:
    """Return the seconds that tasks take of which so many run at once.

    Examples
    --------
    >>> taken([1.0, 1.0, 1.0, 1.0], 2), taken([9.0, 1.0], 2)
    (2.0, 9.0)
    """
    return max([sum(tasks) / beside, *tasks])


def _window(task: MultiJoinTask, stream: int) -> int | str:
    size = int(task.windows.size[stream])
    return f"rows:{size}" if task.windows.by_rows[stream] else size


def _method(task: MultiJoinTask, lanes: Sequence[Joined]) -> dict[str, Any]:
    """Return how outputs were found, and what that cost."""
    names = task.options.names
    found: dict[str, Any] = {"name": task.options.loops.method}
    first = lanes[0]
    if task.harvest is not None:
        found["name"] = task.harvest.shedding
    if first.retained is not None:
        found["name"] = "retain"
    if first.orders and len(lanes) == 1:
        found["orders"] = [[names[stream] for stream in order] for order in first.orders]
    loops = [own.loops for own in lanes if own.loops is not None]
    if loops:
        own = loops_together(loops)._asdict()
        found |= {name: own[name] for name in own if name not in ("outputs", "importance")}
        found["tau"], found["expire_every"] = task.tau, task.expire_every
    return found


def _retention(task: MultiJoinTask, found: Retained) -> dict[str, Any]:
    """Return what the streams were allowed to hold, what they held, and by which policy."""
    retention, names = task.options.retention, task.options.names
    assert retention is not None  # noqa: S101 - it was retained by it
    budgets = [None if own == UNLIMITED else own for own in found.budgets]
    known = [own for own in budgets if own is not None]
    by_name = dict.fromkeys(names) if retention.pooled else dict(zip(names, budgets, strict=True))
    parameters = plain_parameters(retention.parameters)
    if retention.policy == "age":
        parameters = {own: v for own, v in parameters.items() if not own.startswith("curve")}
        parameters |= {
            f"curve_{name}": curve for name, curve in zip(names, retention.curves, strict=True)
        }
    return {
        "memory": {
            **by_name,
            "total": sum(known) if len(known) == len(budgets) else None,
            "asked": {
                name: None if own is None else str(own)
                for name, own in zip(names, retention.memory, strict=True)
            },
            "split": str(retention.split),
        },
        "peak_memory": dict(zip(names, found.peaks, strict=True)) | {"total": found.peak},
        "exact_memory": dict(zip(names, found.exact_peaks, strict=True)),
        "policy": {
            "name": retention.policy,
            "parameters": parameters,
            "estimator": retention.estimator,
        },
    }


def added(tallies: Sequence[Tally]) -> Tally:
    """Return the tally of parts of a join together."""
    high = rest = 0.0
    for own in tallies:
        high, rest = neumaier(high, rest, own.importance)
    return Tally(
        sum(own.outputs for own in tallies),
        high + rest,
        np.sum([own.by_bin for own in tallies], axis=0),
        np.sum([own.importance_by_bin for own in tallies], axis=0),
    )
