"""The oracle of `yield`, written from docs/yield.md: dictionaries and lists, every sum as it says.

It imports nothing of ours. `Estimate` follows the instants of a lane; `naive.replay` asks it. What
a fact relation changes comes from `Relation`; without one everything is as in an equi-join.
"""

import math
from collections.abc import Sequence
from typing import Any

LEFT, RIGHT = 0, 1
SIDES = (LEFT, RIGHT)
CLASSES = 18
GOLDEN = 0x9E3779B97F4A7C15
MASK64 = (1 << 64) - 1


def combine(name: str, a: float, b: float) -> float:
    """Return the importance of an output tuple, from its members' (P1 3.2)."""
    values = {"min": min(a, b), "sum": a + b, "product": a * b, "max": max(a, b)}
    return {**values, "mean": (a + b) / 2}[name]


def power_of_two(number: float) -> int:
    """Round up to a power of two, at least 4."""
    found = 4
    while found < number:
        found *= 2
    return found


def bin_of(x: float) -> int:
    """Return the importance bin of x."""
    if x == 0:
        return 0
    f, e = math.frexp(x)
    return max(1, min(1024, 505 + 8 * e + math.floor(16 * (f - 0.5))))


def shrink(m: list[float], e: list[float], row: int | None) -> tuple[float, list[float]]:
    """Return the common ratio f and the cells' s."""
    total_m, total_e = 0.0, 0.0
    for a, b in zip(m, e, strict=True):
        total_m += a
        total_e += b
    f = total_m / total_e if total_m > 0 and total_e > 0 else 1.0
    z = [(a - b * f) / math.sqrt(b * f) if b * f > 0 else None for a, b in zip(m, e, strict=True)]
    spread = 0.0
    for one in z:
        if one is not None:
            spread += one * one
    df = float(max(sum(1 for b in e if b > 0) - 1, 1))
    noise = df
    steps, pairs = 0.0, 0
    for i in range(1, len(z)):
        one, before = z[i], z[i - 1]
        if row is not None and i % row != 0 and one is not None and before is not None:
            steps += (one - before) * (one - before) / 2
            pairs += 1
    if pairs:
        noise = max(df, steps / pairs * df)
    signal = spread - noise
    if not signal > 3 * math.sqrt(2 * df):
        return f, [1.0] * len(m)
    k = total_e * f / signal
    return f, [(a + k) / (b * f + k) for a, b in zip(m, e, strict=True)]


Table = list[list[float]]


def fit(m: list[Table], e: list[Table]) -> tuple[list[float], Table]:
    """Return the factors of the classes, and the hazards."""
    w = weights(m, e)
    states, buckets = range(2), range(len(m[0][0]))
    cells = [(s, b) for s in states for b in buckets]
    h = dict.fromkeys(cells, 1.0)
    for _ in range(2):
        of_class = [total([one[s][b] for s, b in cells]) for one in m]
        due = [total([one[s][b] * h[s, b] for s, b in cells]) for one in e]
        first = shrink([of_class[0], total(of_class[1:])], [due[0], total(due[1:])], None)[1]
        rest = shrink(of_class[1:], due[1:], CLASSES - 1)[1]
        factor = [first[0]] + [one * first[1] for one in rest]
        found = {
            (s, b): total([one[s][b] * k for one, k in zip(m, w, strict=True)]) for s, b in cells
        }
        awaited = {
            (s, b): total([one[s][b] * (k * f) for one, k, f in zip(e, w, factor, strict=True)])
            for s, b in cells
        }
        f1, s1 = shrink(
            [total([found[s, b] for b in buckets]) for s in states],
            [total([awaited[s, b] for b in buckets]) for s in states],
            None,
        )
        f2, s2 = shrink(
            [total([found[s, b] for s in states]) for b in buckets],
            [total([awaited[s, b] * (f1 * s1[s]) for s in states]) for b in buckets],
            len(buckets),
        )
        f = f1 * f2
        f3, s3 = shrink(
            [found[cell] for cell in cells],
            [awaited[s, b] * (f * (s1[s] * s2[b])) for s, b in cells],
            len(buckets),
        )
        f *= f3
        h = {(s, b): s1[s] * s2[b] * s3[s * len(buckets) + b] for s, b in cells}
    return factor, [[f * h[s, b] for b in buckets] for s in states]


