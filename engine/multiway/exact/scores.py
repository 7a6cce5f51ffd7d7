"""The scores of the outputs of two streams of dense vectors."""

from __future__ import annotations

import numpy as np

from engine.multiway.exact.compaction import scores
from engine.multiway.exact.screen import kind_of, squares
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Ints
from gpu_kernels.multiway.predicates import COSINE, DISTANCE


class Scores:
    """Scores by the definition: in float64, added up in index order.

    Parameters
    ----------
    predicate : Predicate
        Of dense vectors.
    value : (n, d) float64
        By place.
    """

    def __init__(self, predicate: Predicate, value: Floats) -> None:
        self._kind, self._value = kind_of(predicate), value
        self._length = np.sqrt(squares(value)) if self._kind == COSINE else np.zeros(0)

    @classmethod
    def of(cls, predicate: Predicate, streams: MultiStreams) -> Scores | None:
        """Return the scores of a join's outputs; None where an output has none, or several."""
        if not predicate.dense or streams.number != 2:
            return None
        return cls(predicate, np.require(streams.attributes.value, np.float64, ["C", "W"]))

    def pairs(self, members: Ints) -> Floats:
        """Return the cosines, inner products or distances of pairs: (n,) float64. O(n d).

        Parameters
        ----------
        members : (n, 2) int64
            Places.
        """
        left, right = (np.ascontiguousarray(column) for column in members.T)
        found = scores(self._kind, self._length, self._value, left, right)
        return np.sqrt(found) if self._kind == DISTANCE else found
