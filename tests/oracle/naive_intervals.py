"""The independent oracle of confidence intervals: written from docs/aggregates.md, by loops.

It imports nothing of ours and nothing beyond the standard library. Clusters are lists of outputs,
residuals are subtracted from each of them, and quantiles are found by bisection.
"""

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

from naive_sampling import (
    WEIGHT,
    Key,
    Row,
    Span,
    naive_cells,
    naive_cluster_covariances,
    naive_clusters,
)

Interval = tuple[float, float]
NORMAL = NormalDist()
ROUNDING, NOTHING = 1e-9, 1e-13
Pairs = list[tuple[Row, float]]


class Moments(NamedTuple):
    """The moments of a window and group, of its clusters that were sampled by chance."""

    v: float
    third: float
    shared: float
    squares: float
    count: float
    """`v`, `third`, `shared`, `squares`, `count`: V, D, C, the sum of V_x^2 and of q."""
    size: float
    typical: float
    signed: float
    """`size`, `typical`, `signed`: Sums of q |S_x|, q V_x and q S_x."""


def naive_intervals(
    func: str,
    rows: Sequence[Row],
    values: Sequence[float | None],
    groups: Sequence[Any] | None = None,
    *,
    every: int | None = None,
    over: int | None = None,
    span: Span | None = None,
    independent: bool = False,
    confidence: float = 0.95,
    lost: Sequence[Span] = ((-(2**63), 2**63 - 1),),
) -> dict[Key, Interval | None]:
    """Return the intervals of `naive_aggregate`'s cells, None where there is none.

    Parameters
    ----------
    func, rows, values, groups, every, over, span, independent
        As `naive_aggregate` has them.
    lost : sequence of (int, int)
        First and last ticks of the times when outputs may be missing.
    """
    cells = naive_cells(rows, values, groups, every=every, over=over, span=span)
    average = func == "avg"
    level = (1 + confidence) / 2
    found: dict[Key, Interval | None] = {}
    known = {key: moments(_valued(func, cells[key]), independent, average) for key in cells}
    seen = [value for pairs in cells.values() for _, value in _valued(func, pairs)]
    for key, pairs in cells.items():
        mine = _valued(func, pairs)
        middle, number = middle_of(mine, average)
        begin, end = key[0], key[1]
        first, last = (begin, end - 1) if begin is not None and end is not None else (
            span or (-(2**63), 2**63 - 1))  # fmt: skip
        if middle is None:
            found[key] = None
        elif not any(a <= last and first <= b for a, b in lost):
            exact = math.fsum(value for _, value in mine) / (len(mine) if average else 1)
            found[key] = exact, exact
        else:
            others = _others(key, known, every, over)
            around = _bounds(known[key], _share(mine, independent), others, level, average)
            if around is None:
                found[key] = None
                continue
            low, high = middle - around[0] / number, middle + around[1] / number
            total = math.fsum(value for _, value in mine)
            if not average and all(value >= 0 for value in seen):
                low = max(low, total)
            elif not average and all(value <= 0 for value in seen):
                high = min(high, total)
            found[key] = low, high
    return found


def _valued(func: str, pairs: Pairs) -> Pairs:
    return [(row, 1.0) for row, _ in pairs] if func == "count" else pairs


def middle_of(pairs: Pairs, average: bool) -> tuple[float | None, float]:
    """Return the estimate, and what sums of residuals are divided by."""
    total = math.fsum(row[WEIGHT] * value for row, value in pairs)
    if not average:
        return total, 1.0
    number = math.fsum(row[WEIGHT] for row, _ in pairs)
    return (total / number if pairs else None), number


def _share(pairs: Pairs, independent: bool) -> float:
    """Return the sum over clusters sampled by chance of S_1x^2, over S_1^2."""
    rows = [row for row, _ in pairs]
    ones = [1.0] * len(rows)
    clusters = naive_clusters(rows, independent=independent)
    v = naive_cluster_covariances(rows, ones, ones, independent=independent)
    whole = math.fsum(row[WEIGHT] for row in rows)
    chance = [own for own, variance in zip(clusters, v, strict=True) if variance > 0]
    return math.fsum(math.fsum(rows[j][WEIGHT] for j in own) ** 2 for own in chance) / (
        whole**2 or 1.0)  # fmt: skip


def moments(pairs: Pairs, independent: bool, average: bool) -> Moments:
    """Return the moments of a cell: of an average, those of the residuals."""
    rows = [row for row, _ in pairs]
    raw = [value for _, value in pairs]
    middle, _ = middle_of(pairs, average)
    taken = middle if average and middle is not None else 0.0
    y, ones = [value - taken for value in raw], [1.0] * len(rows)
    clusters = naive_clusters(rows, independent=independent)
    v, v_raw, v_ones = (
        naive_cluster_covariances(rows, one, one, independent=independent) for one in (y, raw, ones)
    )
    found = [0.0] * 8
    for own, v_x, v_1 in zip(clusters, v, v_ones, strict=True):
        if v_1 == 0:
            continue
        s = math.fsum(rows[j][WEIGHT] * y[j] for j in own)
        q = v_1 / math.fsum(rows[j][WEIGHT] for j in own) ** 2
        terms = (v_x, (1 + q) * s * v_x, q * s * v_x, v_x**2, q, q * abs(s), q * v_x, q * s)
        found = [total + term for total, term in zip(found, terms, strict=True)]
    scale = math.fsum(v_raw) + taken**2 * math.fsum(v_ones)
    single = average and _share(pairs, independent) >= 1 - ROUNDING
    if single or found[0] <= (NOTHING**2 * scale if average else 0.0):
        found[:5] = [0.0] * 5
    return Moments(*found)


