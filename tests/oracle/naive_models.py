"""The independent oracle: arrival models, what they predict, and memory shared by them.

It imports nothing of ours. Curves are walked point by point, splits tried one by one, sums of the
theorems added term by term; what is solved for is bisected.
Sources: P5 2 to 5, equations 1 to 3, theorems 4.2 and 5.1; the contract, section 3 (AGE).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from naive_sampling import LEFT, RIGHT, SIDES, Span, Tuple, naive_key_counts

Points = list[tuple[float, float]]  # (memory in tuples, outputs a tick), the origin included
Floats = Sequence[float]


# --- Age curves (P5 2.2, 3.2) ------------------------------------------------------------------


def bucket_of(age: int, window: int, buckets: int) -> int:
    """Return the bucket of an age in 1 .. window."""
    return ((age - 1) * buckets) // window


def naive_ages(
    own: Sequence[Tuple], other: Sequence[Tuple], window: int, buckets: int
) -> list[int]:
    """Return how many probe outputs the tuples of a side have in each bucket of age."""
    counts = [0] * buckets
    for ts, key, _, _ in own:
        for s, v, _, _ in other:
            if key is not None and v == key and 0 < s - ts <= window:
                counts[bucket_of(s - ts, window, buckets)] += 1
    return counts


def naive_simultaneous(left: Sequence[Tuple], right: Sequence[Tuple]) -> int:
    """Return the number of simultaneous outputs."""
    return sum(
        1
        for ts, key, _, _ in left
        for s, v, _, _ in right
        if key is not None and (s, v) == (ts, key)
    )


def cumulative(curve: Floats, window: int, age: float) -> float:
    """Return C at an age in ticks: linear within a bucket, constant from the window on."""
    total = 0.0
    for k, p in enumerate(curve):
        begin, end = k * window / len(curve), (k + 1) * window / len(curve)
        if age >= end:
            total += p
        elif age > begin:
            total += p * (age - begin) / (end - begin)
    return total


def k_opt(curve: Floats, ends: Sequence[int] = ()) -> int:
    """Return the k in 1 .. n buckets of the greatest C(k) / k, the least of equals.

    Where buckets differ in width, `ends` are their last ages, by which C is divided.
    """
    best, best_rate, total = 1, -math.inf, 0.0
    for k, p in enumerate(curve, start=1):
        total += p
        rate = total / (ends[k - 1] if ends else k)
        if rate > best_rate:
            best, best_rate = k, rate
    return best


def equation_3(curve: Floats, window: int, rate: float, memory: float) -> float:
    """Return the outputs a tick that P5's equation 3 predicts, for curves without minima."""
    k = k_opt(curve) * window / len(curve)
    if memory / rate <= k:
        return memory * cumulative(curve, window, k) / k
    return rate * cumulative(curve, window, memory / rate)


def age_points(curve: Floats, window: int, rate: float) -> Points:
    """Return memory and outputs a tick where every tuple is kept for k buckets, k = 0 .. n."""
    n = len(curve)
    totals = [math.fsum(curve[:k]) for k in range(n + 1)]
    return [(rate * k * window / n, rate * totals[k]) for k in range(n + 1)]


def mixed_rate(points: Points, memory: float) -> float:
    """Return the most outputs a tick of any mixture of two points within the memory."""
    best = 0.0
    for m, y in points:
        if m <= memory:
            best = max(best, y)
        for m2, y2 in points:
            if m <= memory < m2:
                best = max(best, y + (y2 - y) * (memory - m) / (m2 - m))
    return best


def mixed_memory(points: Points, target: float) -> float:
    """Return the least memory with which a mixture of two points reaches a rate, or infinity."""
    if target <= 0.0:
        return 0.0
    best = math.inf
    for m, y in points:
        if y >= target:
            best = min(best, m)
        for m2, y2 in points:
            if y < target <= y2:
                best = min(best, m + (m2 - m) * (target - y) / (y2 - y))
    return best