def weights(m: list[Table], e: list[Table]) -> list[float]:
    """Return what a match of each class weighs."""
    w, found = [], []
    for c in range(CLASSES):
        of_class, due = (total([one for row in cells[c] for one in row]) for cells in (m, e))
        whole = (1.0 if c == 0 else 2.0 ** (c - 5)) * len(m[0][0])
        w.append(1 / (1 + of_class / due * whole) if due > 0 else 1.0)
        found.append(of_class)
    once = total([a * b for a, b in zip(w, found, strict=True)])
    twice = total([a * a * b for a, b in zip(w, found, strict=True)])
    return [one * (once / twice) for one in w] if twice > 0 else w


def best_rate(hazard: list[list[float]], state: int, bucket: int) -> float:
    """Return the index of a state and bucket."""
    buckets = len(hazard[0])
    rate = hazard[state][bucket]
    for _ in range(16):
        reward: dict[tuple[int, int], float] = {(s, buckets): 0.0 for s in (0, 1)}
        time = dict(reward)
        for b in range(buckets - 1, bucket - 1, -1):
            for s in (0, 1):
                p = hazard[s][b] / (1 + hazard[s][b]) if s == 0 else 0.0
                stays, goes = (s, b + 1), (1, b + 1)
                mean = hazard[s][b] + p * (hazard[1][b] - hazard[s][b])
                reward[s, b] = mean + ((1 - p) * reward[stays] + p * reward[goes])
                time[s, b] = 1 + ((1 - p) * time[stays] + p * time[goes])
                pays = reward[s, b] > rate * time[s, b] * (1 + 1e-12)
                if not pays and (s, b) != (state, bucket):
                    reward[s, b], time[s, b] = 0.0, 0.0
        found = reward[state, bucket] / time[state, bucket]
        if not found > rate * (1 + 1e-12):
            break
        rate = found
    return rate


def class_of(base: float) -> tuple[int, float]:
    """Return the class of a base, 1 or more, and the share of the next."""
    f, e = math.frexp(base)
    if e + 4 < 1:
        return 1, 0.0
    return (17, 0.0) if e + 4 >= 17 else (e + 4, 2 * f - 1)


class Cell:
    """Counts of one key."""

    def __init__(self, key: int) -> None:
        self.key, self.last = key, 0
        self.c, self.u = [0, 0], [0.0, 0.0]


class Watched:
    """A watched tuple."""

    def __init__(
        self, item: Any, number: int, group: int, share: float, free: float, base: float
    ) -> None:
        self.item, self.number, self.group, self.share = item, number, group, share
        self.free, self.base = free, base
        self.age = 0
        self.matched: int | None = None  # its age when it first matched

    @property
    def state(self) -> int:
        """Return 1 once it has matched."""
        return int(self.matched is not None)


class OfSide:
    """What is remembered of one side."""

    def __init__(self, buckets: int) -> None:
        self.number, self.importance, self.xx, self.xy = 0, 0.0, 0.0, 0.0
        self.bin_number, self.bin_importance = [0] * 1025, [0.0] * 1025
        self.below_number, self.below_importance = [0] * 1026, [0.0] * 1026
        self.oo = self.of = self.ff = self.os = self.fs = 0.0
        self.of_own, self.of_free, self.of_key = 0.0, 1.0, 0.0
        self.factor, self.level = [1.0] * CLASSES, 0.0
        self.watched: list[Watched] = []
        self.arrived, self.stride = 0, 1
        self.matches = [[[0.0] * buckets for _ in SIDES] for _ in range(CLASSES)]
        self.exposure = [[[0.0] * buckets for _ in SIDES] for _ in range(CLASSES)]
        self.table = [[1.0] * buckets for _ in SIDES]


