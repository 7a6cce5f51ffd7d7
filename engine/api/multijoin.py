"""Multi-way joins from Python: the command line's work as a function."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.rows import restored
from engine.jobs.multijoin.run import run_multijoin
from engine.options.multijoin_keywords import MultiJoin, Source, multijoin_options
from engine.runtime.executors import ThreadExecutor

__all__ = ["MultiJoinOutput", "multijoin"]


class MultiJoinOutput(NamedTuple):
    """What a multi-way join gives.

    Attributes
    ----------
    outputs : pyarrow.Table or None
        ``NAME_row`` of every stream, ``ts``, ``importance``, ``weight``, and the columns of all as
        ``NAME_<column>``. None where they were written to a folder.
    report : dict
        As the command line writes it; docs/multijoin.md has every field.
    rejected : dict of pyarrow.Table
        Rows that were set aside, with their reasons, by stream; only those that have any.
    """

    outputs: pa.Table | None
    report: dict[str, Any]
    rejected: dict[str, pa.Table]


def multijoin(
    streams: Mapping[str, Source],
    *,
    out: str | os.PathLike[str] | None = None,
    plot: str | os.PathLike[str] | None = None,
    **join: Unpack[MultiJoin],
) -> MultiJoinOutput:
    """Join 2 to 8 streams on any predicate: exactly (P3), or within a CPU budget (P4).

    An output is one tuple of every stream, of which the latest finds all others unexpired.

    Parameters
    ----------
    streams : mapping of str to pyarrow.Table or path
        By name, in their order: of equal times, those of the first arrive first. A path is a file,
        folder or glob; a row's number is its position.
    out : path, optional
        Folder of the output dataset, which must not exist; without it outputs are returned.
    plot : path, optional
        File of a plot of how load was shed: .png or .svg.
    predicate : str or Predicate
        ``equi:COL``, ``band:COL:EPS``, ``distance:COL,COL:R``, ``inner:COL:T``,
        ``theta:NAME:COL`` (see `engine.register_theta`).
    time, importance, window : value or mapping of str to value
        For all streams, or by their names, where ``""`` stands for all that are not named. A
        window is ticks that a tuple joins for after its arrival, the last included, a duration, or
        ``"rows:100"``.
    columns_of : mapping of str to str, optional
        ``{"quotes.price": "mid"}``: what a stream calls an attribute of the predicate.
    join_graph : {"clique", "star"}
    method : str
        "auto", or one of P3's algorithms, with `order`, `tau`, `expire_every`, `buckets`.
    capacity, throttle, clock, basic_window, adapt_every, per_second, buffer, boost, shred, forget
        Of joins that shed load: see `engine.multiway.harvest.settings.HarvestSettings`.
    scores, shedding, admission, probe, optimiser, metric, reference
        The same; with `reference` "none" the exact join is not counted beside.
    combine, start_ts, slices, device, seed, columns, bad_rows
        As the command line has them.

    Returns
    -------
    MultiJoinOutput
        Memory: the streams, and with `out` None the outputs.

    Raises
    ------
    WinnowError
        If the options mean nothing, a table or archive is no stream, or the output cannot be
        written.

    Examples
    --------
    >>> trades = pa.table({"t": [1, 4, 9], "price": [10.0, 10.5, 11.0]})
    >>> quotes = pa.table({"t": [0, 3, 8], "mid": [10.0, 10.4, 10.9]})
    >>> orders = pa.table({"t": [2, 5, 7], "price": [10.1, 10.6, 12.0]})
    >>> found = multijoin({"trades": trades, "quotes": quotes, "orders": orders},
    ...                   predicate="band:price:0.25", columns_of={"quotes.price": "mid"},
    ...                   time="t", window=5, columns="ids")
    >>> found.outputs.select(["trades_row", "quotes_row", "orders_row", "ts"]).to_pylist()
    ... # doctest: +NORMALIZE_WHITESPACE
    [{'trades_row': 0, 'quotes_row': 0, 'orders_row': 0, 'ts': 2},
     {'trades_row': 1, 'quotes_row': 1, 'orders_row': 1, 'ts': 5}]
    """
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        place = Path(folder) / "out" if out is None else Path(out)
        options = multijoin_options(streams, place, None if plot is None else Path(plot), join)
        report = run_multijoin(options, ThreadExecutor()).content
        aside = {path.stem: pq.read_table(path) for path in (place / "_rejected").glob("*.parquet")}
        if out is not None:
            return MultiJoinOutput(None, report, aside)
        report["out"] = None
        kinds = {name: _kinds(own) for name, own in streams.items()}
        outputs = {
            f"{name}_{column}": kind
            for name, columns in kinds.items()
            for column, kind in columns.items()
        }
        rejected = {name: restored(own, kinds[name]) for name, own in aside.items()}
        return MultiJoinOutput(restored(pq.read_table(place), outputs), report, rejected)


def _kinds(source: Source) -> dict[str, pa.DataType]:
    """Return the types of a table's columns, which files may have others for."""
    return {own.name: own.type for own in source.schema} if isinstance(source, pa.Table) else {}
