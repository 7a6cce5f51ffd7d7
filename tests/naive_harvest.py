"""The oracle of window harvesting: P4 4.1 to 4.4 word for word, in exact fractions.

It imports nothing of ours. Streams count from 0 where the paper's count from 1. A join is a dict of
`rates` (lambda_i), `windows` (w_i), `basic` (n_i), `orders` (r_ij), `selectivities` (sigma by
stream and stream) and `scores` (p_ij^k by direction, hop and logical basic window).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any, NamedTuple

Counts = list[list[int]]


class Best(NamedTuple):
    """The place of the best setting among all, its cost and its output rate."""

    number: int
    cost: Fraction
    output: Fraction


def tuples_in(join: dict[str, Any], i: int, j: int) -> Fraction:
    """S_ij: the tuples in the j-th window of direction i (4.3)."""
    window = join["orders"][i][j]
    return Fraction(join["rates"][window]) * Fraction(join["windows"][window])


def fraction(join: dict[str, Any], i: int, j: int, count: int) -> Fraction:
    """z_ij where `count` logical basic windows are selected (4.1.2)."""
    return Fraction(count, int(join["basic"][join["orders"][i][j]]))


def ranking(scores: list[float]) -> list[int]:
    """s_ij: the logical basic windows by descending score (4.2.1)."""
    return sorted(range(len(scores)), key=lambda k: (-scores[k], k))


def yield_factor(join: dict[str, Any], i: int, j: int, count: int) -> Fraction:
    """P_ij: the scores of those selected over the scores of all (4.3)."""
    scores = join["scores"][i][j]
    chosen = ranking(scores)[:count]
    return sum((Fraction(scores[k]) for k in chosen), Fraction(0)) / sum(map(Fraction, scores))


def times_iterated(join: dict[str, Any], i: int, j: int, counts: Counts) -> Fraction:
    """N_ij: how often the j-th window of direction i is iterated over; j = m - 1: its output."""
    return prod(
        (
            yield_factor(join, i, k, counts[i][k])
            * Fraction(join["selectivities"][i][join["orders"][i][k]])
            * tuples_in(join, i, k)
            for k in range(j)
        ),
        start=Fraction(1),
    )


def direction_cost(join: dict[str, Any], i: int, counts: Counts) -> Fraction:
    """C_i: tuple comparisons for one tuple of stream i."""
    return sum(
        (
            fraction(join, i, j, counts[i][j])
            * tuples_in(join, i, j)
            * times_iterated(join, i, j, counts)
            for j in range(len(join["orders"][i]))
        ),
        Fraction(0),
    )


def cost(join: dict[str, Any], counts: Counts) -> Fraction:
    """C: tuple comparisons a second."""
    return sum(
        (Fraction(rate) * direction_cost(join, i, counts) for i, rate in enumerate(join["rates"])),
        Fraction(0),
    )


def output(join: dict[str, Any], counts: Counts) -> Fraction:
    """O: output tuples a second."""
    m = len(join["rates"])
    return sum(
        (
            Fraction(rate) * times_iterated(join, i, m - 1, counts)
            for i, rate in enumerate(join["rates"])
        ),
        Fraction(0),
    )


def everything(join: dict[str, Any]) -> Counts:
    """Return the setting with all harvest fractions 1."""
    return [[int(join["basic"][window]) for window in order] for order in join["orders"]]


def settings(join: dict[str, Any], least: int = 1) -> Iterator[Counts]:
    """All settings, the last hop of the last direction going through its counts first."""
    m = len(join["rates"])
    spans = [range(least, n + 1) for row in everything(join) for n in row]
    for flat in product(*spans):
        yield [list(flat[i * (m - 1) : (i + 1) * (m - 1)]) for i in range(m)]


def brute_force(join: dict[str, Any], throttle: float, least: int = 1) -> Best | None:
    """Return the feasible setting of greatest O, then least C, then the first (4.2.2, 4.4)."""
    allowed = Fraction(throttle) * cost(join, everything(join))
    best: Best | None = None
    for number, counts in enumerate(settings(join, least)):
        spent = cost(join, counts)
        if spent > allowed:
            continue
        made = output(join, counts)
        if best is None or (made, -spent) > (best.output, -best.cost):
            best = Best(number, spent, made)
    return best