# --- The frequency model (P5 3.3) --------------------------------------------------------------


def prob_points(own: dict[Any, int], other: dict[Any, int], window: int, ticks: int) -> Points:
    """Return memory and outputs a tick where the keys most frequent on the other side are kept.

    `own`, `other`: counts of keys over `ticks` ticks.
    """
    points = [(0.0, 0.0)]
    for key in sorted(own, key=lambda key: -other.get(key, 0)):
        memory, rate = points[-1]
        cells = own[key] * window / ticks
        points.append((memory + cells, rate + cells * other.get(key, 0) / ticks))
    return points


def prob_rate(
    own: dict[Any, int], other: dict[Any, int], window: int, ticks: int, memory: float
) -> float:
    """Return the outputs a tick of PROB: greedily by key, of the last key a fraction."""
    rate, left = 0.0, memory
    for key in sorted(own, key=lambda key: -other.get(key, 0)):
        cells = min(left, own[key] * window / ticks)
        rate += cells * other.get(key, 0) / ticks
        left -= cells
    return rate


# --- Recall, splits, ALLOC (P5 3.2.2, 5) -------------------------------------------------------


def expected_recall(rates: Floats, span: int, simultaneous: int, outputs: int) -> float:
    """Return (R_1 + R_2 + SA) / all, rates in outputs a tick over `span` ticks."""
    return (math.fsum(rates) * span + simultaneous) / outputs


def best_splits(left: Points, right: Points, memory: int) -> tuple[float, list[int]]:
    """Return the most outputs a tick, and all whole shares of left that give it."""
    rates = [mixed_rate(left, m) + mixed_rate(right, memory - m) for m in range(memory + 1)]
    best = max(rates)
    return best, [m for m, rate in enumerate(rates) if rate >= best - 1e-12 * max(1.0, best)]


def total_rate(curves: Sequence[Points], shares: Floats) -> float:
    """Return the outputs a tick of lanes with these shares."""
    return math.fsum(mixed_rate(points, m) for points, m in zip(curves, shares, strict=True))


class Join(NamedTuple):
    """A join as ALLOC sees it: rate curves of its sides, outputs a tick of all and at no cost."""

    left: Points
    right: Points
    all: float
    free: float = 0.0
    weight: float = 1.0


def join_memory(join: Join, recall: float) -> float:
    """Return f(q): the least memory of both sides together with which a recall is reached.

    What the curves cannot reach (by their model) is not asked of them.
    """
    most = max(y for _, y in join.left) + max(y for _, y in join.right)
    target = min(recall * join.all - join.free, most)
    shares = [m for m, _ in join.left]
    shares += [mixed_memory(join.left, target - y) for _, y in join.right]
    return min(
        m + mixed_memory(join.right, target - mixed_rate(join.left, m) - 1e-12 * most)
        for m in shares
        if math.isfinite(m)
    )


def naive_alloc(
    joins: Sequence[Join], memory: float, steps: int = 1000
) -> tuple[float, list[float]]:
    """Return the greatest q of a grid that the memory allows, and the memory of each join.

    q goes up to where every join is asked for recall 1: 1 / the least weight.
    """
    best = (0.0, [0.0] * len(joins))
    for step in range(steps + 1):
        q = step / steps / min(join.weight for join in joins)
        memories = [join_memory(join, min(1.0, join.weight * q)) for join in joins]
        if math.fsum(memories) <= memory:
            best = (q, memories)
    return best


# --- Memory of UNIFORM (P5 4.2.2) --------------------------------------------------------------


def uniform_memory(
    rate: float, p: float, ages: Floats, expiry: float = 0.0, never: int = 0
) -> float:
    """Return the expected memory of tuples with matches at these ages, by the sum over i.

    A tuple is held up to the last match that the coin flips take; `never` more flips are for
    matches that do not come, and one of them taken holds the tuple up to `expiry`.
    """
    ends = [*ages, *[expiry] * never]
    n, q = len(ends), 1.0 - p
    return rate * math.fsum(p * q ** (n - i) * end for i, end in enumerate(ends, start=1))


