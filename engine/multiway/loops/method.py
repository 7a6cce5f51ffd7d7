"""The algorithms of P3, and their checked options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from engine.multiway.loops.layout import IN_REACH, NEW, UNCHECKED, LoopPlan
from engine.multiway.predicate import GRAPHS, Predicate
from engine.multiway.streams import MOST_STREAMS
from engine.runtime.errors import SpecError, did_you_mean
from engine.runtime.jit import Ints

Buckets: TypeAlias = int | Sequence[int | None] | None
"""Hash buckets of every stream's store; None for a store that is scanned."""


class Method(NamedTuple):
    """An algorithm of P3 (3.1 to 3.5)."""

    lazy: bool
    """Whether new tuples are joined every tau ticks, not at once."""
    hashed: str
    """{"none", "some", "all"}. Which stores are hash tables."""
    loops: str
    """{"new first", "global", "general"}. Whether the new tuple is on top of the loops, at its
    stream's place in one global order, or at its stream's place in the order of its stream."""

    @property
    def outermost(self) -> bool:
        """Whether new tuples are in the outermost loop."""
        return self.loops == "new first"

    @property
    def local(self) -> bool:
        """Whether every direction has an order of its own."""
        return self.loops == "general"


METHODS = {
    "naive-nlj": Method(False, "none", "global"),
    "eager-nlj": Method(False, "none", "new first"),
    "lazy-nlj": Method(True, "none", "new first"),
    "general-lazy-nlj": Method(True, "none", "general"),
    "eager-hash": Method(False, "all", "new first"),
    "lazy-hash": Method(True, "all", "new first"),
    "hybrid": Method(False, "some", "new first"),
}


