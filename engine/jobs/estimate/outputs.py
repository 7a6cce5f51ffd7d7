"""The outputs of a stretch: their totals, and what they are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives.stretches import StretchTuples
from engine.exact import count_pairs, emit_pairs
from engine.runtime.jit import Floats, Ints
from engine.runtime.streams import StreamBatch

_COMBINED: dict[str, Callable[[Floats, Floats], Floats]] = {
    "min": np.minimum,
    "max": np.maximum,
    "sum": np.add,
    "product": np.multiply,
    "mean": lambda own, other: 0.5 * (own + other),
}


class Chunk(NamedTuple):
    """Some outputs."""

    members: Sequence[Ints]
    """(n,) int64 each. Of every stream, the tuples' positions in the stretch."""
    importance: Floats
    """(n,) float64."""


class StretchOutputs(ABC):
    """The outputs of a stretch.

    Parameters
    ----------
    payloads : sequence of pyarrow.Table or None
        Columns that aggregates read, a row a tuple of each stream; None where there are none.
    sizes : sequence of int
        Tuples of each stream.
    """

    def __init__(self, payloads: Sequence[pa.Table | None], sizes: Sequence[int]) -> None:
        self.payloads, self.sizes = payloads, sizes

    @abstractmethod
    def totals(self) -> tuple[float, float]:
        """Return the number of outputs, and their importance."""

    def total_of(self, stream: int, values: Floats) -> float:
        """Return the sum over all outputs of a number that the tuples of one stream have.

        NaN and infinities are added as float64 does, where an output has one: joins count weights
        that are finite.
        """
        finite = np.isfinite(values)
        total = self.finite_total_of(stream, np.where(finite, values, 0.0))
        for odd in np.unique(values[~finite]):
            weights = (np.isnan(values) if np.isnan(odd) else values == odd).astype(np.float64)
            total += float(odd) if self.finite_total_of(stream, weights) else 0.0
        return total

    @abstractmethod
    def finite_total_of(self, stream: int, values: Floats) -> float:
        """Return the same of finite numbers."""

    @abstractmethod
    def chunks(self) -> Iterator[Chunk]:
        """Yield the outputs."""


class NoOutputs(StretchOutputs):
    """None, as a stream has no tuples there."""

    def __init__(self, streams: int) -> None:
        super().__init__([None] * streams, [0] * streams)

    def totals(self) -> tuple[float, float]:
        """Return 0."""
        return 0, 0.0

    def finite_total_of(self, stream: int, values: Floats) -> float:
        """Return 0."""
        del stream, values
        return 0.0

    def chunks(self) -> Iterator[Chunk]:
        """Yield nothing."""
        return iter(())


class Pairs(StretchOutputs):
    """The outputs of two streams whose keys are equal.

    Parameters
    ----------
    first : int
        First tick whose outputs are of the stretch.
    """

    def __init__(
        self,
        sides: tuple[StretchTuples, StretchTuples],
        windows: tuple[int, int],
        combine: str,
        first: int,
    ) -> None:
        super().__init__([own.payload for own in sides], [own.batch.ts.size for own in sides])
        self._batches = sides[0].batch, sides[1].batch
        self._windows, self._combine, self._first = windows, combine, first

    def totals(self) -> tuple[float, float]:
        """Return the number of outputs, and their importance. Without finding each."""
        return self._counted(self._batches, self._combine)

    def finite_total_of(self, stream: int, values: Floats) -> float:
        """Return the sum of a number of one stream's tuples. Without finding each output."""
        left, right = (
            batch._replace(importance=values if side == stream else np.ones(batch.ts.size))
            for side, batch in enumerate(self._batches)
        )
        return self._counted((left, right), "product")[1]

    def _counted(
        self, batches: tuple[StreamBatch, StreamBatch], combine: str
    ) -> tuple[float, float]:
        return count_pairs(*batches, *self._windows, combine, start_ts=self._first, threads=1)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the outputs in the order of the arrival of their later members."""
        combined = _COMBINED[self._combine]
        left, right = self._batches
        for pair in emit_pairs(left, right, *self._windows, start_ts=self._first, threads=1):
            yield Chunk(pair, combined(left.importance[pair[0]], right.importance[pair[1]]))
