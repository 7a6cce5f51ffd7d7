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
from engine.runtime.jit import Ints
from engine.star.layout import StarOutputs
from engine.star.settings import StarSettings

METHOD = "decomposition"
_BYTES = 100
"""Of an output and one of its members, at most."""


class ExactOutputs:
    """Collects the outputs of the exact join, as far as memory allows."""

    def __init__(self, streams: int) -> None:
        self._parts: list[StarOutputs] = []
        self._left = half_of_memory() // (_BYTES * streams)

    def add(self, out: StarOutputs) -> None:
        """Take outputs, which are copied.

        Raises
        ------
        SpecError
            If they are too many to be held.
        """
        self._left -= out.ts.size
        if self._left < 0:
            raise SpecError(
                "--bound holds all outputs of the exact join of several streams, and they need "
                "more than half of the machine's memory: make the windows shorter, or leave it out"
            )
        self._parts.append(StarOutputs._make(own.copy() for own in out))

    def joined(self, times: Sequence[Ints]) -> JoinedOutputs:
        """Return them, of tuples that arrive at some times."""
        parts = self._parts
        return JoinedOutputs(
            tuple(times),
            np.concatenate([part.members for part in parts] or [np.empty((0, len(times)), int)]),
            np.concatenate([part.ts for part in parts] or [np.empty(0, np.int64)]),
            np.concatenate([part.importance for part in parts] or [np.empty(0)]),
        )


def star_bounds(
    joined: JoinedOutputs, settings: StarSettings, budgets: Sequence[int], effort: Effort
) -> Bounds:
    """Bound the best possible within the memory, split as it is and in any way.

    Parameters
    ----------
    joined : JoinedOutputs
    settings : StarSettings
    budgets : sequence of int
        K of every stream.
    effort : Effort
        Its seconds are for both; half of them, or less, for the first.
    """
    begun = time.perf_counter()
    if settings.pooled:
        whole = _bounded(joined, settings, budgets, effort, pooled=True)
        return Bounds(whole, whole)
    half = replace(effort, seconds=effort.seconds / 2)
    own = _bounded(joined, settings, budgets, half, pooled=False)
    if own.plan == own.exact:
        return Bounds(own, own)
    if UNLIMITED in budgets:
        return Bounds(own, None)
    rest = replace(effort, seconds=max(0.0, effort.seconds - (time.perf_counter() - begun)))
    whole = _bounded(joined, settings, budgets, rest, pooled=True)
    return Bounds.of_both(own, whole)


def _bounded(
    joined: JoinedOutputs,
    settings: StarSettings,
    budgets: Sequence[int],
    effort: Effort,
    *,
    pooled: bool,
) -> LaneBounds:
    begun = time.perf_counter()
    found = bound_star(
        joined, budgets, pooled=pooled, after_admission=settings.probe == "after_admission",
        effort=effort,
    )  # fmt: skip
    return LaneBounds(
        found.lower, found.upper, found.plan, found.exact, {METHOD: 1},
        time.perf_counter() - begun, {}, (), (),
    )  # fmt: skip
