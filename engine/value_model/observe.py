"""The pass over both streams: what every arrival yields, from what has arrived by its instant."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.runtime.jit import Integer, kernel, nth, patient, prefetch
from engine.value_model import layout
from engine.value_model.expected import (
    bin_of,
    cell_of,
    class_of,
    count,
    expected,
    home_of,
    importance_scale,
    level_of,
    relative_rate,
    take,
    with_random,
)
from engine.value_model.layout import Array, ValueModel
from engine.value_model.sample import forget, match, track, watch_all

EVER = int(np.iinfo(np.int64).min)
"""Before every time."""
_AHEAD = 8
"""Arrivals ahead of which keys are prefetched."""
GREATEST = 1e300
"""Of a value, so that a rate of 0 makes it 0."""


class Join(NamedTuple):
    """The join that tuples are kept for."""

    window_left: int
    window_right: int
    """`window_left`, `window_right`: W in ticks, closed."""
    combine: int
    """Place of the combine function among min, sum, product, max, mean."""


class SideBatch(NamedTuple):
    """One side's batch; all arrays (n,)."""

    ts: Array
    """int64."""
    key: Array
    """int64. Canonical join attribute."""
    importance: Array
    """float64."""
    value: Array
    """float64. Filled: relative rate of the key times expected importance of an output, relative
    too."""
    first: Array = None
    other: Array = None
    begin: Array = None
    """`first`, `other`, `begin`: int64, or None in an equi-join. Where each tuple's facts begin, (n
    + 1,); the attribute that each fact joins it to, and from when on."""


@kernel
def _apart(first: Array) -> bool:
    """Return whether facts join the tuples, so that the sides' keys are different ones."""
    return first is not None


@kernel
def _span(first: Array, at: Integer) -> tuple[Integer, Integer]:
    """Return where a tuple's facts begin and end; it is its own in an equi-join."""
    if first is None:
        return at, at + 1
    return first[at], first[at + 1]


@kernel
def _joined(other: Array, key: Array, place: Integer) -> int:
    """Return the opposite key that a fact joins."""
    if other is None:
        return int(key[place])
    return int(other[place])


@kernel
def _since(begin: Array, place: Integer) -> int:
    """Return from when on a fact joins."""
    if begin is None:
        return EVER
    return int(begin[place])


@kernel
def _end_of(ts: Array, at: Integer, now: Integer) -> int:
    while at < ts.size and ts[at] == now:
        at += 1
    return int(at)


@kernel
def _follow(n: Array, now: Integer) -> None:
    """Find the greatest step that all instants so far are a multiple of from the first."""
    if n[layout.ROWS] == 0:
        n[layout.FIRST] = now
    elif n[layout.STEP] == 1:
        return
    rest = now - n[layout.FIRST]
    while rest > 0:
        step = n[layout.STEP]
        n[layout.STEP] = rest
        rest = step % rest


@kernel
def _score_arrivals(
    model: ValueModel, join: Join, side: Integer, own: SideBatch, begin: Integer, end: Integer,
    now: Integer,
) -> None:  # fmt: skip
    """Write the arrivals' values, and track some of them."""
    lifetime = (join.window_left if side == 0 else join.window_right) + 1
    for i in range(begin, end):
        cell = cell_of(model, own.key[i])
        base = relative_rate(model, 1 - side, cell)
        group, share = class_of(model, 1 - side, cell, base)
        factor = model.factor[side, group]
        if share > 0.0:
            factor = (1.0 - share) * factor + share * model.factor[side, group + 1]
        rate = base * factor
        x = own.importance[i]
        scale = importance_scale(model, 1 - side, cell)
        free = with_random(model, 1 - side, join.combine, x, scale)
        level = level_of(model, side)
        value = 0.0
        if level > 0.0:
            value = rate * (expected(model, side, join.combine, x, free) / level)
        own.value[i] = value if value < GREATEST else GREATEST  # noqa: FURB136 - not a number too
        track(model, side, own.key[i], now, lifetime, group, x, free, base, share)


