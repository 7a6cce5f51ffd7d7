"""Joins of several streams from Python: the command line's work as a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.api.keywords import takes
from engine.api.tables import Source, read_several, sources_of
from engine.jobs.star.run import run_star
from engine.options.star import STAR, StarJoin, star_of
from engine.runtime.executors import ThreadExecutor


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
        Rows that were set aside, with their reasons, by stream or ``fact``; those without any are
        left out.
    """

    outputs: pa.Table | None
    report: dict[str, Any]
    rejected: dict[str, pa.Table]


@takes(STAR)
def replay_streams(
    streams: Mapping[str, Source], fact: Source, **options: Unpack[StarJoin]
) -> StreamsResult:
    """Join several streams through a fact relation within a memory budget for each.

    A fact joins one tuple of every stream (P2 2): those of its attributes that arrive while it is
    active. The latest of them must find the others unexpired.

    Parameters
    ----------
    streams : mapping of str to pyarrow.Table or path
        By name, in order: at equal times, tuples of an earlier stream arrive first. A path is a
        file, folder or glob; a row's number is its position.
    fact : pyarrow.Table or path
        Rows of facts, or of their changes.
    **options
        `on`, `time`, `importance`, `window` and `memory` are for all streams, or mappings by name,
        where ``""`` stands for all that are not named. One `memory` for all is split evenly, the
        odd rest to the first streams; by name, a stream that is not named is exact. `fact_on` maps
        streams to F's attributes, by default the columns of the streams' names. AGE takes the
        parameter ``curve_NAME`` for a stream's own curve; there is no policy `yield`. Without
        `out`, the folder of the output dataset, which must not exist, outputs are returned.

    Returns
    -------
    StreamsResult
        Memory: the streams and F; see `engine.star.lane` for the time.

    Raises
    ------
    WinnowError
        If an option, a table or an archive is invalid, or the output cannot be
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
    given = STAR.from_keywords({**options, "fact": fact})
    named = sources_of(streams)
    return StreamsResult(
        *read_several(
            {**named, "fact": given["fact"]},
            given,
            lambda: run_star(star_of(named, given), ThreadExecutor()).content,
        )
    )
