"""The report of a replay: what was read, what came out, and exactly what was lost."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from engine.errors import OutputError
from engine.job.ahead import STAGE as COUNT
from engine.job.bound_task import LaneBounds
from engine.job.budget import Amounts
from engine.job.keys import TOP, KeyLoss
from engine.job.lane_task import LaneResult
from engine.job.losses import losses, share
from engine.job.options import JobOptions
from engine.job.versions import versions
from engine.lanes.manifest import Prepared, key_of
from engine.optimum.certificate import gap_between
from engine.policies import Value
from engine.replay.settings import UNLIMITED, ReplaySettings
from engine.streams import SIDES
from gpu_kernels.devices import Choice

TIME_BINS = 50


def check_place(path: Path, what: str = "report") -> None:
    """Find out before the work whether a report, or another file, could be written.

    Raises
    ------
    OutputError
        If not.
    """
    if path.is_dir():
        raise OutputError(f"{what} {path} is a folder: name a file, as in {path}/report.json")
    above = next(folder for folder in path.absolute().parents if folder.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise OutputError(f"{what} {path} cannot be written: {above} is no folder to write to")


class Report(NamedTuple):
    """A report, as JSON holds it.

    Attributes
    ----------
    content : dict
        See docs/report.md for every field.
    """

    content: dict[str, Any]

    def save(self, path: Path) -> None:
        """Write the report as JSON, whole or not at all.

        Raises
        ------
        OutputError
            If it cannot be written.
        """
        draft = path.with_name(f".{path.name}.tmp")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            draft.write_text(json.dumps(self.content, indent=2, allow_nan=False) + "\n")
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise OutputError(f"report {path} cannot be written: {error}") from error


def time_bins(first: int, last: int) -> tuple[int, ...]:
    """Return the left edges of the time bins of streams from one tick to another."""
    width = max(1, -(-(last - first + 1) // TIME_BINS))
    return tuple(range(first, last + 1, width))


def _against_exact(
    prepared: Prepared, results: list[LaneResult], edges: tuple[int, ...]
) -> dict[str, Any]:
    """Return what was lost, also by key."""
    lasts = [s.last_ts for s in prepared.streams if s.last_ts is not None]
    found = losses([(r.exact, r.result) for r in results], edges, max(lasts, default=0))
    found["lost"]["top_keys"] = _top_keys(prepared, results)
    found["lost"]["top_keys_complete"] = all(r.keys_complete for r in results)
    return found


def _top_keys(prepared: Prepared, results: list[LaneResult]) -> list[dict[str, Any]]:
    keys: list[tuple[KeyLoss, int]] = [
        (loss, result.lane) for result in results for loss in result.top
    ]
    keys = [pair for pair in keys if pair[0].exact_outputs > pair[0].outputs]
    keys.sort(key=lambda pair: (*pair[0].rank, pair[1]))
    named = []
    for loss, lane in keys[:TOP]:
        key = [plain(v) for v in key_of(prepared, lane, loss.side, loss.row)]
        named.append(loss.told(key[0] if len(key) == 1 else key))
    return named


def plain(value: object) -> object:
    """Return a join attribute as JSON holds it."""
    if isinstance(value, (bool, int, float, str, type(None))):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def _budget(budgets: list[tuple[int, int]], side: int) -> int | None:
    """Return a side's memory over all lanes, None where it is exact."""
    given = [pair[side] for pair in budgets]
    return None if UNLIMITED in given else sum(given)


def stream_report(
    prepared: Prepared,
    names: Sequence[str] = ("rows", "joined", "null_keys", "rejected", "sorted"),
) -> dict[str, dict[str, int]]:
    """Return what was read, of the streams and of what joins them, and what became of it."""
    left, right = prepared.streams
    found: dict[str, dict[str, int]] = {
        name: {"left": getattr(left, name), "right": getattr(right, name)} for name in names
    }
    if prepared.facts is not None:
        found["fact"] = asdict(prepared.facts)
        del found["fact"]["bytes"]
    return found


def memory_report(asked: Amounts, budgets: list[tuple[int, int]]) -> dict[str, Any]:
    """Return the memory of each side over all lanes, None where it is exact, and as asked."""
    return {
        "left": _budget(budgets, 0),
        "right": _budget(budgets, 1),
        "asked": {
            side: None if amount is None else str(amount)
            for side, amount in zip(SIDES, asked, strict=True)
        },
    }


def window_report(windows: tuple[int, int], unit: str) -> dict[str, Any]:
    """Return the windows, and what one tick is."""
    return {"left": windows[0], "right": windows[1], "tick": unit}


def bounds_report(found: LaneBounds) -> dict[str, Any]:
    """Return what is proven, as a report has it."""
    return {
        "lower": found.lower,
        "upper": found.upper,
        "gap": gap_between(found.lower, found.upper),
        "outputs": found.plan.outputs,
        "importance": found.plan.importance,
        "method": "+".join(sorted(found.methods)) or "none",
    }


def plain_parameters(parameters: Mapping[str, Value]) -> dict[str, Any]:
    """Return parameters as JSON holds them: a function by its module and name."""
    return {
        name: f"{value.__module__}:{value.__name__}" if callable(value) else value
        for name, value in parameters.items()
    }


def build_report(
    options: JobOptions,
    settings: ReplaySettings,
    prepared: Prepared,
    results: list[LaneResult],
    budgets: list[tuple[int, int]],
    edges: tuple[int, ...],
    seconds: Mapping[str, float],
    device: Choice,
    bounds: LaneBounds | None = None,
    predicted: Mapping[str, Any] | None = None,
) -> Report:
    """Put the lanes' results together."""
    outputs = sum(r.result.outputs for r in results)
    importance = math.fsum(r.result.importance for r in results)
    left, right = prepared.streams
    spent = seconds.get("replay", 0.0) + seconds.get(COUNT, 0.0)
    joined = left.joined + right.joined
    content: dict[str, Any] = {
        **stream_report(prepared),
        "result": {"outputs": outputs, "importance": importance},
        **(_against_exact(prepared, results, edges) if options.compares else {}),
        "peak_memory": {
            "left": sum(r.peaks[0] for r in results),
            "right": sum(r.peaks[1] for r in results),
        },
        "estimator_memory": _estimator_memory(settings, results),
        "memory": memory_report(options.memory, budgets),
        "window": window_report((settings.window_left, settings.window_right), prepared.unit),
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
        },
        "seconds": {name: round(value, 6) for name, value in seconds.items()},
        "tuples_per_second": joined / spent if spent else 0.0,
        "device": {"used": device.device, "reason": device.reason},
        "versions": versions(),
        "seed": settings.seed,
        "out": None if options.out is None else str(options.out),
    }
    if predicted is not None:
        content["predicted"] = dict(predicted)
    if bounds is not None:
        content["bound"] = _best(bounds, importance)
    return Report(content)


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
    return "exact" if options.exact else settings.policy


def _best(bounds: LaneBounds, importance: float) -> dict[str, Any]:
    """Return the best possible, of which the result itself is one, and the result's share."""
    bounds = bounds._replace(lower=min(max(bounds.lower, importance), bounds.upper))
    share_of_best = {
        "least": share(importance, bounds.upper),
        "most": min(1.0, share(importance, bounds.lower)),
    }
    return bounds_report(bounds) | {"share_of_best": share_of_best}
