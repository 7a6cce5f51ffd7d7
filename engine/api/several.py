"""Joins of several streams, given as files or tables, and what they return."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.rows import restored
from engine.options.command import Given

Source: TypeAlias = str | os.PathLike[str] | pa.Table


def sources_of(streams: Mapping[str, Source]) -> dict[str, str | pa.Table]:
    """Return streams by name, their paths as text."""
    return {
        name: source if isinstance(source, pa.Table) else os.fspath(source)
        for name, source in streams.items()
    }


def read_several(
    sources: Mapping[str, str | pa.Table], given: Given, run: Callable[[], dict[str, Any]]
) -> tuple[pa.Table | None, dict[str, Any], dict[str, pa.Table]]:
    """Run a join of several streams; return its outputs, its report and the rows set aside.

    Parameters
    ----------
    sources : mapping of str to str or pyarrow.Table
        All that is joined, by name.
    given : Given
        With ``out`` if outputs are to be written there, not returned; it is filled in.
    run : callable
        Runs the join of `given` and returns the report.
    """
    kept = "out" in given
    with TemporaryDirectory(prefix="winnow-") as folder:
        place = given.setdefault("out", Path(folder) / "out")
        report = run()
        aside = {path.stem: pq.read_table(path) for path in (place / "_rejected").glob("*.parquet")}
        if kept:
            return None, report, aside
        report["out"] = None
        kinds = {
            name: {own.name: own.type for own in source.schema}
            for name, source in sources.items()
            if isinstance(source, pa.Table)  # files may have others
        }
        outputs = {
            f"{name}_{column}": kind
            for name, columns in kinds.items()
            for column, kind in columns.items()
        }
        rejected = {name: restored(own, kinds.get(name, {})) for name, own in aside.items()}
        return restored(pq.read_table(place), outputs), report, rejected
