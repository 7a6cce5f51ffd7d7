"""The inputs of the cost of a join order: statistics (P3 table 1) and the join algorithm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from engine.multiway.loops.method import METHODS as ALGORITHMS
from engine.multiway.loops.method import Method
from engine.multiway.streams import MOST_STREAMS
from engine.runtime.errors import SpecError, chosen
from engine.runtime.jit import Floats, Ints


@dataclass(frozen=True)
class StreamStatistics:
    """One stream and its window, as P3's cost model sees them.

    Raises
    ------
    SpecError
        If a number is invalid.

    Examples
    --------
    >>> StreamStatistics("calls", 3, 100, 5).size
    300.0
    """

    name: str
    """For tables and messages."""
    rate: float
    """lambda: tuples per unit time, 0 or more."""
    window: float
    """T: the window in that unit, 0 or more; C / lambda for a window of the last C tuples."""
    distinct: float
    """v: distinct values of the join attribute in the window, 1 or more."""
    buckets: int | None = None
    """b: hash buckets of the window; None: it is scanned."""

    def __post_init__(self) -> None:
        for what, value, least in (
            ("rate", self.rate, 0),
            ("window", self.window, 0),
            ("distinct values", self.distinct, 1),
        ):
            if not (value >= least and math.isfinite(value)):
                raise SpecError(
                    f"{what} {value} of stream {self.name} must be {least} or more and finite"
                )
        if self.buckets is not None and not (
            self.buckets >= 1 and float(self.buckets).is_integer()
        ):
            raise SpecError(
                f"{self.buckets} buckets of stream {self.name}: give a whole number of 1 or more, "
                "or none where the window is scanned"
            )
        if not math.isfinite(self.size):
            raise SpecError(
                f"rate {self.rate} times window {self.window} of stream {self.name} is more than "
                "float64 holds; give smaller ones"
            )

    @property
    def size(self) -> float:
        """Tuples in the window: C = lambda * T."""
        return float(self.rate) * float(self.window)


@dataclass(frozen=True)
class JoinStatistics:
    """The streams of a join.

    Raises
    ------
    SpecError
        If there are too few or too many streams, or a number is invalid.

    Examples
    --------
    >>> two = StreamStatistics("a", 1, 10, 5), StreamStatistics("b", 2, 10, 5)
    >>> JoinStatistics(two, ((1, 0.2), (0.2, 1))).selectivities
    ((1, 0.2), (0.2, 1))
    """

    streams: tuple[StreamStatistics, ...]
    """tuple of m StreamStatistics. 2 to 8, in the join's order."""
    selectivities: Sequence[Sequence[float]] | None = None
    """m sequences of m floats, or None. sigma_ij: the share of pairs of tuples of streams i and j
    that match, in [0, 1]; the diagonal is not read. None: not known."""

    def __post_init__(self) -> None:
        m = len(self.streams)
        if not 2 <= m <= MOST_STREAMS:
            raise SpecError(f"a join of {m} streams: give 2 to {MOST_STREAMS}")
        if self.selectivities is not None:
            self._check_selectivities(self.selectivities)

    def _check_selectivities(self, selectivities: Sequence[Sequence[float]]) -> None:
        for i, row in enumerate(selectivities):
            for j, sigma in enumerate(row):
                if i != j and not 0 <= sigma <= 1:
                    raise SpecError(
                        f"selectivity {sigma} between streams {self.streams[i].name} and "
                        f"{self.streams[j].name} must be from 0 to 1"
                    )


Orders = Ints

DEFAULT_METHOD = "eager-nlj"
METHODS = (DEFAULT_METHOD, *(name for name in ALGORITHMS if name != DEFAULT_METHOD))


