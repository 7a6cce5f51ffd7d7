"""What the cost of a join order depends on (P3 table 1), checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from engine.multiway.fractions.profile import MOST_STREAMS
from engine.runtime.errors import SpecError


@dataclass(frozen=True)
class StreamStatistics:
    """One stream and its window, as P3's cost model sees them.

    Parameters
    ----------
    name : str
        For tables and messages.
    rate : float
        lambda: tuples per unit time, 0 or more.
    window : float
        T: the window in that unit, 0 or more; C / lambda for a window of the last C tuples.
    distinct : float
        v: distinct values of the join attribute in the window, 1 or more.
    buckets : int or None
        b: hash buckets of the window; None: it is scanned.

    Raises
    ------
    SpecError
        If a number means nothing.

    Examples
    --------
    >>> StreamStatistics("calls", 3, 100, 5).size
    300.0
    """

    name: str
    rate: float
    window: float
    distinct: float
    buckets: int | None = None

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

    Parameters
    ----------
    streams : tuple of m StreamStatistics
        2 to 8, in the join's order.
    selectivities : m sequences of m floats, or None
        sigma_ij: the share of pairs of tuples of streams i and j that match, in [0, 1]; the
        diagonal is not read. None: not known.

    Raises
    ------
    SpecError
        If there are too few or too many streams, or a number means nothing.

    Examples
    --------
    >>> two = StreamStatistics("a", 1, 10, 5), StreamStatistics("b", 2, 10, 5)
    >>> JoinStatistics(two, ((1, 0.2), (0.2, 1))).selectivities
    ((1, 0.2), (0.2, 1))
    """

    streams: tuple[StreamStatistics, ...]
    selectivities: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        m = len(self.streams)
        if not 2 <= m <= MOST_STREAMS:
            raise SpecError(f"a join of {m} streams: give 2 to {MOST_STREAMS}")
        names = [stream.name for stream in self.streams]
        if len(set(names)) < m:
            raise SpecError(f"streams are named {', '.join(names)}: give each a name of its own")
        if self.selectivities is not None:
            self._check_selectivities(self.selectivities, m)

    def _check_selectivities(self, selectivities: Sequence[Sequence[float]], m: int) -> None:
        lengths = [len(row) for row in selectivities]
        if lengths != [m] * m:
            raise SpecError(
                f"selectivities have rows of {lengths} values; give {m} rows of {m} values"
            )
        for i, row in enumerate(selectivities):
            for j, sigma in enumerate(row):
                if i != j and not 0 <= sigma <= 1:
                    raise SpecError(
                        f"selectivity {sigma} between streams {self.streams[i].name} and "
                        f"{self.streams[j].name} must be from 0 to 1"
                    )