def theorem_4_2(
    rate: float, window: float, p: float, matches: int, cap: int | None = None
) -> float:
    """Return the expected memory under the frequency model: the i-th match at age W i / n."""
    ages = [window * i / matches for i in range(1, matches + 1)]
    return uniform_memory(rate, p, ages, window, 0 if cap is None else cap - matches)


def theorem_4_2_closed(
    rate: float, window: float, p: float, matches: float, cap: float | None = None
) -> float:
    """Return the same in closed form, which takes real numbers of matches."""
    q, most = 1.0 - p, matches if cap is None else cap
    if most <= 0.0:
        return 0.0
    within = 1.0 - q * (1.0 - q**matches) / (p * matches) if matches > 0.0 else 0.0
    return float(rate * window * (1.0 - q ** (most - matches) * (1.0 - within)))


def poisson_memory(rate: float, window: float, p: float, mean: float, cap: int) -> float:
    """Return the expected memory where matches come at random, not at even distances as P5 has it.

    Their number is Poisson, given that it is at most the cap, and the i-th of n comes at age
    W i / (n + 1) in the mean: what streams of independent keys do.
    """
    chances = [math.exp(n * math.log(mean) - mean - math.lgamma(n + 1)) for n in range(cap + 1)]
    total = 0.0
    for n, chance in enumerate(chances):
        ages = [window * i / (n + 1) for i in range(1, n + 1)]
        total += chance * uniform_memory(rate, p, ages, window, cap - n)
    return total / math.fsum(chances)


# --- Profile: which model fits, skew, online estimation (P5 2) ---------------------------------


class Fit(NamedTuple):
    """Log-likelihoods of held-out matches, in nats, and their number."""

    constant: float
    frequency: float
    age: float
    matches: int

    def bits(self) -> tuple[float, float]:
        """Return the gain of the frequency and the age model over a constant, bits a match."""
        scale = math.log(2.0) * max(1, self.matches)
        return (self.frequency - self.constant) / scale, (self.age - self.constant) / scale


def _observed(
    own: Sequence[Tuple], other: Sequence[Tuple], window: int, span: Span
) -> list[tuple[Any, int, list[int]]]:
    """Return (key, last age seen, ages of matches) of the tuples that arrive within a span."""
    first, last = span
    return [
        (key, min(window, last - ts), [
            s - ts for s, v, _, _ in other if v == key and 0 < s - ts <= window and s <= last
        ])
        for ts, key, _, _ in own
        if key is not None and first <= ts <= last
    ]  # fmt: skip


def naive_fit(
    own: Sequence[Tuple], other: Sequence[Tuple], window: int, span: Span, buckets: int
) -> Fit:
    """Return how well models learnt on the first half of a span tell the second half's matches.

    Each tick of each tuple has a Poisson number of matches. Tuples that arrive within a half are
    followed up to its end. All three rates have half a match added.
    """
    ticks = (span[1] - span[0] + 1) // 2
    middle = span[0] + ticks
    learnt = _observed(own, other, window, (span[0], middle - 1))
    counts = naive_key_counts([row for row in other if span[0] <= row[0] < middle])
    matches, exposure = [0] * buckets, [0] * buckets
    for _, seen, ages in learnt:
        for age in range(1, seen + 1):
            exposure[bucket_of(age, window, buckets)] += 1
        for age in ages:
            matches[bucket_of(age, window, buckets)] += 1
    constant = (sum(matches) + 0.5) / max(1, sum(exposure))
    by_age = [(m + 0.5) / max(1, e) for m, e in zip(matches, exposure, strict=True)]
    logs = [0.0, 0.0, 0.0]
    number = 0
    for key, seen, ages in _observed(own, other, window, (middle, span[1])):
        number += len(ages)
        frequency = (counts.get(key, 0) + 0.5) / ticks
        for age in range(1, seen + 1):
            rates = (constant, frequency, by_age[bucket_of(age, window, buckets)])
            for model, rate in enumerate(rates):
                logs[model] += ages.count(age) * math.log(rate) - rate
    return Fit(logs[0], logs[1], logs[2], number)


