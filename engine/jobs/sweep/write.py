"""The files of a sweep: table, plots and report, all of them or none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

from engine.jobs.output import OutputFolder
from engine.jobs.sweep.advice import Advice
from engine.jobs.sweep.plots import draw
from engine.jobs.sweep.rows import Row

TABLE = "sweep.parquet"


def write_sweep(
    output: OutputFolder,
    table: pa.Table,
    rows: Sequence[Row],
    advice: Sequence[Advice],
    report: Mapping[str, Any],
    seconds: Mapping[str, float],
) -> None:
    """Write ``sweep.parquet``, ``sweep.csv``, ``sweep.json`` and a plot a measure, and commit."""
    pq.write_table(table, output.draft / TABLE, compression="zstd")
    pc.write_csv(table, output.whole / "sweep.csv")
    draw(rows, advice, report["grid"], output.whole)
    content = {**report, "seconds": {name: round(spent, 6) for name, spent in seconds.items()}}
    text = json.dumps(content, indent=2, allow_nan=False)
    (output.whole / "sweep.json").write_text(text + "\n")
    output.commit({TABLE: table.num_rows}, table.schema)