@kernel
def _count(
    model: ValueModel, side: Integer, own: SideBatch, begin: Integer, end: Integer, now: Integer,
    since: Integer,
) -> None:  # fmt: skip
    apart = _apart(own.first)
    for i in range(begin, end):
        x = own.importance[i]
        if apart:
            take(model, own.key[i], now, since, apart)
        place, stop = _span(own.first, i)
        while place < stop:
            cell = take(model, _joined(own.other, own.key, place), now, since, apart)
            count(model, side, cell, x)
            place += 1
        model.sums[side, layout.IMPORTANCE] += x
        model.counts[side, layout.TOTAL] += 1
        place = bin_of(x)
        model.bin_count[side, place] += 1
        model.bin_total[side, place] += x


@kernel
def _match(
    model: ValueModel, side: Integer, opposite: SideBatch, begin: Integer, end: Integer,
    now: Integer, lifetime: Integer, combine: Integer,
) -> None:  # fmt: skip
    """Count what the opposite arrivals match among the tracked tuples of `side`."""
    for k in range(begin, end):
        place, stop = _span(opposite.first, k)
        while place < stop:
            key = _joined(opposite.other, opposite.key, place)
            since = _since(opposite.begin, place)
            x = opposite.importance[k]
            match(model, side, key, x, now, lifetime, combine, since)
            place += 1


@kernel
def _hasten(model: ValueModel, own: SideBatch, at: Integer) -> None:
    """Prefetch the cell of an arrival that comes soon."""
    if at + _AHEAD < own.ts.size:
        prefetch(model.cells, layout.CELL * home_of(model, own.key[nth(at + _AHEAD)]))


@patient
@kernel
def observe(
    model: ValueModel, join: Join, left: SideBatch, right: SideBatch, refitted: bool
) -> bool:
    """Go on through a batch; True at its end, False where a refit is due before an instant.

    Parameters
    ----------
    model : ValueModel
        ``n[LEFT_AT]`` and ``n[RIGHT_AT]`` say where in the batch it stands.
    join : Join
    left, right : SideBatch
        Cut between instants.
    refitted : bool
        The refit before this instant has been made.
    """
    n = model.n
    lifetimes = join.window_left + 1, join.window_right + 1
    longest = max(join.window_left, join.window_right)
    while n[layout.LEFT_AT] < left.ts.size or n[layout.RIGHT_AT] < right.ts.size:
        i, j = n[layout.LEFT_AT], n[layout.RIGHT_AT]
        if i < left.ts.size and (j >= right.ts.size or left.ts[i] <= right.ts[j]):
            now = left.ts[i]
        else:
            now = right.ts[j]
        _follow(n, now)
        forget(model, 0, now, lifetimes[0])
        forget(model, 1, now, lifetimes[1])
        if n[layout.ROWS] >= n[layout.NEXT] and not refitted:
            watch_all(model, 0, now, lifetimes[0])
            watch_all(model, 1, now, lifetimes[1])
            return False
        refitted = False
        _hasten(model, left, i)
        _hasten(model, right, j)
        end = _end_of(left.ts, i, now)
        stop = _end_of(right.ts, j, now)
        _match(model, 0, right, j, stop, now, lifetimes[0], join.combine)
        _match(model, 1, left, i, end, now, lifetimes[1], join.combine)
        _count(model, 0, left, i, end, now, now - longest)
        _count(model, 1, right, j, stop, now, now - longest)
        _score_arrivals(model, join, 0, left, i, end, now)
        _score_arrivals(model, join, 1, right, j, stop, now)
        n[layout.ROWS] += end - i + stop - j
        n[layout.LEFT_AT] = end
        n[layout.RIGHT_AT] = stop
    n[layout.LEFT_AT] = 0
    n[layout.RIGHT_AT] = 0
    return True
