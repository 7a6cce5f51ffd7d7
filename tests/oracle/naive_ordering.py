"""The oracle of join orders: P3's cost of an order word for word, in exact fractions, and a count.

It imports nothing of ours. Streams count from 0. A join is a dict of `rates` (lambda), `windows`
(T), `distinct` (v) and `buckets` (b, None where the window is scanned), a list each. The loops of
a direction are all streams from the outermost to the innermost.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations
from typing import Any, NamedTuple

Join = dict[str, Any]
Order = tuple[int, ...]


def tuples_in(join: Join, stream: int, tau: float | None) -> Fraction:
    """C_l: rate times window, divided by the buckets; grown by tau where expiration is lazy."""
    length = Fraction(join["windows"][stream]) + Fraction(tau or 0)
    return Fraction(join["rates"][stream]) * length / (join["buckets"][stream] or 1)


def global_cost(join: Join, order: Order) -> Fraction:
    """Return the cost of a global order per unit time, as the contract has it (P3 5.1)."""
    total = Fraction(0)
    for i, rate in enumerate(join["rates"]):
        c, n, v = Fraction(0), Fraction(1), Fraction(join["distinct"][i])
        for other in order:
            if other == i:
                continue
            size, own = tuples_in(join, other, None), Fraction(join["distinct"][other])
            c += n * size
            n *= size / max(v, own)
            v = min(v, own)
        total += Fraction(rate) * c
    return total


def loops_cost(join: Join, i: int, loops: Order, tau: float | None) -> Fraction:
    """Return the cost per unit time of direction i with its own place among the loops.

    A tuple of a loop is compared with every partial result that comes to it; of stream i there is
    the new tuple alone, or with tau the batch of them. An evaluation is made for every tuple, or
    every tau.
    """
    rate = Fraction(join["rates"][i])
    new = Fraction(1) if tau is None else rate * Fraction(tau)
    sizes = [new if stream == i else tuples_in(join, stream, tau) for stream in loops]
    values = [Fraction(join["distinct"][stream]) for stream in loops]
    c, n = Fraction(0), sizes[0]
    for depth in range(1, len(loops)):
        c += n * sizes[depth]
        n *= sizes[depth] / max(min(values[:depth]), values[depth])
    return rate * c if tau is None else c / Fraction(tau)


def first(i: int, order: Order) -> Order:
    """Return the loops of direction i where new tuples are outermost."""
    return (i, *(stream for stream in order if stream != i))


def all_loops_cost(join: Join, order: Order, tau: float | None, *, outermost: bool) -> Fraction:
    """Return the cost of an order that every direction takes, its own stream first or in place."""
    loops = [first(i, order) if outermost else order for i in order]
    return sum((loops_cost(join, o, w, tau) for o, w in zip(order, loops, strict=True)), Fraction())


def ranking(join: Join) -> list[tuple[Fraction, Order]]:
    """Return all global orders by cost, then lexicographically."""
    orders = permutations(range(len(join["rates"])))
    return sorted((global_cost(join, order), order) for order in orders)


class Arrival(NamedTuple):
    """A tuple: its time, and the code of its join attribute."""

    ts: float
    code: int


def arrivals(join: Join, span: float, seed: int) -> list[list[Arrival]]:
    """Draw streams of steady rates and uniform values, a stream's the first v of all values."""
    draw = random.Random(seed)  # noqa: S311 - test data
    found = []
    for rate, values in zip(join["rates"], join["distinct"], strict=True):
        offset = draw.random()
        times = ((n + offset) / rate for n in range(int(span * rate)))
        found.append([Arrival(ts, draw.randrange(int(values))) for ts in times])
    return found


def counted(
    join: Join, loops: list[Order], tau: float | None, span: float, seed: int
) -> dict[int, float]:
    """Count the comparisons per unit time that directions' loops make once windows are full.

    A tuple k is joined at its arrival, or at the next multiple of tau, in its own loop. Loops
    before it compare with the first tuple bound, whatever the times. k itself is compared if all
    bound are in its reach; tuples of loops behind it if they are. Where k is outermost and a
    window has buckets, only those of k's bucket are gone through.
    """
    streams, windows = arrivals(join, span, seed), join["windows"]
    start = max(windows) + (tau or 0)
    start = start if tau is None else tau * (start // tau + 1)

    def reached(k: Arrival, stream: int, u: Arrival) -> bool:
        return bool(u.ts < k.ts <= u.ts + windows[stream])

    def walk(i: int, bound: list[tuple[int, Arrival]], now: float, new: list[Arrival]) -> int:
        if len(bound) == len(streams):
            return 0
        stream = loops[i][len(bound)]
        k = next((u for s, u in bound if s == i), None)
        made = 0
        for u in new if stream == i else _store(streams[stream], now, windows[stream], tau):
            if stream == i and not all(reached(u, s, other) for s, other in bound):
                continue
            if k is not None and not (_met(join, stream, k, u) and reached(k, stream, u)):
                continue
            made += bool(bound)
            if not bound or bound[0][1].code == u.code:
                made += walk(i, [*bound, (stream, u)], now, new)
        return made

    made = dict.fromkeys(range(len(streams)), 0)
    for i, own in enumerate(streams):
        for now, new in _evaluations(own, tau, start, span):
            made[i] += walk(i, [], now, new)
    return {i: count / (span - start) for i, count in made.items()}


def _met(join: Join, stream: int, k: Arrival, u: Arrival) -> bool:
    buckets = join["buckets"][stream] or 1
    return k.code % buckets == u.code % buckets


def _store(own: list[Arrival], now: float, window: float, tau: float | None) -> list[Arrival]:
    """Return what arrived before now and was not expired at the last expiration, tau ago."""
    return [u for u in own if now - (tau or 0) - window <= u.ts < now]


def _evaluations(
    own: list[Arrival], tau: float | None, start: float, span: float
) -> Iterator[tuple[float, list[Arrival]]]:
    if tau is None:
        yield from ((k.ts, [k]) for k in own if start <= k.ts < span)
        return
    for now in range(int(start / tau) + 1, int(span / tau) + 1):
        yield now * tau, [k for k in own if (now - 1) * tau <= k.ts < now * tau]
