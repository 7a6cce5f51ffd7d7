"""What an adaptation changes, in compiled code: z, what is remembered, what is recorded (P4 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.harvest import layout
from engine.multiway.harvest.layout import Clock
from engine.multiway.harvest.learning.learner import Learnt, all_scaled_down
from engine.multiway.harvest.settings import LEAST_THROTTLE, HarvestSettings
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Ints, kernel

STEPS = 1 << 12
"""Intervals for which there is room."""
COMPARED, COUNTED = range(2)
"""What is counted of an interval: comparisons, and outputs that count."""
_AT, _THROTTLE, _BETA = range(3)
_NEXT_FLOAT = 1.0 + 2.0**-52


class Step(NamedTuple):
    """The results of an interval between adaptations."""

    at: float
    """Ticks since t0 at which it ended."""
    throttle: float
    """z in force during it."""
    beta: float
    """Pops over pushes; 0 of the last interval, which no adaptation ended."""
    pushes: tuple[int, ...]
    pops: tuple[int, ...]
    drops: tuple[int, ...]
    """`pushes`, `pops`, `drops`: By stream; pushes that a full buffer refused are among both
    others."""
    comparisons: int
    outputs: int


class Adapting(NamedTuple):
    """What adaptations go by, what they change, and the intervals that they ended."""

    every: int
    """Delta, in ticks."""
    boost: float
    forget: float
    """`boost`, `forget`: See `HarvestSettings`."""
    fixed: bool
    """Whether z is."""
    throttle: Floats
    """(1,) float64. z."""
    rates: Floats
    comparisons: Floats
    passes: Floats
    ages: Floats
    lags: Floats
    """`rates`, `comparisons`, `passes`, `ages`, `lags`: As `Learnt` has them."""
    candidates: Floats
    """(m, m - 1) float64. As `Indexed` has them; without rows if no index is probed."""
    counted: Ints
    """(2,) int64. `COMPARED` and `COUNTED` in this interval."""
    total: Ints
    """(2,) int64. The same in those that have ended."""
    number: Ints
    """(1,) int64. Intervals that are recorded."""
    times: Floats
    """(STEPS, 3) float64. When each ended, z, and beta."""
    arrivals: Ints
    """(STEPS, 3, m) int64. Pushes, pops and drops of each."""
    done: Ints
    """(STEPS, 2) int64. What was counted in each."""


def adapting_of(settings: HarvestSettings, learnt: Learnt) -> Adapting:
    """Return what the adaptations of a join go by, at its beginning."""
    m = learnt.rates.size
    indexed = learnt.indexed
    return Adapting(
        settings.adapt_every, settings.boost, settings.forget, settings.throttle is not None,
        np.array([1.0 if settings.throttle is None else settings.throttle]), learnt.rates,
        learnt.comparisons, learnt.passes, learnt.ages, learnt.histograms,
        np.zeros((0, m - 1)) if indexed is None else indexed.candidates, np.zeros(2, np.int64),
        np.zeros(2, np.int64), np.zeros(1, np.int64), np.zeros((STEPS, 3)),
        np.zeros((STEPS, 3, m), np.int64), np.zeros((STEPS, 2), np.int64),
    )  # fmt: skip


def steps_of(adapting: Adapting) -> list[Step]:
    """Return the intervals that are recorded, which then are no more."""
    size = int(adapting.number[0])
    adapting.number[0] = 0
    rows = zip(
        adapting.times[:size].tolist(), adapting.arrivals[:size].tolist(),
        adapting.done[:size].tolist(), strict=True,
    )  # fmt: skip
    return [Step(*times, *map(tuple, arrivals), *done) for times, arrivals, done in rows]


@kernel
def throttle_after(throttle: float, interval: Ints, boost: float) -> tuple[float, float]:
    """Return beta and the throttle fraction after an interval (P4 3.1).

    Examples
    --------
    >>> throttle_after(0.5, np.array([[10, 10], [8, 8], [2, 2]]), 1.2)
    (0.8, 0.4)
    """
    pushes = pops = 0
    for stream in range(interval.shape[1]):
        pushes += interval[layout.PUSHES, stream]
        pops += interval[layout.POPS, stream]
    beta = pops / pushes if pushes else 1.0
    after = beta * throttle if beta < 1 else min(1.0, boost * throttle)
    return beta, max(LEAST_THROTTLE, after)


@kernel
def close(clock: Clock, adapting: Adapting, at: float, beta: float) -> None:
    """Record an interval that ends, if anything came, and begin the next."""
    row, some = adapting.number[0], False
    for kind in range(clock.interval.shape[0]):
        for stream in range(clock.interval.shape[1]):
            value = clock.interval[kind, stream]
            some |= value != 0
            adapting.arrivals[row, kind, stream] = value
            clock.total[kind, stream] += value
            clock.interval[kind, stream] = 0
    adapting.times[row, _AT], adapting.times[row, _BETA] = at, beta
    adapting.times[row, _THROTTLE] = adapting.throttle[0]
    for kind in range(adapting.counted.size):
        adapting.done[row, kind] = adapting.counted[kind]
        adapting.total[kind] += adapting.counted[kind]
        adapting.counted[kind] = 0
    if some:
        adapting.number[0] += 1


@kernel
def _forget(adapting: Adapting) -> bool:
    """Scale what was learnt down; return whether any has changed."""
    return all_scaled_down(
        adapting.lags, adapting.ages, adapting.comparisons, adapting.passes, adapting.candidates,
        adapting.forget,
    )  # fmt: skip


@kernel
def _wait(clock: Clock, ticks: int) -> None:
    """Put off the next adaptation, by the next float64 where so few ticks are none beside it."""
    at = clock.at[layout.NEXT]
    clock.at[layout.NEXT] = max(at + ticks, at * _NEXT_FLOAT)


@kernel
def adapt(clock: Clock, adapting: Adapting) -> None:
    """End an interval: set the throttle fraction, record what came, and forget."""
    beta, after = throttle_after(adapting.throttle[0], clock.interval, adapting.boost)
    for stream in range(adapting.rates.size):
        pushes = clock.interval[layout.PUSHES, stream]
        if pushes > 0:
            adapting.rates[stream] = pushes / adapting.every
    _forget(adapting)
    close(clock, adapting, clock.at[layout.NEXT], beta)
    if not adapting.fixed:
        adapting.throttle[0] = after
    _wait(clock, adapting.every)


@kernel
def adapt_again(clock: Clock, adapting: Adapting) -> bool:
    """End an interval in which nothing happened; return whether that changes anything."""
    before = adapting.throttle[0]
    if not adapting.fixed:
        adapting.throttle[0] = throttle_after(before, clock.interval, adapting.boost)[1]
    changes = _forget(adapting)
    _wait(clock, adapting.every)
    return bool(changes | (adapting.throttle[0] != before))


@kernel
def empty_intervals(streams: MultiStreams, clock: Clock, order: Ints, t0: int, every: int) -> float:
    """Return how many adaptations come one after the other before a tuple comes or is popped."""
    n = clock.n
    until = np.inf
    if n[layout.POPPED] < n[layout.PUSHED]:
        place = clock.pushed[n[layout.POPPED]]
        until = max(clock.at[layout.FREE], float(streams.ts[place] - t0))
    if n[layout.ARRIVED] < order.size:
        until = min(until, float(streams.ts[order[n[layout.ARRIVED]]] - t0))
    wait = until - clock.at[layout.NEXT]
    return wait // every + 1.0 if 0 <= wait < np.inf else 0.0


@kernel
def skip_empty(
    streams: MultiStreams, clock: Clock, order: Ints, t0: int, adapting: Adapting
) -> None:
    """Adapt as often as it takes until something happens, at no cost once nothing changes."""
    empty, changes = empty_intervals(streams, clock, order, t0, adapting.every), True
    while empty > 0 and changes:
        changes = adapt_again(clock, adapting)
        empty -= 1
    clock.at[layout.NEXT] += empty * adapting.every