@dataclass(frozen=True)
class LoopsSettings:
    """An algorithm of P3 with its options.

    Raises
    ------
    SpecError
        If they are invalid.

    Examples
    --------
    >>> LoopsSettings("lazy-nlj", tau=5).period
    5
    """

    method: str
    """One of `METHODS`."""
    graph: str = "clique"
    """{"clique", "star"}. Whether the predicate holds between all members, or between the new one
    and the others."""
    order: Sequence[int] | None = None
    """The global join order, a permutation of the streams; by default as they are given."""
    orders: Sequence[Sequence[int]] | None = None
    """Of general-lazy-nlj: the join order for the new tuples of every stream; by default that
    stream, then the others as they are given."""
    tau: int | None = None
    """Of lazy methods: ticks between re-evaluations."""
    expire_every: int = 0
    """Ticks between expirations; 0 for every arrival, and for every tau ticks of lazy methods."""
    buckets: Buckets = None
    """int, or sequence of int or None. Of hash joins: of every store, or of each. A hybrid's stores
    of None are scanned."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise SpecError(
                f"method {self.method!r} is not known; choose one of {', '.join(METHODS)}."
                + did_you_mean(self.method, METHODS)
            )
        if self.graph not in GRAPHS:
            raise SpecError(
                f"join graph {self.graph!r} is not known; choose one of {', '.join(GRAPHS)}."
                + did_you_mean(self.graph, GRAPHS)
            )
        self._check_times()
        general = self.parts.local
        if self.order is not None and general:
            raise SpecError(f"method {self.method} has an order for every stream: give orders")
        if self.orders is not None and not general:
            raise SpecError(f"orders are of general-lazy-nlj: give {self.method} one order")
        if self.buckets is None and self.parts.hashed != "none":
            raise SpecError(f"method {self.method} needs buckets: give a number, 1 or more")
        if self.buckets is not None and self.parts.hashed == "none":
            raise SpecError(
                f"method {self.method} has no buckets: leave them out, or choose eager-hash, "
                "lazy-hash or hybrid"
            )

    def _check_times(self) -> None:
        if self.expire_every < 0:
            raise SpecError(f"expire_every {self.expire_every} must be 0 ticks or more")
        if not self.parts.lazy:
            if self.tau is not None:
                raise SpecError(
                    f"tau {self.tau} is of lazy methods, and {self.method} joins every tuple at "
                    "once: leave it out, or choose lazy-nlj, general-lazy-nlj or lazy-hash"
                )
        elif self.tau is None or self.tau < 1:
            has = "has none" if self.tau is None else f"has {self.tau}"
            raise SpecError(f"method {self.method} needs tau, 1 tick or more, and {has}: give it")
        elif 0 < self.expire_every < self.tau:
            raise SpecError(
                f"expire_every {self.expire_every} must be {self.tau} ticks (tau) or more: what "
                "is expired sooner may be in reach of tuples still to be joined"
            )

    @property
    def parts(self) -> Method:
        """The method's properties."""
        return METHODS[self.method]

    @property
    def period(self) -> int:
        """Ticks between expirations, 0 for every arrival."""
        return self.expire_every or self.tau or 0

    def lists(self, streams: int, predicate: Predicate) -> Ints:
        """Return the number of lists of every stream's store: (m,) int64.

        Raises
        ------
        SpecError
            If they are too few or too many, or the predicate cannot be hashed.
        """
        if self.buckets is None:
            return np.ones(streams, np.int64)
        if not predicate.transitive:
            raise SpecError(
                f"method {self.method} hashes equal attributes, and the predicate is "
                f"{predicate.text}: choose equi, or naive-nlj, eager-nlj, lazy-nlj or "
                "general-lazy-nlj"
            )
        given: list[int | None]
        given = [self.buckets] * streams if isinstance(self.buckets, int) else list(self.buckets)
        if len(given) != streams:
            raise SpecError(
                f"buckets are given for {len(given)} of {streams} streams: give a number for each"
            )
        if self.parts.hashed == "all" and None in given:
            raise SpecError(
                f"stream {given.index(None)} has no buckets: give a number, or choose hybrid"
            )
        for stream, number in enumerate(given):
            if number is not None and number < 1:
                raise SpecError(f"buckets {number} of stream {stream} must be 1 or more")
        return np.array([1 if number is None else number for number in given], np.int64)

    def plan(self, streams: int, predicate: Predicate) -> LoopPlan:
        """Return the loops.

        Raises
        ------
        SpecError
            If there are too few streams or too many, or an order is no permutation.
        """
        if not 2 <= streams <= MOST_STREAMS:
            raise SpecError(f"{streams} streams cannot be joined: give 2 to {MOST_STREAMS}")
        known = not self.parts.local
        order = np.array(self._orders(streams), np.int64)
        check = np.full((streams, streams), UNCHECKED, np.int64)
        against = np.zeros((streams, streams, 2), np.int64)
        for i in range(streams):
            place = int(np.flatnonzero(order[i] == i)[0])
            for d in range(streams):
                if d != place and (known or d > place):
                    check[i, d] = IN_REACH
                elif d == place and not known:
                    check[i, d] = NEW
                against[i, d] = self._against(predicate, d, place)
        return LoopPlan(order, check, against, int(self.parts.outermost), known)

    def _orders(self, streams: int) -> list[list[int]]:
        own = list(range(streams))
        first = [[i, *_without(own, i)] for i in own]
        if self.parts.local:
            orders = first if self.orders is None else [list(order) for order in self.orders]
            if len(orders) != streams:
                raise SpecError(f"{len(orders)} orders are given for {streams} streams")
            for stream, order in enumerate(orders):
                _check_order(order, streams, f"order of stream {stream}")
            return orders
        whole = own if self.order is None else list(self.order)
        _check_order(whole, streams, "order")
        if self.parts.loops == "global":
            return [whole] * streams
        return [[i, *_without(whole, i)] for i in own]

    def _against(self, predicate: Predicate, depth: int, new: int) -> tuple[int, int]:
        """Return the depths whose members one at `depth` is compared with; the new one's is `new`.

        Members compared with the first of equal ones are equal to all; in a star, the new member
        alone is compared.
        """
        if predicate.transitive:
            return 0, min(depth, 1)
        if self.graph == "clique" or depth == new:
            return 0, depth
        return (new, new + 1) if depth > new else (0, 0)


def _without(order: Sequence[int], stream: int) -> list[int]:
    return [other for other in order if other != stream]


def _check_order(order: Sequence[int], streams: int, name: str) -> None:
    if sorted(order) != list(range(streams)):
        raise SpecError(f"{name} {list(order)} must have every stream of 0 to {streams - 1} once")
