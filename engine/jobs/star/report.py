"""The report of a join of several streams through facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from engine.jobs.bound.found import best_report
from engine.jobs.exact.counting import Tally
from engine.jobs.star.results import StarResult
from engine.jobs.star.task import StarTask
from engine.options.star import StarOptions
from engine.replay.settings import UNLIMITED
from engine.report.envelope import Report, envelope, per_second, plain_parameters
from engine.report.losses import losses
from engine.star.settings import StarSettings
from gpu_kernels.devices import Choice

DEVICE = Choice("cpu", "joins of several streams run on the CPU")


def build_report(task: StarTask, found: StarResult, seconds: Mapping[str, float]) -> Report:
    """Return the report: that of two streams, with the streams' names for left and right."""
    options, settings = task.options, task.settings
    own = {s.name: r for s, r in zip(options.streams, found.streams, strict=True)}
    budgets = {name: None if s.budget == UNLIMITED else s.budget for name, s in own.items()}
    joined = sum(stream.joined for stream in found.streams)
    content = {
        "rows": {name: s.rows for name, s in own.items()},
        "joined": {name: s.joined for name, s in own.items()},
        "null_keys": {name: s.null_keys for name, s in own.items()},
        "rejected": {name: s.rejected for name, s in own.items()},
        "sorted": {name: s.in_order for name, s in own.items()},
        "fact": found.fact._asdict(),
        "result": {"outputs": found.result.outputs, "importance": found.result.importance},
        **(_against(found.exact, found) if found.exact is not None else {}),
        "peak_memory": {name: s.peak for name, s in own.items()} | {"total": found.peak},
        "estimator_memory": {
            "tuples": sum(s.exact_peak for s in found.streams)
            if settings.estimator == "window"
            else 0,
            "keys": found.fact.facts if settings.estimator == "history" else 0,
        },
        "memory": {
            **{name: None if options.pooled else budgets[name] for name in own},
            "total": None if None in budgets.values() else sum(s.budget for s in found.streams),
            "asked": {s.name: None if s.memory is None else str(s.memory) for s in options.streams},
            "split": str(options.split),
        },
        "window": {
            **dict(zip(own, settings.windows, strict=True)),
            "tick": task.unit,
            "zone": task.sources[0].zone,
        },
        "policy": {
            "name": "exact" if options.exact else settings.policy,
            "parameters": {} if options.exact else _parameters(options, settings),
            "estimator": settings.estimator,
            "probe": settings.probe,
            "combine": settings.combine,
            "profile": None,
        },
        "start_ts": settings.start_ts,
        **envelope(
            seconds,
            rate=per_second(joined, seconds.get("replay", 0.0)),
            device=DEVICE,
            seed=settings.seed,
            out=options.out,
        ),
    }
    if found.bounds is not None:
        content["bound"] = best_report(found.bounds, found.result.importance)
    return Report(content)


def _against(exact: Tally, found: StarResult) -> dict[str, Any]:
    """Return what was lost, also by attribute of the first stream."""
    joined = any(stream.joined for stream in found.streams)
    content = losses([(exact, found.result)] if joined else [], found.edges, found.last)
    content["lost"]["top_keys"] = [loss.to_report(key) for key, loss in found.top]
    content["lost"]["top_keys_complete"] = True
    return content


def _parameters(options: StarOptions, settings: StarSettings) -> dict[str, Any]:
    """Return the policy's parameters; AGE's curves by the streams' names."""
    found = plain_parameters(settings.parameters)
    if settings.policy == "age":
        found = {n: v for n, v in found.items() if n not in ("curve_left", "curve_right")}
        found |= {f"curve_{own.name}": own.curve for own in options.streams}
    return found
