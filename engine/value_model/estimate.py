"""The estimate of one lane: values of its arrivals, and tables by age, batch by batch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.exact.checks import sealed
from engine.facts.index import FactIndex
from engine.facts.lookup import FactLookup
from engine.runtime.jit import Floats, Ints
from engine.runtime.streams import StreamBatch
from engine.value_model.layout import LEFT_AT, RIGHT_AT, WAYS, ValueModel, nothing_seen
from engine.value_model.observe import Join, SideBatch, observe
from engine.value_model.refit import refit
from gpu_kernels.combine import COMBINES


class Terms(NamedTuple):
    """What an estimate depends on besides the streams."""

    window_left: int
    window_right: int
    """`window_left`, `window_right`: W in ticks, closed."""
    combine: str = "min"
    counters: int = 65_536
    """Keys counted at once; rounded up to a power of two."""
    sample: int = 1024
    """Tuples of each side watched at once; rounded up likewise."""
    buckets: int = 32
    """Age buckets."""

    @property
    def reserved(self) -> tuple[int, int]:
        """Watched tuples of both sides and counted keys that there is room for."""
        return 2 * _power_of_two(self.sample), _power_of_two(self.counters)


class Part(NamedTuple):
    """Rows of a batch to be replayed by one table."""

    left: int
    right: int
    """`left`, `right`: The part ends before these rows of the batch; it begins where the part
    before ends."""
    table: Floats
    """(2, 2, buckets) float64. Best rate ahead by side, state and age bucket, in any unit a
    side."""


class Valued(NamedTuple):
    """What the estimate says of a batch."""

    values: tuple[Floats, Floats]
    """(left, right) of (n,) float64. By which a tuple's table is multiplied for its priority."""
    parts: tuple[Part, ...]
    """One after the other; the last ends with the batch."""

    def after(self, left: int, right: int) -> Valued:
        """Return the same of a batch without so many of its first tuples; parts may be empty."""
        parts = (Part(max(0, p.left - left), max(0, p.right - right), p.table) for p in self.parts)
        return Valued((self.values[0][left:], self.values[1][right:]), tuple(parts))


class Estimate:
    """Follow the streams of a lane and say what its tuples yield (docs/yield.md).

    Notes
    -----
    Memory: 49 bytes a counter, 208 a watched tuple of both sides, and 104 kB with 32 buckets; O(1)
    a row but for the watched tuples that it matches, and a refit for every tenth more rows.
    Batches do not matter, nor do lanes besides this one, nor what any memory retains.

    Examples
    --------
    >>> batch = StreamBatch(np.arange(3), np.arange(3), np.array([7, 8, 7]), np.array([1.0, 2, 3]))
    >>> valued = Estimate(Terms(9, 9)).push(batch, batch)
    >>> valued.values[0].tolist()
    [1.0, 1.3333333333333333, 1.5]
    """

    def __init__(self, terms: Terms) -> None:
        self._join = Join(terms.window_left, terms.window_right, COMBINES.index(terms.combine))
        self._lifetimes = terms.window_left + 1, terms.window_right + 1
        self._model = nothing_seen(
            terms.reserved[1], terms.reserved[0] // 2, terms.buckets, self._lifetimes
        )

    @property
    def memory(self) -> ValueModel:
        """All that it remembers of the lane; the arrays themselves."""
        return self._model

    def push(self, left: StreamBatch, right: StreamBatch) -> Valued:
        """Return the values of a batch, cut between instants, and the tables to replay it by.

        Parameters
        ----------
        left, right : StreamBatch
            In arrival order, all later than what was pushed before.
        """
        sides = side_of(left), side_of(right)
        return Valued((sides[0].value, sides[1].value), tuple(self.observed(*sides)))

    def observed(self, left: SideBatch, right: SideBatch) -> list[Part]:
        """Fill the values of a batch, and return the tables to replay it by."""
        model = self._model
        parts: list[Part] = []
        table = model.table.copy()
        refitted = False
        while not observe(model, self._join, left, right, refitted):
            parts.append(Part(int(model.n[LEFT_AT]), int(model.n[RIGHT_AT]), table))
            self.refit()
            table = model.table.copy()
            refitted = True
        parts.append(Part(left.ts.size, right.ts.size, table))
        return parts

    def refit(self) -> None:
        """Recompute what is derived from the counts, for the arrivals from here on."""
        refit(self._model, self._lifetimes, self._join.combine)


