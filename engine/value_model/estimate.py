"""The estimate of one lane: values of its arrivals, and tables by age, batch by batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.exact.checks import sealed
from engine.runtime.streams import StreamBatch
from engine.value_model.layout import LEFT_AT, RIGHT_AT, WAYS, Worth, nothing_seen
from engine.value_model.observe import Join, Side, observe
from engine.value_model.refit import renew
from gpu_kernels.combine import COMBINES


class Terms(NamedTuple):
    """What an estimate depends on besides the streams.

    Attributes
    ----------
    window_left, window_right : int
        W in ticks, closed.
    combine : str
    counters : int
        Keys counted at once; rounded up to a power of two.
    sample : int
        Tuples of each side watched at once; rounded up likewise.
    buckets : int
        Age buckets.
    """

    window_left: int
    window_right: int
    combine: str = "min"
    counters: int = 65_536
    sample: int = 1024
    buckets: int = 32

    @property
    def reserved(self) -> tuple[int, int]:
        """Watched tuples of both sides and counted keys that there is room for."""
        return 2 * _power_of_two(self.sample), _power_of_two(self.counters)


class Part(NamedTuple):
    """Rows of a batch to be replayed by one table.

    Attributes
    ----------
    left, right : int
        The part ends before these rows of the batch; it begins where the part before ends.
    table : (2, 2, buckets) float64
        Best rate ahead by side, state and age bucket, in any unit a side.
    """

    left: int
    right: int
    table: NDArray[np.float64]


class Valued(NamedTuple):
    """What the estimate says of a batch.

    Attributes
    ----------
    values : (left, right) of (n,) float64
        By which a tuple's table is multiplied for its priority.
    parts : tuple of Part
        One after the other; the last ends with the batch.
    """

    values: tuple[NDArray[np.float64], NDArray[np.float64]]
    parts: tuple[Part, ...]


class Estimate:
    """Follow the streams of a lane and say what its tuples are worth (docs/yield.md).

    Parameters
    ----------
    terms : Terms

    Notes
    -----
    Memory: 49 bytes a counter, 208 a watched tuple of both sides, and 104 kB with 32 buckets; O(1)
    a row but for the watched tuples that it matches, and a renewal for every tenth more rows.
    Batches do not matter, nor do lanes besides this one, nor what any memory retains.

    Examples
    --------
    >>> import numpy as np
    >>> batch = StreamBatch(np.arange(3), np.arange(3), np.array([7, 8, 7]), np.array([1.0, 2, 3]))
    >>> valued = Estimate(Terms(9, 9)).push(batch, batch)
    >>> valued.values[0].tolist()
    [1.0, 1.3333333333333333, 1.5]
    """

    def __init__(self, terms: Terms) -> None:
        self._join = Join(terms.window_left, terms.window_right, COMBINES.index(terms.combine))
        self._lifetimes = terms.window_left + 1, terms.window_right + 1
        self._worth = nothing_seen(terms.reserved[1], terms.reserved[0] // 2, terms.buckets)

    @property
    def memory(self) -> Worth:
        """All that it remembers of the lane; the arrays themselves."""
        return self._worth

    def push(self, left: StreamBatch, right: StreamBatch) -> Valued:
        """Return the values of a batch, cut between instants, and the tables to replay it by.

        Parameters
        ----------
        left, right : StreamBatch
            In arrival order, all later than what was pushed before.

        Returns
        -------
        Valued
        """
        sides = side_of(left), side_of(right)
        return Valued((sides[0].value, sides[1].value), tuple(self.observed(*sides)))

    def observed(self, left: Side, right: Side) -> list[Part]:
        """Fill the values of a batch, and return the tables to replay it by."""
        worth = self._worth
        parts: list[Part] = []
        table = worth.table.copy()
        renewed = False
        while not observe(worth, self._join, left, right, renewed):
            parts.append(Part(int(worth.n[LEFT_AT]), int(worth.n[RIGHT_AT]), table))
            renew(worth, self._lifetimes, self._join.combine)
            table = worth.table.copy()
            renewed = True
        parts.append(Part(left.ts.size, right.ts.size, table))
        return parts


def side_of(batch: StreamBatch) -> Side:
    """Return a batch as an estimate goes through it."""
    return Side(
        sealed(batch.ts, np.int64),
        sealed(batch.key, np.int64),
        sealed(batch.importance, np.float64),
        np.empty(batch.ts.size),
    )


def _power_of_two(number: int) -> int:
    return 1 << (max(number, WAYS) - 1).bit_length()