@dataclass(frozen=True)
class OrderingProblem:
    """A join and the algorithm whose order is sought.

    Raises
    ------
    SpecError
        If there is no such method, or it wants tau or buckets that are not there, or the reverse.

    Examples
    --------
    P3 figure 3's join at tau = 50: a lazy store holds half as much again as its window.

    >>> join = JoinStatistics(tuple(StreamStatistics(name, 1, 100, 50) for name in "abcd"))
    >>> OrderingProblem(join, "lazy-nlj", 50).stores.tolist()
    [150.0, 150.0, 150.0, 150.0]
    """

    statistics: JoinStatistics
    method: str = DEFAULT_METHOD
    """One of `METHODS`."""
    tau: float | None = None
    """P3's tau in the statistics' unit of time, for lazy methods: the interval of re-evaluation and
    of expiration."""

    def __post_init__(self) -> None:
        chosen("method", self.method, METHODS)
        self._check_tau(self.tau)
        self._check_buckets(ALGORITHMS[self.method].hashed)

    def _check_tau(self, tau: float | None) -> None:
        if not self.algorithm.lazy and tau is not None:
            raise SpecError(
                f"--tau is {tau:g}, but {self.method} joins every tuple at once: leave it out, or "
                "choose a lazy method"
            )
        if self.algorithm.lazy and tau is None:
            raise SpecError(f"--tau is missing: --method {self.method} joins new tuples every tau")
        if tau is not None and not (tau > 0 and math.isfinite(tau)):
            raise SpecError(f"--tau {tau:g} must be more than 0 and finite")

    def _check_buckets(self, hashed: str) -> None:
        with_buckets = [s.name for s in self.statistics.streams if s.buckets is not None]
        without = [s.name for s in self.statistics.streams if s.buckets is None]
        if hashed == "none" and with_buckets:
            raise SpecError(
                f"{self.method} scans every window, but stream {with_buckets[0]} has buckets: "
                "leave them out, or choose eager-hash, lazy-hash or hybrid"
            )
        if hashed == "all" and without:
            raise SpecError(
                f"{self.method} hashes every window, but stream {without[0]} has no buckets: "
                "give --buckets, or choose hybrid"
            )
        if hashed == "some" and not with_buckets:
            raise SpecError(f"--method {self.method} needs --buckets of at least one stream")

    @property
    def algorithm(self) -> Method:
        """The algorithm of the method."""
        return ALGORITHMS[self.method]

    @property
    def m(self) -> int:
        """Number of streams."""
        return len(self.statistics.streams)

    @cached_property
    def rates(self) -> Floats:
        """lambda, (m,) float64."""
        return np.array([s.rate for s in self.statistics.streams], np.float64)

    @cached_property
    def windows(self) -> Floats:
        """T, (m,) float64."""
        return np.array([s.window for s in self.statistics.streams], np.float64)

    @cached_property
    def distinct(self) -> Floats:
        """Return v, (m,) float64."""
        return np.array([s.distinct for s in self.statistics.streams], np.float64)

    @cached_property
    def buckets(self) -> Floats:
        """b, 1 where a window is scanned, (m,) float64."""
        return np.array([s.buckets or 1 for s in self.statistics.streams], np.float64)

    @cached_property
    def stores(self) -> Floats:
        """Tuples in the stores when they are probed, (m,) float64.

        Eagerly expired they are the windows: lambda * T. A lazy method re-evaluates at NOW over
        stores that were last expired at NOW - tau, when they went back to NOW - tau - T: they hold
        lambda * (T + tau). (Over time they hold lambda * (T + tau / 2) on average, but they are
        read only when they are largest.)
        """
        return self.rates * (self.windows + (0.0 if self.tau is None else self.tau))

    @cached_property
    def probed(self) -> Floats:
        """Tuples of the stores that one probe goes through, a hashed one's a bucket (P3 5.3)."""
        return self.stores / self.buckets

    def batch(self, direction: int) -> float:
        """Return the new tuples of one evaluation: one, or the lambda_i * tau of a batch."""
        return 1.0 if self.tau is None else float(self.rates[direction]) * self.tau

    def per_unit(self, direction: int, evaluation: Floats) -> Floats:
        """Return the cost per unit time of one evaluation of a direction."""
        if self.tau is None:
            return float(self.rates[direction]) * evaluation
        return evaluation / self.tau

    def loops(self, direction: int) -> Floats:
        """Return the tuples that each stream's loop goes through, (m,) float64."""
        found = self.probed.copy()
        found[direction] = self.batch(direction)
        return found