class Relation:
    """F as the estimate sees it: the codes of its attributes, and the order of its facts.

    A fact is ((a, b), begin, end) or with an identity, and is named by its position. Those with a
    null attribute are not facts: they have no code.
    """

    def __init__(self, facts: Sequence[tuple[Any, ...]]) -> None:
        self.facts = facts
        self.codes: list[dict[Any, int]] = []
        for side in SIDES:
            distinct = sorted({both[side] for both, *_ in facts if None not in both})
            self.codes.append({a: 2 * i + side for i, a in enumerate(distinct)})

    def code(self, side: int, attribute: Any) -> int:
        """Return the code of an attribute of a side."""
        return self.codes[side][attribute]

    def place(self, f: int) -> tuple[float, ...]:
        """Return the place of a fact in the order of all: by attributes, begin and position."""
        (a, b), begin, *_ = self.facts[f]
        since = -math.inf if begin is None else begin
        return (self.code(LEFT, a), self.code(RIGHT, b), since, f)

    def joined(self, item: Any) -> list[tuple[Any, float]]:
        """Return the attribute that each fact of a tuple joins it to, and the fact's begin."""
        found = []
        for f in sorted(item.facts, key=self.place):
            both, begin, *_ = self.facts[f]
            found.append((both[1 - item.side], -math.inf if begin is None else begin))
        return found


