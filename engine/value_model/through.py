"""The estimate of a lane whose streams a fact relation joins (docs/yield.md, the same section)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.facts.index import FactIndex
from engine.facts.lookup import FactLookup
from engine.runtime.streams import StreamBatch
from engine.value_model.estimate import Estimate, Part, Terms, Valued, side_of
from engine.value_model.observe import Side

Ints = NDArray[np.int64]


def estimate_of(terms: Terms, index: FactIndex | None) -> Estimate:
    """Return the estimate of a lane, in which facts join the streams or equal keys."""
    return Estimate(terms) if index is None else FactEstimate(terms, index)


class FactEstimate(Estimate):
    """An estimate that sees the tuples that facts join, by their attributes' places in F.

    Parameters
    ----------
    terms : Terms
    index : FactIndex
    """

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

    def _seen(self, side: int, batch: StreamBatch) -> tuple[Ints, Side]:
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
        parts: list[Part], sides: tuple[Side, ...], batch: tuple[StreamBatch, StreamBatch]
    ) -> list[Part]:
        """Return the parts by the rows of the batch: each ends before an instant, or with it."""
        found = []
        for part in parts[:-1]:
            ends = zip(sides, (part.left, part.right), strict=True)
            now = min(int(side.ts[at]) for side, at in ends if at < side.ts.size)
            left, right = (int(np.searchsorted(own.ts, now)) for own in batch)
            found.append(Part(left, right, part.table))
        return [*found, Part(batch[0].ts.size, batch[1].ts.size, parts[-1].table)]
