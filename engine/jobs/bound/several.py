"""The best possible of a join of several streams, beside its replay."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from engine.jobs.bound.found import Bounds, LaneBounds
from engine.optimum.settings import Effort
from engine.optimum.star import JoinedOutputs, bound_star
from engine.replay.settings import UNLIMITED
from engine.runtime.errors import SpecError
from engine.runtime.host import half_of_memory
from engine.runtime.jit import Floats, Ints

METHOD = "decomposition"
_BYTES = 100
"""Of an output and one of its members, at most."""


class ExactOutputs:
    """Collects the outputs of the exact join, as far as memory allows."""

    def __init__(self, streams: int) -> None:
        self._parts: list[tuple[Ints, Ints, Floats]] = []
        self._left = half_of_memory() // (_BYTES * streams)

    def add(self, members: Ints, ts: Ints, importance: Floats) -> None:
        """Take outputs, which are copied.

        Parameters
        ----------
        members : (n, m) int64
            Place of each member in its stream.
        ts : (n,) int64
        importance : (n,) float64

        Raises
        ------
        SpecError
            If they are too many to be held.
        """
        self._left -= ts.size
        if self._left < 0:
            raise SpecError(
                "--bound holds all outputs of the exact join of several streams, and they need "
                "more than half of the machine's memory: make the windows shorter, or leave it out"
            )
        self._parts.append((members.copy(), ts.copy(), importance.copy()))

    def joined(self, times: Sequence[Ints]) -> JoinedOutputs:
        """Return them, of tuples that arrive at some times."""
        none = np.empty((0, len(times)), np.int64), np.empty(0, np.int64), np.empty(0)
        columns = (np.concatenate(own) for own in zip(none, *self._parts, strict=True))
        return JoinedOutputs(tuple(times), *columns)


def star_bounds(
    joined: JoinedOutputs, budgets: Sequence[int], effort: Effort, *, pooled: bool,
    after_admission: bool = False,
) -> Bounds:  # fmt: skip
    """Bound the best possible within the memory, split as it is and in any way.

    Parameters
    ----------
    budgets : sequence of int
        K of every stream.
    effort : Effort
        Its seconds are for both; half of them, or less, for the first.
    pooled : bool
        Whether the memory is split in any way.
    after_admission : bool
        When arrivals probe.
    """
    begun = time.perf_counter()
    if pooled:
        whole = _bounded(joined, budgets, effort, after_admission, pooled=True)
        return Bounds(whole, whole)
    half = replace(effort, seconds=effort.seconds / 2)
    own = _bounded(joined, budgets, half, after_admission, pooled=False)
    if own.plan == own.exact:
        return Bounds(own, own)
    if UNLIMITED in budgets:
        return Bounds(own, None)
    rest = replace(effort, seconds=max(0.0, effort.seconds - (time.perf_counter() - begun)))
    whole = _bounded(joined, budgets, rest, after_admission, pooled=True)
    return Bounds.of_both(own, whole)


def _bounded(
    joined: JoinedOutputs,
    budgets: Sequence[int],
    effort: Effort,
    after_admission: bool,
    *,
    pooled: bool,
) -> LaneBounds:
    begun = time.perf_counter()
    found = bound_star(
        joined, budgets, pooled=pooled, after_admission=after_admission, effort=effort
    )
    return LaneBounds(
        found.lower, found.upper, found.plan, found.exact, {METHOD: 1},
        time.perf_counter() - begun, {}, (), (),
    )  # fmt: skip
