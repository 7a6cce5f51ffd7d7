"""The report of a replay: what was read, what came out, and exactly what was lost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from engine.jobs.bound.found import Bounds, best_report
from engine.jobs.exact.key_totals import TOP, KeyLoss
from engine.jobs.frame import JobLanes
from engine.jobs.replay.lane_task import LaneResult
from engine.jobs.replay.slices import COUNT, REPLAY
from engine.lanes.manifest import Prepared, key_of
from engine.lanes.profile import LaneProfile
from engine.options.budget import POOLED
from engine.options.replay import JobOptions
from engine.replay.settings import ReplaySettings
from engine.report.envelope import (
    Report,
    envelope,
    last_ticks,
    memory_report,
    per_second,
    plain,
    plain_parameters,
    stream_report,
    window_report,
)
from engine.report.losses import losses
from gpu_kernels.devices import Choice


class Replayed(NamedTuple):
    """What a replay came to."""

    results: list[LaneResult]
    """One a lane."""
    budgets: list[tuple[int, int]]
    """K of left and right of each lane."""
    edges: tuple[int, ...]
    """Left edges of the time bins."""
    device: Choice
    """Where it was decided who stays."""
    profiles: Sequence[LaneProfile]
    """Of the lanes."""
    bounds: Bounds | None = None
    """Of the best possible."""
    predicted: Mapping[str, Any] | None = None
    """The recall that the policy's model expects."""
    peak: int | None = None
    """The most tuples of both sides that a plan holds at once."""
    advice: Mapping[str, Any] | None = None
    """Why the policy is what it is, where it was to be chosen."""
    cost: Mapping[str, float] | None = None
    """Of hash lanes, where it was estimated."""


def _against_exact(
    prepared: Prepared, results: list[LaneResult], edges: tuple[int, ...]
) -> dict[str, Any]:
    """Return what was lost, also by key."""
    last = 0 if prepared.span is None else prepared.span[1]
    found = losses([(r.exact, r.result) for r in results], edges, last)
    found["lost"]["top_keys"] = _top_keys(prepared, results)
    found["lost"]["top_keys_complete"] = all(r.keys_complete for r in results)
    return found


def _top_keys(prepared: Prepared, results: list[LaneResult]) -> list[dict[str, Any]]:
    keys: list[tuple[KeyLoss, int]] = [
        (loss, result.lane) for result in results for loss in result.top
    ]
    keys = [pair for pair in keys if pair[0].exact_outputs > pair[0].outputs]
    keys.sort(key=lambda pair: (*pair[0].rank, pair[1]))
    groups = {lane.number: lane.group for lane in prepared.lanes}
    named = []
    for loss, lane in keys[:TOP]:
        key = [*groups[lane], *map(plain, key_of(prepared, lane, loss.side, loss.row))]
        named.append(loss.to_report(key[0] if len(key) == 1 else key))
    return named


def build_report(
    options: JobOptions, settings: ReplaySettings, lanes: JobLanes, found: Replayed
) -> Report:
    """Put the lanes' results together; docs/report.md explains every field."""
    prepared, results, seconds = lanes.prepared, found.results, lanes.stages.seconds
    outputs = sum(r.result.outputs for r in results)
    importance = math.fsum(r.result.importance for r in results)
    spent = seconds.get(REPLAY, 0.0) + seconds.get(COUNT, 0.0)
    joined = sum(stream.joined for stream in prepared.streams)
    content: dict[str, Any] = {
        **stream_report(prepared),
        "result": {"outputs": outputs, "importance": importance},
        **(_against_exact(prepared, results, found.edges) if options.compares else {}),
        "peak_memory": {
            "left": sum(r.peaks[0] for r in results),
            "right": sum(r.peaks[1] for r in results),
            "both": sum(r.peak for r in results),
        },
        "exact_memory": {"by_time": _needed(prepared, found)},
        "estimator_memory": _estimator_memory(settings, results),
        "memory": memory_report(options.memory, found.budgets, pooled=options.split == POOLED)
        | {"split": str(options.split)},
        "window": window_report(settings.windows, prepared.unit, prepared.zone),
        "policy": {
            "name": _policy(options, settings),
            "parameters": {}
            if options.exact or options.plan is not None
            else plain_parameters(settings.parameters),
            "estimator": settings.estimator,
            "probe": settings.probe,
            "combine": settings.combine,
            "profile": None if options.profile is None else str(options.profile),
        },
        "start_ts": settings.start_ts,
        "lanes": {
            "per_group": prepared.lanes_per_group,
            "groups": prepared.groups,
            "replayed": len(results),
            "cost": None if found.cost is None else dict(found.cost),
        },
        **envelope(
            seconds,
            rate=per_second(joined, spent),
            device=found.device,
            seed=settings.seed,
            out=options.out,
        ),
    }
    if found.peak is not None:
        content["peak_memory"]["both"] = found.peak
    if found.advice is not None:
        content["advice"] = dict(found.advice)
    if found.predicted is not None:
        content["predicted"] = dict(found.predicted)
    if found.bounds is not None:
        content["bound"] = best_report(found.bounds, importance)
    return Report(content)


def _needed(prepared: Prepared, found: Replayed) -> list[dict[str, int]]:
    """Return the tuples that the exact join holds at the end of each time bin."""
    if prepared.span is None:
        return []
    ends = last_ticks(found.edges, prepared.span[1])
    left, right = (
        np.sum([own[side].held for own in found.profiles], axis=0).tolist() for side in (0, 1)
    )
    return [
        {"from": begin, "to": end, "left": left[i], "right": right[i]}
        for i, (begin, end) in enumerate(zip(found.edges, ends, strict=True))
    ]


def _estimator_memory(settings: ReplaySettings, results: list[LaneResult]) -> dict[str, int]:
    """Return what is remembered besides the join memories."""
    if settings.terms is not None:
        tuples, keys = settings.terms.reserved
        return {"tuples": tuples * len(results), "keys": keys * len(results)}
    peaks = [sum(r.exact_peaks) for r in results] if settings.estimator == "window" else []
    return {"tuples": sum(peaks), "keys": sum(r.estimator_keys for r in results)}


def _policy(options: JobOptions, settings: ReplaySettings) -> str | None:
    if options.plan is not None:
        return "plan"
    return "exact" if options.exact else settings.the_policy.name
