"""The report of a sweep, as ``sweep.json`` holds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from engine.job.report import plain_parameters, versions
from engine.lanes.manifest import Prepared
from engine.sweep.advice import Advice
from engine.sweep.options import Grid, SweepOptions
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
    sides = dict(zip(("left", "right"), prepared.streams, strict=True))
    return {
        "rows": {side: stream.rows for side, stream in sides.items()},
        "joined": {side: stream.joined for side, stream in sides.items()},
        "null_keys": {side: stream.null_keys for side, stream in sides.items()},
        "rejected": {side: stream.rejected for side, stream in sides.items()},
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
