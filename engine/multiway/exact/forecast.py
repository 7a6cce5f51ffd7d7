"""What an exact multi-way join is expected to take and to give, tried on a few of its tuples.

These are some that arrive one after the other, at places spread evenly over all arrivals: as few as
take long enough to be timed. What takes time for what came before them is timed alone, as slices of
the join pay for that once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from engine.multiway.exact.join import ExactJoin
from engine.multiway.exact.layout import SlicePart
from engine.multiway.exact.plan import numbered, within

PLACES = 8
_SAMPLE = 4096
"""Tuples of each stream among which places are chosen."""
_SHORT, SECONDS, _SHARE = 0.02, 0.1, 0.02
"""A trial takes as long as the first, as the second of joins that take longer, and this share of
what it expects in between; more if one tuple or what came before it takes longer."""
_MOST, _GROWTH, _FAST = 25, 8, 64
"""So many times fewer tuples are tried than there are; of one trial and the next at a place, and if
nothing was seen in the one."""
_CLEAR, _HIDDEN = 3, 1.25
"""Tuples and what came before them take so many times as long as that: enough; or nothing is seen.
"""
_TOGETHER = 64
"""Tuples of which products of matrices go at full speed."""


class Forecast(NamedTuple):
    """What is expected of a join."""

    seconds: float
    outputs: float


class _Place(NamedTuple):
    """Some tuples arrive from here on: the first is the one of this number in its stream."""

    ts: int
    side: int
    number: int


class _Tried(NamedTuple):
    """What was tried."""

    before: float
    own: float
    """`before`, `own`: Seconds, of what came before the tuples alone, and with them."""
    tuples: int
    outputs: int


def forecast(join: ExactJoin, work: Callable[[SlicePart], int] | None = None) -> Forecast | None:
    """Return what a join is expected to take, and how many outputs to have.

    Parameters
    ----------
    work : callable, optional
        Does what is to be done with a part of the join, and returns its outputs; by default counts
        them.

    Returns
    -------
    Forecast or None
        None of a join without tuples.
    """
    work = work or join.counted
    spans = [within(join.streams.ts[join.streams.part(i)], join.whole) for i in _sides(join)]
    tuples = sum(end - begin for begin, end in spans)
    if not (tuples and join.parts):
        return None
    places, begun, wanted = _places(join, spans), time.perf_counter(), 1
    most, least = max(1, tuples // _MOST), _TOGETHER if join.multiplies else 1
    _try(join, places[0], spans, wanted, work)  # what is loaded for it takes time once
    found = [_try(join, places[0], spans, wanted, work)]
    while wanted < most:  # until tuples take longer than what came before them
        (one,) = found
        hidden, clear = one.own < _HIDDEN * one.before, one.own > _CLEAR * one.before
        late = time.perf_counter() - begun > SECONDS
        if not hidden and (late or (clear and wanted >= least)):
            break
        wanted = min(most, wanted * (_FAST if hidden else _GROWTH))
        found = [_try(join, places[0], spans, wanted, work, one.before)]
    for place in places[1:]:
        expected = _expected(found, tuples, join)
        if time.perf_counter() > begun + max(_SHORT, min(SECONDS, _SHARE * expected.seconds)):
            break
        found.append(_try(join, place, spans, wanted, work))
    return _expected(found, tuples, join)


def _expected(tried: Sequence[_Tried], tuples: int, join: ExactJoin) -> Forecast:
    """Return what is expected of a join of so many tuples."""
    before, own, some, outputs = (sum(own) for own in zip(*tried, strict=True))
    each = max(0.0, own - before) / max(1, some)
    seconds = each * tuples + before / len(tried) * len(join.parts)
    return Forecast(seconds / join.threads, outputs / max(1, some) * tuples)


def _sides(join: ExactJoin) -> range:
    return range(join.streams.number)


def _places(join: ExactJoin, spans: Sequence[tuple[int, int]]) -> list[_Place]:
    """Return places spread evenly over all arrivals, each before those beside it."""
    tuples = sum(end - begin for begin, end in spans)
    step = max(1, tuples // (_SAMPLE * len(spans)))
    numbers = [np.arange(begin, end, step) for begin, end in spans]
    ts = np.concatenate([join.streams.ts[join.streams.first[i] + numbers[i]] for i in _sides(join)])
    side = np.repeat(_sides(join), [own.size for own in numbers])
    order = np.argsort(ts, kind="stable")
    strata = sorted(range(PLACES), key=lambda own: f"{own:b}"[::-1].ljust(8, "0"), reverse=True)
    chosen = [int(order[(2 * own + 1) * order.size // (2 * PLACES)]) for own in strata]
    number_of = np.concatenate(numbers)
    return [_Place(int(ts[at]), int(side[at]), int(number_of[at])) for at in chosen]


def _try(
    join: ExactJoin, place: _Place, spans: Sequence[tuple[int, int]], wanted: int,
    work: Callable[[SlicePart], int], known: float | None = None,
) -> _Tried:  # fmt: skip
    """Try the tuples that arrive from a place on."""
    streams = join.streams
    begins, times = [], []
    for side, (_, last) in enumerate(spans):
        ts = streams.ts[streams.part(side)]
        begin = int(np.searchsorted(ts, place.ts, "right" if side < place.side else "left"))
        begin = place.number if side == place.side else begin
        begins.append(begin)
        times.append(ts[begin : min(begin + wanted, last)])
    sides = np.repeat(_sides(join), [own.size for own in times])
    own = sides[np.argsort(np.concatenate(times), kind="stable")[:wanted]]
    sizes = np.bincount(own, minlength=len(spans)).tolist()
    nothing = [(begin, begin) for begin in begins]
    some = [(begin, begin + size) for begin, size in zip(begins, sizes, strict=True)]
    before, part = (numbered(streams, join.windows, place.ts, own) for own in (nothing, some))
    # threads that join other slices may be in the way
    clock = time.thread_time if join.is_alone else time.perf_counter
    if known is None:
        known = _seconds(work, before, clock)[0]
    seconds, outputs = _seconds(work, part, clock)
    return _Tried(known, seconds, sum(sizes), outputs)


def _seconds(
    work: Callable[[SlicePart], int], part: SlicePart, clock: Callable[[], float]
) -> tuple[float, int]:
    begun = clock()
    outputs = work(part)
    return clock() - begun, outputs
