"""Joins of several streams from Python: the command line's work as a function."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.rows import restored
from engine.jobs.star.run import run_star
from engine.options.star_keywords import Changes, Names, Source, StarJoin, star_options
from engine.runtime.executors import ThreadExecutor

__all__ = ["StreamsResult", "replay_streams"]


class StreamsResult(NamedTuple):
    """What a replay of several streams gives.

    Attributes
    ----------
    outputs : pyarrow.Table or None
        ``NAME_row`` of every stream, ``fact_row``, ``ts``, ``importance``, ``weight``, and the
        columns of all as ``NAME_<column>`` and ``fact_<column>``. None where they were written to a
        folder.
    report : dict
        As the command line writes it.
    rejected : dict of pyarrow.Table
        Rows that were set aside, with their reasons, of the streams and of ``fact``; only those
        that have any.
    """

    outputs: pa.Table | None
    report: dict[str, Any]
    rejected: dict[str, pa.Table]


def replay_streams(
    streams: Mapping[str, Source],
    fact: Source,
    *,
    on: Names | Mapping[str, Names],
    time: str | Mapping[str, str],
    window: int | str | Mapping[str, int | str],
    importance: str | Mapping[str, str] | None = None,
    memory: int | str | Mapping[str, int | str] | None = None,
    fact_on: Mapping[str, Names] | None = None,
    out: str | os.PathLike[str] | None = None,
    policy: str | None = None,
    params: Mapping[str, Any] | None = None,
    estimator: str | None = None,
    probe: str | None = None,
    combine: str | None = None,
    start_ts: int | str | None = None,
    seed: int = 0,
    columns: str = "all",
    bad_rows: str = "error",
    reference: str = "exact",
    **changes: Unpack[Changes],
) -> StreamsResult:
    """Join several streams through a fact relation within a memory budget for each.

    A fact joins one tuple of every stream (P2 2): those of its attributes that arrive while it is
    active. The latest of them must find the others unexpired.

    Parameters
    ----------
    streams : mapping of str to pyarrow.Table or path
        By name, in their order: of equal times, those of the first arrive first. A path is a file,
        folder or glob; a row's number is its position.
    fact : pyarrow.Table or path
        Rows of facts, or of their changes.
    on, time, importance, window : value or mapping of str to value
        For all streams, or by their names, where ``""`` stands for all that are not named: join
        attributes; arrival times; importance, 1 if not given; ticks that a tuple joins for after
        its arrival, the last included, or a duration such as ``"10min"``.
    memory : int, str or mapping, optional
        Tuples in all, split evenly, the odd rest to the first streams; or a percentage such as
        ``"10%"`` of what the exact join needs of each; or either by name, where a stream that is
        not named is exact. Without it, the join is exact.
    fact_on : mapping of str to str or sequence of str, optional
        F's attribute that joins a stream; by default the column of the stream's name.
    out : path, optional
        Folder of the output dataset, which must not exist; without it outputs are returned.
    policy, params, estimator, probe, combine, start_ts, seed, columns, bad_rows, reference
        As for `engine.replay_tables`; not the policy `yield`. AGE takes ``curve_NAME`` for a
        stream's own curve.
    **changes
        How F changes and is read: `fact_begin` and `fact_end`, or `fact_op` and `fact_time`;
        `fact_id`; `fact_access`.

    Returns
    -------
    StreamsResult
        Memory: the streams and F; see `engine.star.lane` for the time.

    Raises
    ------
    WinnowError
        If the options mean nothing, a table or archive is no stream, or the output cannot be
        written.

    Examples
    --------
    >>> orders = pa.table({"t": [0, 1], "order": [7, 8], "price": [5.0, 3.0]})
    >>> payments = pa.table({"t": [2, 3], "payment": ["x", "y"], "price": [4.0, 3.0]})
    >>> parcels = pa.table({"t": [4, 5, 9], "parcel": [1, 1, 2], "price": [9.0, 1.0, 3.0]})
    >>> links = pa.table({"orders": [7, 8], "payments": ["x", "y"], "parcels": [1, 2]})
    >>> found = replay_streams(
    ...     {"orders": orders, "payments": payments, "parcels": parcels}, links,
    ...     on={"orders": "order", "payments": "payment", "parcels": "parcel"},
    ...     time="t", importance="price", window=5, columns="ids")
    >>> found.outputs.select(["orders_row", "parcels_row", "fact_row", "importance"]).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'orders_row': 0, 'parcels_row': 0, 'fact_row': 0, 'importance': 4.0},
     {'orders_row': 0, 'parcels_row': 1, 'fact_row': 0, 'importance': 1.0}]
    """
    join = StarJoin(
        on=on, time=time, importance=importance, window=window, memory=memory, fact_on=fact_on,
        policy=policy, params=params, estimator=estimator, probe=probe, combine=combine,
        start_ts=start_ts, seed=seed, columns=columns, bad_rows=bad_rows, reference=reference,
        **changes,
    )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        place = Path(folder) / "out" if out is None else Path(out)
        report = run_star(star_options(streams, fact, place, join), ThreadExecutor()).content
        aside = {path.stem: pq.read_table(path) for path in (place / "_rejected").glob("*.parquet")}
        if out is not None:
            return StreamsResult(None, report, aside)
        report["out"] = None
        kinds = {name: _kinds(own) for name, own in {**streams, "fact": fact}.items()}
        outputs = {
            f"{name}_{column}": kind
            for name, columns_of in kinds.items()
            for column, kind in columns_of.items()
        }
        rejected = {name: restored(own, kinds[name]) for name, own in aside.items()}
        return StreamsResult(restored(pq.read_table(place), outputs), report, rejected)


def _kinds(source: Source) -> dict[str, pa.DataType]:
    """Return the types of a table's columns, which files may have others for."""
    return {own.name: own.type for own in source.schema} if isinstance(source, pa.Table) else {}
