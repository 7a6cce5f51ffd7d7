"""Payload columns of the rows that can still join, taken by arrival number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


class PayloadWindow:
    """Keeps one side's payload for as long as its rows are unexpired.

    Parameters
    ----------
    window : int
        W in ticks.

    Notes
    -----
    Memory: the payload of the window and two batches.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._ts = np.empty(0, np.int64)
        self._table: pa.Table | None = None
        self._first = 0  # arrival number of the first row kept

    def push(self, ts: NDArray[np.int64], table: pa.Table) -> None:
        """Add a batch's rows; drop the rows that expired before it.

        The other side's first arrival of a batch can be long before this side's, but never before
        the last of an earlier batch.
        """
        if ts.size == 0:
            return
        last = self._ts[-1] if self._ts.size else ts[0]
        gone = int(np.searchsorted(self._ts, last - self._window))
        if self._table is None:
            self._table = table
        else:
            self._table = pa.concat_tables([self._table.slice(gone), table]).combine_chunks()
        self._first += gone
        self._ts = np.concatenate([self._ts[gone:], ts])

    def take(self, seq: NDArray[np.int64]) -> pa.Table:
        """Return the payload of rows by their arrival numbers, in that order."""
        assert self._table is not None  # noqa: S101 - outputs are of rows that arrived
        return self._table.take(pa.array(seq - self._first))
