"""Outputs with the columns of their members, made some at a time: wide ones take gigabytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import pyarrow as pa

T = TypeVar("T")
PIECE_BYTES = 1 << 27
"""Of a piece, about."""


def bytes_a_row(tables: Iterable[pa.Table]) -> float:
    """Return the mean bytes of a row that has the columns of all tables.

    Examples
    --------
    >>> bytes_a_row([pa.table({"a": [1, 2]}), pa.table({"b": [0.5], "c": [1]})])
    24.0
    """
    return float(sum(own.nbytes / own.num_rows for own in tables if own.num_rows))


def in_pieces(rows: int, width: float, make: Callable[[slice], T]) -> Iterator[T]:
    """Yield what is made of all rows, in order, each time of `PIECE_BYTES` or less by the mean.

    A piece with texts that exceed what one array holds is halved.

    Parameters
    ----------
    rows : int
        Of all.
    width : float
        Mean bytes of a row.
    make : callable
        Returns the columns of some rows.
    """
    step = max(1, int(PIECE_BYTES // max(width, 1.0)))
    waiting = [slice(begin, min(begin + step, rows)) for begin in range(0, rows, step)][::-1]
    while waiting:
        piece = waiting.pop()
        try:
            made = make(piece)
        except pa.ArrowInvalid:
            if piece.stop - piece.start == 1:
                raise
            middle = (piece.start + piece.stop) // 2
            waiting += [slice(middle, piece.stop), slice(piece.start, middle)]
        else:
            yield made