def side_of(batch: StreamBatch) -> SideBatch:
    """Return a batch as an estimate goes through it."""
    return SideBatch(
        sealed(batch.ts, np.int64),
        sealed(batch.key, np.int64),
        sealed(batch.importance, np.float64),
        np.empty(batch.ts.size),
    )


def _power_of_two(number: int) -> int:
    return 1 << (max(number, WAYS) - 1).bit_length()


def estimate_of(terms: Terms, index: FactIndex | None) -> Estimate:
    """Return the estimate of a lane, in which facts join the streams or equal keys."""
    return Estimate(terms) if index is None else FactEstimate(terms, index)


class FactEstimate(Estimate):
    """An estimate that sees the tuples that facts join, by their attributes' places in F."""

    def __init__(self, terms: Terms, index: FactIndex) -> None:
        super().__init__(terms)
        self._index = index
        self._lookups = [FactLookup(index.facts, side.access) for side in index.sides]
        self._joined = []
        for side, column in ((1, index.facts.b), (0, index.facts.a)):  # of the other side
            place = np.searchsorted(index.sides[side].access.groups.codes, column)
            self._joined.append(2 * place + side)

    def push(self, left: StreamBatch, right: StreamBatch) -> Valued:
        """Return the values of a batch, cut between instants, and the tables to replay it by.

        As `Estimate.push`; a tuple that no fact joins has the value 0.
        """
        kept, sides = zip(*map(self._seen, (0, 1), (left, right)), strict=True)
        parts = self.observed(sides[0], sides[1])
        values = []
        for batch, rows, side in zip((left, right), kept, sides, strict=True):
            value = np.zeros(batch.ts.size)
            value[rows] = side.value
            values.append(value)
        return Valued((values[0], values[1]), tuple(self._of_batch(parts, sides, (left, right))))

    def _seen(self, side: int, batch: StreamBatch) -> tuple[Ints, SideBatch]:
        """Return the rows that facts join, and what the estimate is shown of them."""
        own = self._index.sides[side].access
        found = list(self._lookups[side].matches(batch.key, batch.ts))
        arrival = np.concatenate([np.empty(0, np.int64), *(each.arrival for each in found)])
        fact = np.concatenate([np.empty(0, np.int64), *(each.fact for each in found)])
        order = np.lexsort((fact, arrival))
        arrival, fact = arrival[order], fact[order]
        rows, first = np.unique(arrival, return_index=True)
        shown = side_of(StreamBatch(*(column[rows] for column in batch)))
        return rows, shown._replace(
            key=2 * own.find(shown.key) + side,
            first=np.append(first, fact.size).astype(np.int64),
            other=self._joined[side][fact],
            begin=self._index.facts.begin[fact],
        )

    @staticmethod
    def _of_batch(
        parts: list[Part], sides: tuple[SideBatch, ...], batch: tuple[StreamBatch, StreamBatch]
    ) -> list[Part]:
        """Return the parts by the rows of the batch: each ends before an instant, or with it."""
        found = []
        for part in parts[:-1]:
            ends = zip(sides, (part.left, part.right), strict=True)
            now = min(int(side.ts[at]) for side, at in ends if at < side.ts.size)
            left, right = (int(np.searchsorted(own.ts, now)) for own in batch)
            found.append(Part(left, right, part.table))
        return [*found, Part(batch[0].ts.size, batch[1].ts.size, parts[-1].table)]
