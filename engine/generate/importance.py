"""Importance of generated tuples: what the papers say of it, and what they leave open."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.generate.source import check_name, check_range
from engine.runtime.errors import SpecError

IMPORTANCE_KINDS = ("constant", "uniform", "rare-high", "inverse-frequency", "exponential")


class ImportanceModel(NamedTuple):
    """Distribution of a stream's importance values, drawn independently of everything else.

    ``rare-high`` is P1's model (section 5): "normal importance tuples dominate the input streams,
    while tuples with high importance, which correspond to aberrant or special values, occur
    infrequently". P1 gives neither the values, nor how frequent the high ones are, nor its upper
    bound U; the defaults here (1 to 10, and 1 % up to 1000) are ours.

    ``inverse-frequency`` is P2's (section 4.1): "smaller importance values were assigned to tuples
    occurring frequently while larger importance values were assigned to tuples occurring
    infrequently". P2 leaves the function open; here the most frequent key has `low` and a key
    f times as rare has ``f * low``, at most `rare_max`.

    Attributes
    ----------
    kind : str
        ``constant``: 1. ``uniform``: one of `low`, ``low + 1``, ... `high`. ``rare-high``: the
        same, but with probability `rare_fraction` one of ``high + 1``, ... `rare_max`.
        ``inverse-frequency``: as above, a function of the key. ``exponential``: mean `mean`.
    low, high : float
        Least and greatest normal importance.
    rare_fraction : float
        Fraction of tuples of high importance, in [0, 1].
    rare_max : float
        Greatest importance.
    mean : float
        Mean of ``exponential``.
    """

    kind: str = "constant"
    low: float = 1.0
    high: float = 10.0
    rare_fraction: float = 0.01
    rare_max: float = 1000.0
    mean: float = 10.0

    def check(self, *, keyed: bool = True) -> None:
        """Raise SpecError if the model is invalid.

        Parameters
        ----------
        keyed : bool
            Whether the stream's keys have frequencies that an importance can follow.
        """
        check_name("importance", self.kind, IMPORTANCE_KINDS)
        check_range("importance-low", self.low, 0)
        check_range("importance-high", self.high, self.low)
        check_range("rare-fraction", self.rare_fraction, 0, 1)
        check_range("importance-mean", self.mean, 0)
        if self.kind == "rare-high":
            check_range("rare-max", self.rare_max, self.high + 1)
        elif self.kind == "inverse-frequency":
            check_range("rare-max", self.rare_max, self.low)
            if not keyed:
                raise SpecError(
                    "importance 'inverse-frequency' needs keys that occur more or less often: "
                    "use another importance, or the zipf generator"
                )

    def values(
        self, rng: np.random.Generator, rows: int, rarity: NDArray[np.float64] | None = None
    ) -> NDArray[np.float64]:
        """Return the importance of the next `rows` tuples.

        Parameters
        ----------
        rng : numpy.random.Generator
            Draws of the stream's importance, one a row.
        rows : int
            How many tuples.
        rarity : (rows,) float64, optional
            Frequency of the most frequent key over that of each tuple's key, 1 or more.

        Returns
        -------
        (rows,) float64
            Finite, 0 or more.
        """
        if self.kind == "constant":
            return np.ones(rows)
        if self.kind == "inverse-frequency":
            scale = np.ones(rows) if rarity is None else rarity
            capped: NDArray[np.float64] = np.minimum(self.low * scale, self.rare_max)
            return capped
        uniform = rng.random(rows)
        if self.kind == "exponential":
            return -self.mean * np.log1p(-uniform)
        if self.kind == "uniform" or self.rare_fraction == 0:
            return _whole_steps(uniform, self.low, self.high)
        return self._rare_high(uniform)

    def _rare_high(self, uniform: NDArray[np.float64]) -> NDArray[np.float64]:
        """Turn one uniform a row into both the choice and the value: the rest stays uniform."""
        fraction = self.rare_fraction
        rare = uniform < fraction
        rest = np.where(rare, uniform / fraction, (uniform - fraction) / (1 - fraction or 1.0))
        normal = _whole_steps(rest, self.low, self.high)
        return np.where(rare, _whole_steps(rest, self.high + 1, self.rare_max), normal)


def _whole_steps(uniform: NDArray[np.float64], low: float, high: float) -> NDArray[np.float64]:
    """Map uniforms in [0, 1] to ``low, low + 1, ...``, at most `high`."""
    steps = np.floor(high - low)
    values: NDArray[np.float64] = low + np.minimum(np.floor(uniform * (steps + 1)), steps)
    return values
