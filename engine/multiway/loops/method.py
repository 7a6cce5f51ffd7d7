"""The algorithms of P3, and their checked options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from engine.multiway.loops.layout import IN_REACH, NEW, UNCHECKED, LoopPlan
from engine.multiway.predicate import Predicate
from engine.runtime.errors import SpecError
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
        self._check_times()
        if self.buckets is not None and self.parts.hashed == "none":
            raise SpecError(
                f"--buckets are of hash joins, and --method is {self.method}: leave them out, or "
                "choose eager-hash, lazy-hash or hybrid"
            )

    def _check_times(self) -> None:
        if not self.parts.lazy:
            if self.tau is not None:
                raise SpecError(
                    f"--tau {self.tau} is of lazy methods, and {self.method} joins every tuple at "
                    "once: leave it out, or choose lazy-nlj, general-lazy-nlj or lazy-hash"
                )
        elif self.tau is None:
            raise SpecError(
                f"--method {self.method} needs --tau, after how many ticks new tuples are joined: "
                "give it, 1 tick or more"
            )
        elif 0 < self.expire_every < self.tau:
            raise SpecError(
                f"--expire-every {self.expire_every} must be {self.tau} ticks (--tau) or more: "
                "what is expired sooner may be in reach of tuples still to be joined"
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
            If the predicate cannot be hashed.
        """
        if self.buckets is None:
            return np.ones(streams, np.int64)
        if not predicate.transitive:
            raise SpecError(
                f"--method {self.method} hashes equal attributes, and the predicate is "
                f"{predicate.text}: choose equi, or naive-nlj, eager-nlj, lazy-nlj or "
                "general-lazy-nlj"
            )
        given: list[int | None]
        given = [self.buckets] * streams if isinstance(self.buckets, int) else list(self.buckets)
        return np.array([1 if number is None else number for number in given], np.int64)

    def plan(self, streams: int, predicate: Predicate) -> LoopPlan:
        """Return the loops."""
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
            return first if self.orders is None else [list(order) for order in self.orders]
        whole = own if self.order is None else list(self.order)
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