def _others(
    key: Key, known: dict[Key, Moments], every: int | None, over: int | None
) -> list[list[Moments]]:
    """Return the moments of cells to learn from: of the group, and of all groups."""
    phase = 1 if every is None else (over or every) // every

    def apart(other: Key) -> bool:
        if other == key:
            return False
        if every is None or key[0] is None or other[0] is None:
            return True
        return (other[0] - key[0]) // every % phase == 0

    rest = [other for other in known if apart(other)]
    return [[known[o] for o in rest if o[2] == key[2]], [known[o] for o in rest]]


def _bounds(
    own: Moments, share: float, others: list[list[Moments]], level: float, average: bool
) -> Interval | None:
    """Return how far down and up the interval of a total reaches."""
    if own.v > 0:
        rest = next((some for pool in others if (some := [m for m in pool if m.v > 0])), [])
        return _around(own, own.v / (1 - share) if average else own.v, rest, level)
    for pool in others:
        v = math.fsum(m.v for m in pool)
        if v <= 0:
            continue
        n = v**2 / math.fsum(m.squares for m in pool)
        if average:
            sign, typical = 0.0, math.sqrt(v / math.fsum(m.count for m in pool))
        else:
            size = math.fsum(m.size for m in pool)
            sign = math.fsum(m.signed for m in pool) / size
            typical = math.fsum(m.typical for m in pool) / size
        t = student(level, max((1 + sign**2) * n, 1.0))
        far = t**2 * typical
        return (far if sign < 1 - ROUNDING else 0.0), (far if sign > ROUNDING - 1 else 0.0)
    return None


def _around(own: Moments, spread: float, rest: list[Moments], level: float) -> Interval:
    third, shared, squares = own.third, own.shared, own.squares
    if rest:
        weight = math.fsum(m.count for m in rest)

        def mean(of: Callable[[Moments], float]) -> float:
            return math.fsum(m.count * of(m) for m in rest) / weight

        scale = own.v**1.5 / math.sqrt(own.count)
        third = scale * mean(lambda m: m.third * math.sqrt(m.count) / m.v**1.5)
        shared = scale * mean(lambda m: m.shared * math.sqrt(m.count) / m.v**1.5)
        squares = own.v**2 / own.count * mean(lambda m: m.squares * m.count / m.v**2)
    n = own.v**2 / max(own.squares, squares)
    t = student(level, max(2 * n if rest else n / 2, 2.0))
    rare = max(math.erfc(t / math.sqrt(2)) / 2, 1e-300)
    mine = gamma_reach(spread, own.third, own.shared / (2 * own.v), rare)
    theirs = gamma_reach(spread, third, shared / (2 * own.v), rare)
    return max(mine[0], theirs[0], 0.0), max(mine[1], theirs[1], 0.0)


def gamma_reach(v: float, third: float, centre: float, rare: float) -> Interval:
    """Return how far below and above its centre a gamma variable of three moments is `rare`."""
    b = third / (2 * v)
    k = v / b**2 if b else math.inf
    if k >= 1e6:
        half = -NORMAL.inv_cdf(rare) * math.sqrt(v)
        return half - centre, half + centre
    shape = k + 0.5
    tails = [
        bisect(lambda x: gamma_tails(shape, x)[0] - rare, 0.0, shape) - shape,
        bisect(lambda x: rare - gamma_tails(shape, x)[1], 0.0, 40 * shape + 2000) - shape,
    ]
    low, high = (b * tails[0], b * tails[1]) if b > 0 else (b * tails[1], b * tails[0])
    return -low - centre, high + centre


def bisect(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where an increasing function is 0."""
    for _ in range(300):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return (low + high) / 2


def gamma_tails(a: float, x: float) -> tuple[float, float]:
    """Return the probabilities that a gamma variable of shape a is below and above x."""
    if x <= 0:
        return 0.0, 1.0
    front = math.exp(a * math.log(x) - x - math.lgamma(a))
    if x < a + 1:
        term = total = 1 / a
        n = a
        while abs(term) > 1e-18 * abs(total):
            n += 1
            term *= x / n
            total += term
        return front * total, 1 - front * total
    # Lentz's continued fraction
    b = x + 1 - a
    c, d = 1e300, 1 / b
    h = d
    for i in range(1, 100_000):
        an = -i * (i - a)
        b += 2
        d = 1 / (an * d + b or 1e-300)
        c = b + an / c or 1e-300
        h *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return 1 - front * h, front * h


def student(level: float, degrees: float) -> float:
    """Return the quantile of Student's t at a level above a half."""
    return bisect(lambda t: student_cdf(t, degrees) - level, 0.0, 1e9)


def student_cdf(t: float, degrees: float) -> float:
    """Return the probability that Student's t is at most t >= 0."""
    x = degrees / (degrees + t * t)
    return 1 - incomplete_beta(degrees / 2, 0.5, x) / 2


def incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
                     + a * math.log(x) + b * math.log1p(-x)) / a  # fmt: skip
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or 1e-300)
    h = d
    for m in range(1, 100_000):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + numerator * d or 1e-300)
            c = 1 + numerator / c or 1e-300
            h *= d * c
        if abs(d * c - 1) < 1e-16:
            break
    return front * h
