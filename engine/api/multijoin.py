"""Multi-way joins from Python: the command line's work as a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.api.keywords import takes
from engine.api.tables import Source, read_several, sources_of
from engine.jobs.multijoin.run import run_multijoin
from engine.options import where
from engine.options.multijoin_given import multijoin_of
from engine.options.multijoin_options import MULTIJOIN, MultiJoin
from engine.runtime.executors import ThreadExecutor


class MultiJoinKeywords(MultiJoin, where.Out, total=False):
    """The keywords of a multi-way join."""


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
        Rows that were set aside, with their reasons, by stream; streams without any are left out.
    """

    outputs: pa.Table | None
    report: dict[str, Any]
    rejected: dict[str, pa.Table]


@takes(MULTIJOIN)
def multijoin(
    streams: Mapping[str, Source], **options: Unpack[MultiJoinKeywords]
) -> MultiJoinOutput:
    """Join 2 to 8 streams on any predicate: exactly (P3), or within a budget of memory or CPU (P4).

    An output is one tuple of every stream, of which the latest finds all others unexpired.

    Parameters
    ----------
    streams : mapping of str to pyarrow.Table or path
        By name, in order: at equal times, tuples of an earlier stream arrive first. A path is a
        file, folder or glob; a row's number is its position.
    **options
        As ``winnow multijoin`` has them. `time`, `importance`, `window` and `buckets` are for all
        streams, or mappings by name, where ``""`` stands for all that are not named. `predicate`
        is text or a `Predicate`; `profiles` is ``{"left,right": file}``. Without `out`, the folder
        of the output dataset, which must not exist, outputs are returned.

    Returns
    -------
    MultiJoinOutput
        Memory: the streams, and with `out` None the outputs.

    Raises
    ------
    WinnowError
        If an option, a table or an archive is invalid, or the output cannot be
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
    given = MULTIJOIN.from_keywords(options)
    named = sources_of(streams)
    return MultiJoinOutput(
        *read_several(
            named,
            given,
            lambda: run_multijoin(multijoin_of(named, given), ThreadExecutor()).content,
        )
    )