def together(fits: Sequence[Fit]) -> Fit:
    """Return the fit of both sides together."""
    constant, frequency, age, matches = zip(*fits, strict=True)
    return Fit(math.fsum(constant), math.fsum(frequency), math.fsum(age), sum(matches))


def zipf_likeliest(counts: Floats) -> float:
    """Return the exponent of greatest likelihood of counts by rank, of the keys seen (0 to 10)."""
    ranked = sorted((c for c in counts if c > 0), reverse=True)
    logs = [math.log(rank) for rank in range(1, len(ranked) + 1)]
    target = math.fsum(c * y for c, y in zip(ranked, logs, strict=True)) / math.fsum(ranked)
    low, high = 0.0, 10.0
    for _ in range(100):
        s = (low + high) / 2.0
        weights = [math.exp(-s * y) for y in logs]
        mean = math.fsum(w * y for w, y in zip(weights, logs, strict=True)) / math.fsum(weights)
        low, high = (s, high) if mean > target else (low, s)
    return (low + high) / 2.0


class Watched(NamedTuple):
    """Rows followed online, of each side, and the age curves they show."""

    rows: tuple[list[int], list[int]]
    curves: tuple[list[float], list[float]]


def _watched(
    streams: tuple[Sequence[Tuple], Sequence[Tuple]],
    windows: tuple[int, int],
    buckets: int,
    taken: tuple[list[Tuple], list[Tuple]],
) -> Watched:
    """Return the curves of the tuples taken: mean probe outputs in each bucket."""
    curves = []
    for side in SIDES:
        counts = naive_ages(taken[side], streams[1 - side], windows[side], buckets)
        curves.append([count / max(1, len(taken[side])) for count in counts])
    rows = ([row for _, _, _, row in taken[LEFT]], [row for _, _, _, row in taken[RIGHT]])
    return Watched(rows, (curves[LEFT], curves[RIGHT]))


def naive_monitor(
    left: Sequence[Tuple],
    right: Sequence[Tuple],
    windows: tuple[int, int],
    memory: int,
    buckets: int,
) -> Watched:
    """Follow tuples in a memory that goes round the windows (P5 2.3), left first.

    A turn takes the next `memory` arrivals of its side and lasts until the last has expired.
    """
    taken: tuple[list[Tuple], list[Tuple]] = ([], [])
    arrivals = [(ts, side, row, key, imp) for side, stream in enumerate((left, right))
                for ts, key, imp, row in stream if key is not None]  # fmt: skip
    turn, number, begin = LEFT, 0, -math.inf
    for ts, side, row, key, imp in sorted(arrivals, key=lambda arrival: arrival[:3]):
        if side == turn and ts >= begin:
            taken[side].append((ts, key, imp, row))
            number += 1
        if number == memory:
            turn, number, begin = 1 - turn, 0, ts + windows[side] + 1
    return _watched((left, right), windows, buckets, taken)


def naive_retain(
    left: Sequence[Tuple],
    right: Sequence[Tuple],
    windows: tuple[int, int],
    fraction: float,
    buckets: int,
    draw: Callable[[int, int], float],
) -> Watched:
    """Follow a fraction of the tuples for their lifetimes; `draw`: uniform of a side and a row."""
    streams = (left, right)
    taken: tuple[list[Tuple], list[Tuple]] = ([], [])
    for side in SIDES:
        for item in streams[side]:
            if item[1] is not None and draw(side, item[3]) < fraction:
                taken[side].append(item)
    return _watched(streams, windows, buckets, taken)
