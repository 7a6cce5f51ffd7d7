"""The oracle of `yield`, written from docs/yield.md: dictionaries and lists, every sum as it says.

It imports nothing of ours. `Estimate` follows the instants of a lane; `naive.replay` asks it.
"""

import math
from typing import Any

LEFT, RIGHT = 0, 1
SIDES = (LEFT, RIGHT)
GOLDEN = 0x9E3779B97F4A7C15
MASK64 = (1 << 64) - 1


def combine(name: str, a: float, b: float) -> float:
    """Return the importance of an output."""
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


class Cell:
    """Counts of one key."""

    def __init__(self, key: int) -> None:
        self.key, self.last = key, 0
        self.c, self.u = [0, 0], [0.0, 0.0]


class Watched:
    """A watched tuple."""

    def __init__(
        self, item: Any, number: int, group: int, free: float, rate: float, base: float
    ) -> None:
        self.item, self.number, self.group = item, number, group
        self.free, self.rate, self.base = free, rate, base
        self.state, self.age = 0, 0


class OfSide:
    """What is remembered of one side."""

    def __init__(self, buckets: int) -> None:
        self.number, self.importance, self.xx, self.xy = 0, 0.0, 0.0, 0.0
        self.bin_number, self.bin_importance = [0] * 1025, [0.0] * 1025
        self.below_number, self.below_importance = [0] * 1026, [0.0] * 1026
        self.oo = self.of = self.ff = self.os = self.fs = 0.0
        self.of_own, self.of_free, self.of_key = 0.0, 1.0, 0.0
        self.factor, self.level = [1.0, 1.0], 0.0
        self.watched: list[Watched] = []
        self.arrived, self.stride = 0, 1
        self.matches = [[0.0] * buckets for _ in SIDES]
        self.exposure = [[0.0] * buckets for _ in SIDES]
        self.matched, self.exposed = [0.0, 0.0], [0.0, 0.0]
        self.table = [[1.0] * buckets for _ in SIDES]


class Estimate:
    """The estimate of a lane, instant by instant."""

    def __init__(self, windows: tuple[int, int], combine_name: str, params: dict[str, Any]) -> None:
        self.windows, self.combine = windows, combine_name
        self.cells: dict[int, Cell] = {}
        self.counters = power_of_two(params.get("counters", 65536))
        self.sample = power_of_two(params.get("sample", 1024))
        self.buckets = math.ceil(params.get("buckets", 32))
        self.sides = (OfSide(self.buckets), OfSide(self.buckets))
        self.rows, self.waits_for = 0, 32
        self.last_table: Any = None

    def bucket(self, side: int, age: int) -> int:
        """Return the bucket of an age."""
        return age * self.buckets // (self.windows[side] + 1)

    def best(self, side: int, state: int, age: int) -> float:
        """Return the best rate of a tuple of this state and age now."""
        return self.sides[side].table[state][self.bucket(side, age)]

    def arrive(self, now: int, arrivals: list[list[Any]]) -> None:
        """Go through an instant; gives every arrival its `value`."""
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
                self.appraise(side, item, now)
        self.rows += len(arrivals[LEFT]) + len(arrivals[RIGHT])

    def count_up(self, side: int, one: Watched, age: int) -> None:
        """Count a watched tuple up to an age."""
        mine = self.sides[side]
        lifetime = self.windows[side] + 1
        for bucket in range(self.buckets):
            first, following = (-(-b * lifetime // self.buckets) for b in (bucket, bucket + 1))
            ticks = min(age, following - 1) - max(one.age + 1, first) + 1
            if ticks > 0:
                mine.exposure[one.state][bucket] += float(ticks) * one.rate
                mine.exposed[one.group] += float(ticks) * one.base
        one.age = max(age, one.age)

    def match(self, side: int, other: Any, now: int) -> None:
        """Count what an opposite arrival matches."""
        mine = self.sides[side]
        for one in reversed([x for x in mine.watched if x.item.key == other.key]):
            age = now - one.item.ts
            self.count_up(side, one, age)
            mine.matches[one.state][self.bucket(side, age)] += 1
            mine.matched[one.group] += 1
            one.state = 1
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
        """Count an arrival by its key and importance."""
        mine, x = self.sides[side], item.imp
        cell = self.cell_for(item.key, now)
        if cell is not None:
            if cell.c[side] > 0:
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
        cells = self.cells.values()
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

    def appraise(self, side: int, item: Any, now: int) -> None:
        """Give an arrival its value, and watch it if it is its turn."""
        mine, theirs, opposite = self.sides[side], self.sides[1 - side], 1 - side
        cell, x = self.cell(item.key), item.imp
        group = 0 if cell is None or cell.c[opposite] == 0 else 1
        base, scale = 1.0, 1.0
        if cell is not None and group == 1:
            base = self.base(opposite, cell.c[opposite])
            mean = theirs.importance / theirs.number
            if mean > 0:
                scale = 1 + theirs.of_key * (cell.u[opposite] / mean - 1)
        rate = base * mine.factor[group]
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
            mine.watched.append(Watched(item, number, group, free, rate, base))

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
            mine.factor = shrink(mine.matched, mine.exposed, None)[1]
            long = (self.windows[side] + 1) / buckets
            m = mine.matches
            e = [[one / long for one in row] for row in mine.exposure]
            f, s1 = shrink([total(row) for row in m], [total(row) for row in e], None)
            f2, s2 = shrink(
                [total([m[s][b] for s in SIDES]) for b in range(buckets)],
                [total([e[s][b] * (f * s1[s]) for s in SIDES]) for b in range(buckets)],
                buckets,
            )
            f *= f2
            cells = [(s, b) for s in SIDES for b in range(buckets)]
            f3, s3 = shrink(
                [m[s][b] for s, b in cells],
                [e[s][b] * (f * s1[s] * s2[b]) for s, b in cells],
                buckets,
            )
            f *= f3
            hazard = [
                [f * s1[s] * s2[b] * s3[s * buckets + b] for b in range(buckets)] for s in SIDES
            ]
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