class Estimate:
    """The estimate of a lane, instant by instant."""

    def __init__(
        self,
        windows: tuple[int, int],
        combine_name: str,
        params: dict[str, Any],
        facts: Sequence[tuple[Any, ...]] | None = None,
    ) -> None:
        self.windows, self.combine = windows, combine_name
        self.relation = None if facts is None else Relation(facts)
        self.cells: dict[int, Cell] = {}
        self.counters = power_of_two(params.get("counters", 65536))
        self.sample = power_of_two(params.get("sample", 1024))
        self.buckets: int = math.ceil(params.get("buckets", 32))
        self.sides = (OfSide(self.buckets), OfSide(self.buckets))
        self.rows, self.waits_for = 0, 32
        self.last_table: Any = None
        self.first: int | None = None
        self.step = 0

    def bucket(self, side: int, age: int) -> int:
        """Return the bucket of an age."""
        return age * self.buckets // (self.windows[side] + 1)

    def best(self, side: int, state: int, age: int) -> float:
        """Return the best rate of a tuple of this state and age now."""
        return self.sides[side].table[state][self.bucket(side, age)]

    def arrive(self, now: int, arrivals: list[list[Any]]) -> None:
        """Go through an instant; gives every arrival its `value`, but those of no fact."""
        if self.relation is not None:
            arrivals = [[item for item in some if item.facts] for some in arrivals]
            if not any(arrivals):
                return
        self.first = now if self.first is None else self.first
        self.step = math.gcd(self.step, now - self.first)
        for side in SIDES:
            mine, window = self.sides[side], self.windows[side]
            for one in [x for x in mine.watched if now - x.item.ts > window]:
                self.count_up(side, one, window)
                mine.watched.remove(one)
        if self.rows >= self.waits_for:
            for side in SIDES:
                for one in self.sides[side].watched:
                    self.count_up(side, one, now - 1 - one.item.ts)
            self.renew()
        for side in SIDES:
            for other in arrivals[1 - side]:
                self.match(side, other, now)
        for side in SIDES:
            for item in arrivals[side]:
                self.count(side, item, now)
        for side in SIDES:
            for item in arrivals[side]:
                self.score_arrivals(side, item, now)
        self.rows += len(arrivals[LEFT]) + len(arrivals[RIGHT])

    def count_up(self, side: int, one: Watched, age: int) -> None:
        """Count a watched tuple up to an age."""
        mine = self.sides[side]
        lifetime = self.windows[side] + 1
        for bucket in range(self.buckets):
            first, following = (-(-b * lifetime // self.buckets) for b in (bucket, bucket + 1))
            ages = range(max(one.age + 1, first), min(age, following - 1) + 1)
            if ages:
                multiples = ages[-1] // self.step - (ages[0] - 1) // self.step
                ticks = float(self.step * multiples)
                self.share_out(mine.exposure, one, one.state, bucket, ticks * one.base)
        one.age = max(age, one.age)

    def share_out(self, cells: Any, one: Watched, state: int, bucket: int, amount: float) -> None:
        """Add an amount to the cells of a watched tuple's class and the next."""
        cells[one.group][state][bucket] += (1 - one.share) * amount
        if one.share > 0:
            cells[one.group + 1][state][bucket] += one.share * amount

    def match(self, side: int, other: Any, now: int) -> None:
        """Count what an opposite arrival matches."""
        mine = self.sides[side]
        if self.relation is None:
            meets = [x for x in reversed(mine.watched) if x.item.key == other.key]
        else:
            meets = [
                x
                for attribute, begin in self.relation.joined(other)
                for x in reversed(mine.watched)
                if x.item.key == attribute and x.item.ts >= begin
            ]
        for one in meets:
            age = now - one.item.ts
            self.count_up(side, one, age)
            if one.matched is None:
                one.matched = age
            earlier = int(one.matched < age)  # the first match was at an earlier instant
            self.share_out(mine.matches, one, earlier, self.bucket(side, age), 1.0)
            own = combine(self.combine, one.item.imp, one.item.imp)
            seen = combine(self.combine, one.item.imp, other.imp)
            mine.oo += own * own
            mine.of += own * one.free
            mine.ff += one.free * one.free
            mine.os += own * seen
            mine.fs += one.free * seen

    def places(self, key: int) -> list[int]:
        """Return the four cells in which a key may stand."""
        size = self.counters
        word = key & MASK64
        home = (((word ^ (word >> 32)) * GOLDEN) & MASK64) >> (64 - (size.bit_length() - 1))
        return [(home + i) % size for i in range(4)]

    def cell(self, key: int) -> Cell | None:
        """Return the cell of a key, if it has one."""
        for place in self.places(key):
            found = self.cells.get(place)
            if found is None or found.key == key:
                return found
        return None

    def cell_for(self, key: int, now: int) -> Cell | None:
        """Return the cell that an arrival of a key is counted in, if any."""
        places = self.places(key)
        for place in places:
            found = self.cells.setdefault(place, Cell(key))
            if found.key == key:
                return found
        oldest = min(places, key=lambda place: self.cells[place].last)
        if not self.cells[oldest].last < now - max(self.windows):
            return None
        fresh = self.cells[oldest] = Cell(key)
        return fresh

    def count(self, side: int, item: Any, now: int) -> None:
        """Count an arrival by its key, or by what its facts join it to, and by importance."""
        mine, x = self.sides[side], item.imp
        keys = [item.key]
        if self.relation is not None:
            of_own = self.cell_for(self.relation.code(side, item.key), now)
            if of_own is not None:
                of_own.last = now
            keys = [self.relation.code(1 - side, to) for to, _ in self.relation.joined(item)]
        for key in keys:
            cell = self.cell_for(key, now)
            if cell is None:
                continue
            if cell.c[side] > 0 and mine.number > 0:  # one's own first fact may have made c above 0
                mean = mine.importance / mine.number
                d = cell.u[side] - mean
                mine.xx += d * d
                mine.xy += d * (x - mean)
            cell.c[side] += 1
            cell.u[side] += 1 / min(cell.c[side], 16) * (x - cell.u[side])
            cell.last = now
        mine.number += 1
        mine.importance += x
        mine.bin_number[bin_of(x)] += 1
        mine.bin_importance[bin_of(x)] += x

    def base(self, opposite: int, c: int) -> float:
        """Return the relative rate of a key counted c times."""
        cells = list(self.cells.values())
        if self.relation is not None:
            cells = [cell for cell in cells if cell.key % 2 == 1 - opposite]  # of its own side
        many = float(len(cells))
        n = float(sum(cell.c[opposite] for cell in cells))
        q = float(sum(cell.c[opposite] ** 2 for cell in cells))
        spread = q * many - n * n
        weight = max(0.0, (spread - n * many) / spread) if spread > 0 else 0.0
        return weight * (c * many / n) + (1 - weight)

    def free(self, opposite: int, x: float, scale: float) -> float:
        """Return the expected importance with a random opposite importance."""
        theirs = self.sides[opposite]
        number, importance = theirs.below_number, theirs.below_importance
        n, total = number[-1], importance[-1]
        if n == 0:
            return combine(self.combine, x, x)
        if self.combine in {"sum", "product", "mean"}:
            return combine(self.combine, x, total / n * scale)
        if scale <= 0:
            return combine(self.combine, x, 0.0)
        y = x / scale
        b = bin_of(y)
        less, sum_less = number[b], importance[b]
        here, sum_here = number[b + 1] - number[b], importance[b + 1] - importance[b]
        if sum_here < y * here:
            less += here
            sum_less += sum_here
        if self.combine == "min":
            return scale * (sum_less + y * (n - less)) / n
        return scale * (y * less + (total - sum_less)) / n

    def score_arrivals(self, side: int, item: Any, now: int) -> None:
        """Give an arrival its value, and watch it if it is its turn."""
        mine, theirs, opposite = self.sides[side], self.sides[1 - side], 1 - side
        key = item.key if self.relation is None else self.relation.code(side, item.key)
        cell, x = self.cell(key), item.imp
        group, share, base, scale = 0, 0.0, 1.0, 1.0
        if cell is not None and cell.c[opposite] > 0:
            base = self.base(opposite, cell.c[opposite])
            group, share = class_of(base)
            mean = theirs.importance / theirs.number
            if mean > 0:
                scale = 1 + theirs.of_key * (cell.u[opposite] / mean - 1)
        factor = mine.factor[group]
        if share > 0:
            factor = (1 - share) * factor + share * mine.factor[group + 1]
        rate = base * factor
        free = self.free(opposite, x, scale)
        level = mine.importance / mine.number if self.waits_for == 32 else mine.level
        value = rate * (self.expected(mine, x, free) / level) if level > 0 else 0.0
        item.value = value if value < 1e300 else 1e300  # noqa: FURB136 - not a number too
        number = mine.arrived
        mine.arrived += 1
        if number % mine.stride == 0 and len(mine.watched) == self.sample:
            mine.stride *= 2
            for one in [x for x in mine.watched if x.number % mine.stride]:
                self.count_up(side, one, now - one.item.ts)
                mine.watched.remove(one)
        if number % mine.stride == 0:
            mine.watched.append(Watched(item, number, group, share, free, base))

    def expected(self, mine: OfSide, x: float, free: float) -> float:
        """Return the expected importance of an output."""
        return mine.of_own * combine(self.combine, x, x) + mine.of_free * free

    def renew(self) -> None:
        """Renew what is derived from the counts."""
        self.waits_for = self.rows + self.rows // 10 + 32
        for mine in self.sides:
            for b in range(1025):
                mine.below_number[b + 1] = mine.below_number[b] + mine.bin_number[b]
                mine.below_importance[b + 1] = mine.below_importance[b] + mine.bin_importance[b]
            self.fit(mine)
        for side in SIDES:
            mine, buckets = self.sides[side], self.buckets
            level = 0.0
            for number, importance in zip(mine.bin_number, mine.bin_importance, strict=True):
                if number > 0:
                    x = importance / number
                    free = self.free(1 - side, x, 1.0)
                    level += number * self.expected(mine, x, free)
            mine.level = level / mine.number if level > 0 else 0.0
            long = (self.windows[side] + 1) / buckets
            e = [[[one / long for one in row] for row in rows] for rows in mine.exposure]
            mine.factor, hazard = fit(mine.matches, e)
            mine.table = [[best_rate(hazard, s, b) for b in range(buckets)] for s in SIDES]

    def fit(self, mine: OfSide) -> None:
        """Fit `of_own`, `of_free` and `of_key`."""
        mine.of_own, mine.of_free, mine.of_key = 0.0, 1.0, 0.0
        det = mine.oo * mine.ff - mine.of * mine.of
        if det > 1e-9 * (mine.oo * mine.ff):
            a = (mine.os * mine.ff - mine.fs * mine.of) / det
            b = (mine.fs * mine.oo - mine.os * mine.of) / det
            if a > 0:
                mine.of_own, mine.of_free = (a, b) if b > 0 else (1.0, 0.0)
        if mine.xx > 0 and mine.xy > 0:
            mine.of_key = min(1.0, mine.xy / mine.xx)


def total(numbers: list[float]) -> float:
    """Add up in order (`sum` does it in another)."""
    found = 0.0
    for number in numbers:
        found += number
    return found
