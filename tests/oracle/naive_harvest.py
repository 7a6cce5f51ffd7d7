"""The oracle of window harvesting: P4 4.1 to 5.2 word for word, in exact fractions.

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


def settings(join: dict[str, Any]) -> Iterator[Counts]:
    """All settings, the last hop of the last direction going through its counts first."""
    m = len(join["rates"])
    spans = [range(n + 1) for row in everything(join) for n in row]
    for flat in product(*spans):
        yield [list(flat[i * (m - 1) : (i + 1) * (m - 1)]) for i in range(m)]


def brute_force(join: dict[str, Any], throttle: float) -> Best:
    """Return the feasible setting of greatest O, then least C, then the first (4.2.2, 4.4)."""
    allowed = Fraction(throttle) * cost(join, everything(join))
    best: Best | None = None
    for number, counts in enumerate(settings(join)):
        spent = cost(join, counts)
        if spent > allowed:
            continue
        made = output(join, counts)
        if best is None or (made, -spent) > (best.output, -best.cost):
            best = Best(number, spent, made)
    assert best is not None  # reading nothing is feasible
    return best


def ratio(above: Fraction, below: Fraction) -> Fraction | float:
    """Return a quotient; x / 0 is infinite, 0 / 0 is 0."""
    if below == 0:
        return float("inf") if above > 0 else Fraction(0)
    return above / below


def metric_score(
    metric: str, made: Fraction, spent: Fraction, now_made: Fraction, now_spent: Fraction
) -> Fraction | float:
    """EVAL of figure 5, for a setting that is feasible."""
    if metric == "best-output":
        return made
    if metric == "best-output-per-cost":
        return ratio(made, spent)
    return ratio(made - now_made, spent - now_spent)


def greedy_pick(join: dict[str, Any], throttle: float, metric: str) -> Counts:
    """GREEDYPICK of figure 5, line by line; i and j count from 0."""
    m = len(join["rates"])
    full = everything(join)
    limit = Fraction(throttle) * cost(join, full)
    c_o = c_c = Fraction(0)  # (1)
    initialised = [False] * m  # (2)
    frozen = [[False] * (m - 1) for _ in range(m)]  # (3)
    z = [[0] * (m - 1) for _ in range(m)]  # (4)

    def evaluate() -> Fraction | float:
        spent = cost(join, z)
        if spent > limit:
            return -1
        return metric_score(metric, output(join, z), spent, c_o, c_c)

    while True:  # (5)
        best: Fraction | float = 0  # (6)
        u = v = -1  # (7)
        for i in range(m):  # (8)
            if initialised[i]:  # (9)
                for j in range(m - 1):  # (10)
                    if z[i][j] == full[i][j] or frozen[i][j]:  # (11)
                        continue  # (12)
                    z[i][j] += 1  # (13, 14)
                    score = evaluate()  # (15)
                    z[i][j] -= 1  # (16)
                    if score > best:  # (17)
                        best, u, v = score, i, j  # (18)
                    elif score < 0:  # (19)
                        frozen[i][j] = True  # (20)
            else:  # (21)
                z[i] = [1] * (m - 1)  # (22)
                score = evaluate()  # (23)
                z[i] = [0] * (m - 1)  # (24)
                if score > best:  # (25)
                    best, u = score, i  # (26)
        if u == -1:  # (27)
            return z  # (28, 35)
        if not initialised[u]:  # (29)
            initialised[u] = True  # (30)
            z[u] = [1] * (m - 1)  # (31)
        else:
            z[u][v] += 1  # (32)
        c_c = cost(join, z)  # (33)
        c_o = output(join, z)  # (34)


def greedy_reverse(join: dict[str, Any], throttle: float, metric: str) -> Counts:
    """Figure 5 mirrored (6.1): from all fractions 1 down to the first feasible setting.

    A step lessens one count that is 2 or more, or, where no such step of a direction saves
    anything, stops reading the direction; steps that save nothing are not taken.
    """
    m = len(join["rates"])
    z = everything(join)
    limit = Fraction(throttle) * cost(join, z)
    while cost(join, z) > limit:
        now_spent, now_made = cost(join, z), output(join, z)
        best: tuple[Fraction | float, Counts] | None = None
        for i in range(m):
            steps = [
                [[c - ((a, b) == (i, j)) for b, c in enumerate(row)] for a, row in enumerate(z)]
                for j in range(m - 1)
                if z[i][j] > 1
            ]
            if not any(cost(join, step) < now_spent for step in steps):
                steps = [[[0] * (m - 1) if a == i else row for a, row in enumerate(z)]]
            for step in steps:
                spent, made = cost(join, step), output(join, step)
                if spent >= now_spent:
                    continue
                if metric == "best-delta-output-per-delta-cost":  # least lost for what is saved
                    score = -ratio(now_made - made, now_spent - spent)
                else:
                    score = metric_score(metric, made, spent, now_made, now_spent)
                if best is None or score > best[0]:
                    best = score, [list(row) for row in step]
        if best is None:
            raise AssertionError("something that costs can always be left unread")
        z = best[1]
    return z


def mass(
    frequencies: list[float], window: int, window_0: int, low: Fraction, high: Fraction
) -> Fraction:
    """L_i of a range of lags (5.2.2): what it shares with each bucket, spread evenly inside."""
    width = Fraction(window_0 + window, len(frequencies))
    total = Fraction(0)
    for v, frequency in enumerate(frequencies):
        begin = -window + v * width
        shared = min(high, begin + width) - max(low, begin)
        total += Fraction(frequency) * max(Fraction(0), shared) / width
    return total


def score(
    histograms: list[list[float]], windows: list[int], b: int, i: int, stream: int, k: int
) -> Fraction:
    """p_ij^k of the k-th logical basic window (from 1) of a stream, by equations 1 and 2."""
    if i == 0:
        low, high = Fraction(-b * k), Fraction(-b * (k - 1))
        return mass(histograms[stream], windows[stream], windows[0], low, high)
    low, high = Fraction(b * (k - 1)), Fraction(b * k)
    if stream == 0:  # the paper's L_1 is all at 0
        return mass(histograms[i], windows[i], windows[0], low, high)
    buckets = len(histograms[stream])
    width = Fraction(windows[0] + windows[stream], buckets)
    total = Fraction(0)
    for v in range(buckets):
        middle = -windows[stream] + v * width + width / 2
        there = mass(histograms[i], windows[i], windows[0], low + middle, high + middle)
        total += Fraction(histograms[stream][v]) * there
    return total


def kept_cost_and_output(join: dict[str, Any], keep: list[Fraction]) -> tuple[Fraction, Fraction]:
    """C and O with whole windows where stream i's rate is keep_i * lambda_i (RandomDrop, 6.2)."""
    rates = [Fraction(rate) * x for rate, x in zip(join["rates"], keep, strict=True)]
    left = join | {"rates": rates}
    return cost(left, everything(left)), output(left, everything(left))
