"""Arrival times (regular or random gaps, several arrivals an instant, ties) and importance."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.generate.source import Purpose, check_name, check_range, draws
from engine.runtime.errors import SpecError

ARRIVALS = ("regular", "uniform", "exponential")


class ArrivalSpec(NamedTuple):
    """How the tuples of a stream arrive."""

    kind: str
    """``regular``: row i arrives at tick ``floor(i / rate)``, counted exactly; P1 and P2's one
    tuple an instant is rate 1. ``uniform``: inter-arrival times uniform in [1/(2 rate), 2/rate] (P5
    6.2); P5 calls `rate` the average rate, but the mean gap is 1.25/rate, so 0.8 * rate tuples a
    tick arrive. ``exponential``: a Poisson process. The last two round down to whole ticks."""
    rate: Fraction
    """Tuples per tick, as exact as it was given. Above 1 an instant has several arrivals, below 1
    there are ticks without any."""
    start_ts: int = 0
    """Tick at which the clock starts. The first row arrives there (``regular``) or one gap
    later."""
    ties: float = 0.0
    """Probability in [0, 1] that a row arrives at the instant of the row before it, instead of its
    own. The average rate stays."""

    def check(self, rows: int) -> None:
        """Raise SpecError if the options are invalid or `rows` timestamps overflow int64."""
        check_name("arrivals", self.kind, ARRIVALS)
        check_range("ties", self.ties, 0, 1)
        check_range("start-ts", self.start_ts, -(2**63), 2**63 - 1)
        what = f"{rows} rows at {float(self.rate):g} tuples per tick from tick {self.start_ts}"
        if self.start_ts + (4 * rows + 64) / self.rate >= 2**63:
            raise SpecError(
                f"{what} run past the last int64 timestamp: "
                "lower the rows or start-ts, or raise the rate"
            )
        if rows * (self.rate.denominator % self.rate.numerator) >= 2**63:
            raise SpecError(f"{what} cannot be counted exactly: use a rate of fewer digits")


class Clock:
    """Arrival times of one stream, taken in pieces of any size.

    Parameters
    ----------
    spec : ArrivalSpec
        How tuples arrive.
    seed : int
        Seed of the workload.
    stream : int
        Index of the stream; streams of one workload draw independently.
    """

    def __init__(self, spec: ArrivalSpec, seed: int, stream: int) -> None:
        self._spec = spec
        self._gaps = draws(seed, Purpose.ARRIVAL, stream)
        self._tie_draws = draws(seed, Purpose.TIE, stream)
        self._row = 0
        self._elapsed = 0.0
        self._last_ts = spec.start_ts

    def take(self, rows: int) -> NDArray[np.int64]:
        """Return the timestamps of the next `rows` tuples.

        Returns
        -------
        (rows,) int64
            Ticks, non-decreasing.
        """
        own = self._regular(rows) if self._spec.kind == "regular" else self._random(rows)
        ts = own + self._spec.start_ts
        if self._spec.ties > 0:
            ts = self._tied(ts)
        self._row += rows
        return ts

    def _regular(self, rows: int) -> NDArray[np.int64]:
        index = np.arange(self._row, self._row + rows, dtype=np.int64)
        whole, part = divmod(self._spec.rate.denominator, self._spec.rate.numerator)
        if part == 0:
            return index * whole
        return index * whole + index * part // self._spec.rate.numerator

    def _random(self, rows: int) -> NDArray[np.int64]:
        mean = 1 / float(self._spec.rate)
        uniform = self._gaps.random(rows)
        if self._spec.kind == "uniform":
            gaps = mean * (0.5 + 1.5 * uniform)
        else:
            gaps = -mean * np.log1p(-uniform)
        if rows:
            # The sum runs on from the last chunk's in the same order: rounding is chunk-free.
            gaps[0] += self._elapsed
            gaps = np.cumsum(gaps)
            self._elapsed = float(gaps[-1])
        return gaps.astype(np.int64)

    def _tied(self, ts: NDArray[np.int64]) -> NDArray[np.int64]:
        own = self._tie_draws.random(len(ts)) >= self._spec.ties
        if self._row == 0:
            own[:1] = True
        source = np.maximum.accumulate(np.where(own, np.arange(len(ts)), -1))
        tied: NDArray[np.int64] = np.where(source >= 0, ts[source], self._last_ts)
        if len(tied):
            self._last_ts = int(tied[-1])
        return tied


_GREATEST_MEAN = 1e300
"""Of exponential importance: a draw is up to 37 times its mean, and finite."""
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
    """

    kind: str = "constant"
    """``constant``: 1. ``uniform``: one of `low`, ``low + 1``, ... `high`. ``rare-high``: the same,
    but with probability `rare_fraction` one of ``high + 1``, ... `rare_max`. ``inverse-frequency``:
    as above, a function of the key. ``exponential``: mean `mean`."""
    low: float = 1.0
    high: float = 10.0
    """`low`, `high`: Least and greatest normal importance."""
    rare_fraction: float = 0.01
    """Fraction of tuples of high importance, in [0, 1]."""
    rare_max: float = 1000.0
    """Greatest importance."""
    mean: float = 10.0
    """Mean of ``exponential``."""

    def check(self, *, keyed: bool = True) -> None:
        """Raise SpecError if the model is invalid.

        Parameters
        ----------
        keyed : bool
            Whether the stream's keys have frequencies that an importance can follow.
        """
        check_name("importance", self.kind, IMPORTANCE_KINDS)
        check_range("importance-low", self.low, 0)
        ranged = self.kind in ("uniform", "rare-high")
        check_range("importance-high", self.high, self.low if ranged else 0)
        check_range("rare-fraction", self.rare_fraction, 0, 1)
        check_range("importance-mean", self.mean, 0, _GREATEST_MEAN)
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
