"""Writers of archives in formats other than Parquet, by the ends of their names."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather as pf

Writer = Callable[[pa.Table, Path], object]


def csv(**dialect: str) -> Writer:
    """Return a writer of CSV, of a dialect as pandas names it."""
    return lambda rows, path: _write(_frame(rows).to_csv(index=False, **dialect), path)


def json_lines(rows: pa.Table, path: Path) -> None:
    """Write an object on each line, compressed as the name says."""
    _write(_frame(rows).to_json(orient="records", lines=True), path)


def _write(text: str, path: Path) -> None:
    """Write a text as the name says; pandas would need one more package for Zstandard."""
    with pa.output_stream(path, compression="detect") as file:
        file.write(text.encode())


def _frame(rows: pa.Table) -> pd.DataFrame:
    return rows.to_pandas(integer_object_nulls=True)


WRITE: dict[str, Writer] = {
    "csv": csv(), "jsonl": json_lines, "jsonl.gz": json_lines, "feather": pf.write_feather,
    "de.csv": csv(sep=";", decimal=","),
}  # fmt: skip
