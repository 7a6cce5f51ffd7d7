"""The report of a sweep, as ``sweep.json`` holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.jobs.sweep.advice import Advice
from engine.lanes.manifest import Prepared
from engine.options.sweep import Grid, SweepOptions
from engine.report.envelope import plain_parameters, stream_report
from engine.report.versions import versions
from gpu_kernels.devices import Choice


def sweep_report(
    options: SweepOptions,
    grid: Grid,
    windows: Sequence[int],
    prepared: Prepared,
    advice: Sequence[Advice],
    cells: int,
    device: Choice,
) -> dict[str, Any]:
    """Return everything but the seconds, which are not yet all known."""
    base = options.base
    return {
        **stream_report(prepared, ("rows", "joined", "null_keys", "rejected")),
        "grid": {
            "cells": cells,
            "policies": {
                name: plain_parameters(job.parameters) for name, job in grid.policies.items()
            },
            "memory": [str(amount) for amount in grid.memory],
            "windows": list(windows),
            "tick": prepared.unit,
            "seeds": list(grid.seeds),
            "estimator": base.estimator,
            "profile": None if base.profile is None else str(base.profile),
            "probe": base.probe,
            "combine": base.combine,
            "start_ts": base.start_ts,
        },
        "lanes": {"per_group": prepared.lanes_per_group, "groups": prepared.groups},
        "advice": [one.plain() for one in advice],
        "device": {"used": device.device, "reason": device.reason},
        "versions": versions(),
        "out": None if options.out is None else str(options.out),
    }
