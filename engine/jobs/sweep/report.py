"""The report of a sweep, and its files: table, plots and report, all of them or none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc

from engine.jobs.output import Output, write_file
from engine.jobs.sweep.advice import Advice
from engine.jobs.sweep.plots import draw
from engine.jobs.sweep.rows import Row
from engine.lanes.manifest import Prepared
from engine.options.cells import Grid
from engine.options.sweep import SweepOptions
from engine.report.envelope import envelope, plain_parameters, rounded, stream_report
from engine.report.recording import record_of
from engine.runtime.executors import Stages
from gpu_kernels.devices import Choice

TABLE = "sweep.parquet"


def sweep_report(
    options: SweepOptions,
    grid: Grid,
    windows: Sequence[int],
    prepared: Prepared,
    advice: Sequence[Advice],
    cells: int,
    device: Choice,
    seconds: Mapping[str, float],
) -> dict[str, Any]:
    """Return the report, as ``sweep.json`` holds it."""
    base = options.base
    content = {
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
            "splits": [str(split) for split in grid.splits],
            "estimators": list(grid.estimators),
            "lanes": list(grid.lanes),
            "left_out": [
                {"policy": policy, "split": str(split), "reason": reason}
                for (policy, split), reason in grid.left_out.items()
            ],
            "profile": None if base.profile is None else str(base.profile),
            "probe": base.probe,
            "combine": base.combine,
            "start_ts": base.start_ts,
        },
        "groups": prepared.groups,
        "advice": [one.plain() for one in advice],
        **envelope(seconds, device=device, out=options.out),
    }
    return content | {"seconds": content.pop("seconds")}


def write_sweep(
    output: Output,
    table: pa.Table,
    rows: Sequence[Row],
    advice: Sequence[Advice],
    report: dict[str, Any],
    stages: Stages,
) -> None:
    """Write ``sweep.parquet``, ``sweep.csv``, ``sweep.json`` and a plot a measure, and commit.

    The seconds that this takes, but for the last of it, are added to the report.
    """
    with stages.timed("write"):
        write_file(output.draft / TABLE, table)
        pc.write_csv(table, output.whole / "sweep.csv")
        draw(rows, advice, report["grid"], output.whole)
        output.assemble({TABLE: table.num_rows}, table.schema)
    report["seconds"] = rounded(stages.seconds)
    with output.writing():
        text = json.dumps(report, indent=2, allow_nan=False)
        (output.whole / "sweep.json").write_text(text + "\n")
    output.commit(record_of("sweep", report))
