"""The independent oracle: samples of a join, their weights and what is estimated from them.

It imports nothing of ours and nothing beyond the standard library. At every instant everything is
walked again over plain lists, thresholds are sought among all evictions so far, and variances are
double sums over the outputs of a cluster.
Sources: the contract (semantics.md, sections 1, 2 and 7); P5 4.2 and 4.3, figure 4; priority
sampling (Duffield, Lund, Thorup, J. ACM 2007) with adaptive thresholds (Ting, 2022).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from naive import combine, philox4x32

LEFT, RIGHT, SIMULTANEOUS = 0, 1, 2
SIDES = (LEFT, RIGHT)
METHODS = ("eq-cluster", "pps-cluster", "bottom-k", "uniform")
CLUSTER_PURPOSE = 4
GEOMETRIC_PURPOSE = 5
MASK32 = 0xFFFFFFFF

Tuple = tuple[int, Any, float, int]  # (ts, key, importance, row); key None is null
Row = tuple[int, int, int, float, float, int]  # what `Sample.rows` holds
Span = tuple[int, int]  # first and last ts, both within
Key = tuple[int | None, int | None, Any]  # begin and end of a window, and a group
Event = tuple[int, float]  # of bottom-k: the step of an arrival and the priority it evicted
LEFT_ROW, RIGHT_ROW, TS, IMPORTANCE, WEIGHT, STORED = range(6)


class Total(NamedTuple):
    """A Horvitz-Thompson estimate of a total and the estimate of its variance."""

    estimate: float
    variance: float


class Sample(NamedTuple):
    """What `naive_sample` returns.

    Attributes
    ----------
    rows : list of (left_row, right_row, ts, importance, weight, stored)
        Sorted by (ts, left_row, right_row); stored is 0 (left), 1 (right) or 2 (simultaneous).
        Method uniform has no 2: there a simultaneous pair is a probe output of its left tuple.
    memory : list of (t, left, right)
        Tuples held at the end of every instant.
    peaks : (int, int)
        Most tuples held at once: after any single admission, not only at the end of an instant.
    held : (int, int)
        Ticks held, summed over tuples; none is held after the last ts of both streams. A tuple that
        leaves at t (expired, evicted, discarded) was held at ts, ..., t - 1.
    held_to_expiry : (int, int)
        The same without the cut at the last ts.
    outputs, importance : Total
        Estimates of their number and of the sum of their importance.
    clusters : int
        Stored tuples with at least one output in `rows`.
    lost : list of (int, int)
        Of every tuple that was not retained or was evicted, the first and last ticks at which it
        could still have made outputs. Method uniform: not kept.
    """

    rows: list[Row]
    memory: list[tuple[int, int, int]]
    peaks: tuple[int, int]
    held: tuple[int, int]
    held_to_expiry: tuple[int, int]
    outputs: Total
    importance: Total
    clusters: int
    lost: list[Span]


@dataclass(eq=False)
class Item:
    """One stream tuple and what its method remembers of it."""

    side: int
    ts: int
    key: Any
    imp: float
    row: int
    measure: float
    priority: float = 0.0  # of bottom-k
    step: int = 0  # of bottom-k: its place among the arrivals of its side
    num: int = 0  # of uniform
    next: int = 0  # of uniform
    draws: int = 0  # of uniform


@dataclass
class Memory:
    """The tuples held of both sides, and for how long they and their predecessors were."""

    windows: tuple[int, int]
    last: int
    items: tuple[list[Item], list[Item]] = field(default_factory=lambda: ([], []))
    peaks: list[int] = field(default_factory=lambda: [0, 0])
    held: list[int] = field(default_factory=lambda: [0, 0])
    held_to_expiry: list[int] = field(default_factory=lambda: [0, 0])
    lost: list[Span] = field(default_factory=list)

    def lose(self, item: Item, t: int) -> None:
        """Note that a tuple is not there after t."""
        last = item.ts + self.windows[item.side]
        if last > t:
            self.lost.append((t + 1, last))

    def enter(self, item: Item) -> None:
        """Hold one more tuple."""
        self.items[item.side].append(item)
        self.peaks[item.side] = max(self.peaks[item.side], len(self.items[item.side]))

    def leave(self, item: Item, t: int) -> None:
        """Hold a tuple no longer, from t on."""
        self.items[item.side].remove(item)
        self.held[item.side] += min(t, self.last + 1) - item.ts
        self.held_to_expiry[item.side] += t - item.ts

    def expire(self, t: float) -> None:
        """Drop what has expired by t (semantics 1)."""
        for side in SIDES:
            for item in list(self.items[side]):
                if t - item.ts > self.windows[side]:
                    self.leave(item, item.ts + self.windows[side] + 1)


def naive_uniform(seed: int, purpose: int, stream: int, row: int, draw: int) -> float:
    """Return a 53-bit uniform in [0, 1): counter words purpose, stream and high row, row, draw."""
    words = (purpose, stream | (row >> 32) << 8, row & MASK32, draw)
    x0, x1, _, _ = philox4x32(words, (seed & MASK32, (seed >> 32) & MASK32))
    return ((x0 >> 5) * 2**26 + (x1 >> 6)) / 2**53


def naive_geometric(u: float, p: float) -> int:
    """Return the number of coin flips of bias p up to the first success (P5 4.2.1)."""
    return 1 if p >= 1.0 else 1 + math.floor(math.log1p(-u) / math.log1p(-p))


def naive_sample(
    method: str,
    left: Sequence[Tuple],
    right: Sequence[Tuple],
    windows: tuple[int, int],
    measures: tuple[Sequence[float], Sequence[float]],
    *,
    p: float = 1.0,
    budget: tuple[int | None, int | None] = (None, None),
    combine_name: str = "min",
    start_ts: int | None = None,
    seed: int = 0,
) -> Sample:
    """Sample the join of one lane.

    Parameters
    ----------
    method : str
        One of METHODS.
    left, right : sequence of (ts, key, importance, row)
        In any order. Rows with a null key take no part.
    windows : (int, int)
        Closed windows of left and right, in ticks.
    measures : (sequence of float, sequence of float)
        One number a tuple, in the order of `left` and `right`. eq-cluster and pps-cluster: its
        inclusion probability; bottom-k: its size; uniform: n(x), the most matches it may have.
    p : float
        The sampling fraction of method uniform.
    budget : (int or None, int or None)
        The most tuples that bottom-k holds of each side; None: no limit.
    combine_name : str
        How members' importance is combined.
    start_ts : int, optional
        Outputs before it are neither returned nor counted.
    seed : int
        Of all draws.

    Returns
    -------
    Sample
    """
    streams = _streams(left, right, measures)
    last = max((ts for ts, _, _, _ in [*left, *right]), default=0)
    memory = Memory(windows, last)
    by_instant: list[tuple[int, int, int]] = []
    found: list[Row] = []
    events: tuple[list[Event], list[Event]] = ([], [])  # of bottom-k
    instants: dict[int, list[list[Item]]] = {}
    for stream in streams:
        for item in stream:
            instants.setdefault(item.ts, [[], []])[item.side].append(item)
    for t in sorted(instants):
        memory.expire(t)
        now = instants[t]
        if method == "uniform":
            found += _uniform(memory, now, p, combine_name, seed)
        else:
            found += _clusters(memory, now, (method, budget, events), combine_name, seed)
        by_instant.append((t, len(memory.items[LEFT]), len(memory.items[RIGHT])))
    memory.expire(math.inf)
    rows = sorted((row for row in found if start_ts is None or row[TS] >= start_ts),
                  key=lambda row: (row[TS], row[LEFT_ROW], row[RIGHT_ROW]))  # fmt: skip
    independent = method == "uniform"
    return Sample(
        rows,
        by_instant,
        (memory.peaks[LEFT], memory.peaks[RIGHT]),
        (memory.held[LEFT], memory.held[RIGHT]),
        (memory.held_to_expiry[LEFT], memory.held_to_expiry[RIGHT]),
        naive_total(rows, [1.0] * len(rows), independent=independent),
        naive_total(rows, [row[IMPORTANCE] for row in rows], independent=independent),
        len({cluster_of(row) for row in rows if row[STORED] != SIMULTANEOUS}),
        memory.lost,
    )


def _streams(
    left: Sequence[Tuple], right: Sequence[Tuple], measures: tuple[Sequence[float], Sequence[float]]
) -> tuple[list[Item], list[Item]]:
    """Return the tuples of both sides that take part, with the steps of their sides."""
    streams: tuple[list[Item], list[Item]] = ([], [])
    for side, stream in enumerate((left, right)):
        for (ts, key, imp, row), measure in zip(stream, measures[side], strict=True):
            if key is not None:
                streams[side].append(Item(side, ts, key, imp, row, float(measure)))
        streams[side].sort(key=lambda item: (item.ts, item.row))
        for step, item in enumerate(streams[side]):
            item.step = step
    return streams


def _output(combine_name: str, a: Item, b: Item, weight: float, stored: int) -> Row:
    """Return the output of two tuples, in either order."""
    first, second = (a, b) if a.side == LEFT else (b, a)
    importance = combine(combine_name, first.imp, second.imp)
    return (first.row, second.row, max(a.ts, b.ts), importance, weight, stored)


def _threshold(events: list[Event], item: Item) -> float:
    """Return the greatest priority evicted since the arrival of a tuple, its own step included."""
    return max((evicted for step, evicted in events if step >= item.step), default=0.0)


def _inclusion(method: str, events: list[Event], item: Item) -> float:
    """Return the probability that a tuple that is held now would be held now."""
    if method != "bottom-k":
        return item.measure
    threshold = _threshold(events, item)
    return 1.0 if threshold == 0.0 else min(1.0, item.measure / threshold)


def _admit(memory: Memory, item: Item, method: str, limit: int | None, seed: int) -> Event | None:
    """Admit one arrival or not; return the threshold event if something was evicted."""
    u = naive_uniform(seed, CLUSTER_PURPOSE, item.side, item.row, 0)
    if method != "bottom-k":
        if u < item.measure:
            memory.enter(item)
        else:
            memory.lose(item, item.ts)
        return None
    if item.measure == 0.0:
        memory.lose(item, item.ts)
        return None
    item.priority = item.measure / (1.0 - u)
    residents = memory.items[item.side]
    if limit is None or len(residents) < limit:
        memory.enter(item)
        return None
    least = min([*residents, item], key=lambda held: (held.priority, held.ts, held.row))
    memory.lose(least, item.ts)
    if least is not item:
        memory.leave(least, item.ts)
        memory.enter(item)
    return item.step, least.priority


def _clusters(
    memory: Memory,
    arrivals: list[list[Item]],
    setting: tuple[str, tuple[int | None, int | None], tuple[list[Event], list[Event]]],
    combine_name: str,
    seed: int,
) -> list[Row]:
    """One instant of the cluster methods: simultaneous pairs, probes, then admissions."""
    method, budget, events = setting
    found = [
        _output(combine_name, a, b, 1.0, SIMULTANEOUS)
        for a in arrivals[LEFT]
        for b in arrivals[RIGHT]
        if a.key == b.key
    ]
    for side in SIDES:
        for stored in memory.items[side]:
            for probe in arrivals[1 - side]:
                if probe.key == stored.key:
                    weight = 1.0 / _inclusion(method, events[side], stored)
                    found.append(_output(combine_name, stored, probe, weight, side))
    for side in SIDES:
        for item in arrivals[side]:
            event = _admit(memory, item, method, budget[side], seed)
            if event is not None:
                events[side].append(event)
    return found


def _decide_next_join(item: Item, p: float, seed: int) -> bool:
    """DecideNextJoin of P5 figure 4; tell whether the tuple is kept."""
    u = naive_uniform(seed, GEOMETRIC_PURPOSE, item.side, item.row, item.draws)
    item.draws += 1
    item.next = item.num + naive_geometric(u, p)
    return item.next <= item.measure


def _uniform(
    memory: Memory,
    arrivals: list[list[Item]],
    p: float,
    combine_name: str,
    seed: int,
) -> list[Row]:
    """One instant of UNIFORM (P5 figure 4), one arrival after another, left before right."""
    found = []
    for item in [*arrivals[LEFT], *arrivals[RIGHT]]:
        for stored in list(memory.items[1 - item.side]):
            if stored.key != item.key:
                continue
            stored.num += 1
            if stored.num == stored.next:
                found.append(_output(combine_name, stored, item, 1.0 / p, stored.side))
                if not _decide_next_join(stored, p, seed):
                    memory.leave(stored, item.ts)
        if _decide_next_join(item, p, seed):
            memory.enter(item)
    return found


def naive_exact(
    left: Sequence[Tuple],
    right: Sequence[Tuple],
    windows: tuple[int, int],
    combine_name: str = "min",
    start_ts: int | None = None,
) -> list[Row]:
    """Return the whole join, as rows of a sample that is certain."""
    ones = ([1.0] * len(left), [1.0] * len(right))
    return naive_sample("eq-cluster", left, right, windows, ones,
                        combine_name=combine_name, start_ts=start_ts).rows  # fmt: skip


# --- What is estimated -------------------------------------------------------------------------


def cluster_of(row: Row) -> tuple[int, int]:
    """Return side and row of the stored tuple of an output."""
    left_row, right_row, _, _, _, stored = row
    return stored, right_row if stored == RIGHT else left_row


def naive_clusters(rows: Sequence[Row], *, independent: bool) -> list[list[int]]:
    """Return the outputs of every cluster in time order, as positions in `rows`.

    A simultaneous output is certain and of no cluster; `independent`: each output is a cluster.
    """
    members: dict[Any, list[int]] = {}
    for j, row in enumerate(rows):
        if independent:
            members[j] = [j]
        elif row[STORED] != SIMULTANEOUS:
            members.setdefault(cluster_of(row), []).append(j)
    return [sorted(cluster, key=lambda j: rows[j][TS]) for cluster in members.values()]


def naive_cluster_covariances(
    rows: Sequence[Row], a: Sequence[float], b: Sequence[float], *, independent: bool
) -> list[float]:
    """Return V_ab of every cluster, by the double sum over its outputs in time order."""
    found = []
    for cluster in naive_clusters(rows, independent=independent):
        terms = [
            a[j]
            * b[k]
            * (rows[cluster[min(x, y)]][WEIGHT] - 1.0)
            * rows[cluster[max(x, y)]][WEIGHT]
            for x, j in enumerate(cluster)
            for y, k in enumerate(cluster)
        ]
        found.append(math.fsum(terms))
    return found


def naive_total(rows: Sequence[Row], values: Sequence[float], *, independent: bool) -> Total:
    """Return the Horvitz-Thompson estimate of a total and of its variance."""
    estimate = math.fsum(row[WEIGHT] * y for row, y in zip(rows, values, strict=True))
    variances = naive_cluster_covariances(rows, values, values, independent=independent)
    return Total(estimate, math.fsum(variances))


class Cell(NamedTuple):
    """One window and group of an aggregate.

    Attributes
    ----------
    estimate : float or None
        None: the average of nothing.
    variance : float
    degrees : float or None
        Satterthwaite's, each cluster's variance having one; None where the variance is 0.
    rows, clusters : int
        Outputs whose value is not null, and the stored tuples they are of (method uniform: rows).
    """

    estimate: float | None
    variance: float
    degrees: float | None
    rows: int
    clusters: int


def naive_windows(every: int, over: int, span: Span) -> list[Span]:
    """Return [begin, end) of all windows [k * every, k * every + over) that meet the span."""
    first, last = span
    ks = range((first - over) // every - 1, last // every + 2)
    windows = [(k * every, k * every + over) for k in ks]
    return [(begin, end) for begin, end in windows if begin <= last and end > first]


def naive_aggregate(
    func: str,
    rows: Sequence[Row],
    values: Sequence[float | None],
    groups: Sequence[Any] | None = None,
    *,
    every: int | None = None,
    over: int | None = None,
    span: Span | None = None,
    independent: bool = False,
) -> dict[Key, Cell]:
    """Estimate sums, counts or averages in windows and groups.

    Parameters
    ----------
    func : {"sum", "count", "avg"}
    rows : sequence of Row
        A sample (or, with weights 1, the whole join).
    values : sequence of float or None
        The aggregated value of each row; null is skipped. count(*): any value but None.
    groups : sequence, optional
        The group of each row (null is a group); None: no grouping.
    every, over : int, optional
        Ticks between windows, and of a window (default `every`). Without `every`: one window.
    span : (int, int)
        The first and last ts that an output may have; needed with `every`.
    independent : bool
        The rows are of method uniform: each is a cluster of its own.

    Returns
    -------
    dict
        (begin, end, group) -> Cell; begin and end are None without `every`. Without groups all
        windows that meet the span are there (group None), with groups those cells with a row.
    """
    cells = naive_cells(rows, values, groups, every=every, over=over, span=span)
    return {key: _cell(func, pairs, independent=independent) for key, pairs in cells.items()}


def naive_cells(
    rows: Sequence[Row],
    values: Sequence[float | None],
    groups: Sequence[Any] | None = None,
    *,
    every: int | None = None,
    over: int | None = None,
    span: Span | None = None,
) -> dict[Key, list[tuple[Row, float]]]:
    """Return the outputs of every cell of `naive_aggregate` that have a value, with it."""
    windows: Sequence[tuple[int | None, int | None]] = [(None, None)]
    if every is not None and span is not None:
        windows = naive_windows(every, over or every, span)
    cells: dict[Key, list[tuple[Row, float]]] = {}
    for begin, end in windows:
        inside = [
            j
            for j, row in enumerate(rows)
            if begin is None or end is None or begin <= row[TS] < end
        ]
        present = {groups[j] for j in inside} if groups is not None else {None}
        for group in present:
            members = [j for j in inside if groups is None or groups[j] == group]
            cells[begin, end, group] = [
                (rows[j], value) for j in members if (value := values[j]) is not None
            ]
    return cells


def _cell(func: str, pairs: list[tuple[Row, float]], *, independent: bool) -> Cell:
    """Estimate one window and group from its outputs that have a value."""
    rows = [row for row, _ in pairs]
    ones = [1.0] * len(rows)
    y = ones if func == "count" else [value for _, value in pairs]
    estimate, _ = naive_total(rows, y, independent=independent)
    number, _ = naive_total(rows, ones, independent=independent)
    scale = 1.0
    if func == "avg" and rows:
        estimate /= number
        y, scale = [value - estimate for value in y], number**2  # the linearised residual
    variances = naive_cluster_covariances(rows, y, y, independent=independent)
    squares = math.fsum(v * v for v in variances)
    return Cell(
        None if func == "avg" and not rows else estimate,
        math.fsum(variances) / scale,
        math.fsum(variances) ** 2 / squares if squares > 0.0 else None,
        len(rows),
        len(variances),
    )


# --- Measures: inclusion probabilities, sizes, most matches ------------------------------------


def naive_span(left: Sequence[Tuple], right: Sequence[Tuple]) -> Span:
    """Return the first and the last ts of both streams."""
    times = [ts for ts, _, _, _ in [*left, *right]]
    return min(times), max(times)


def naive_lifetimes(stream: Sequence[Tuple], window: int, span: Span) -> list[int]:
    """Return the ticks for which each tuple is live, none after the last ts; a null key never."""
    return [0 if key is None else min(ts + window, span[1]) - ts + 1 for ts, key, _, _ in stream]


def naive_mean_live(stream: Sequence[Tuple], window: int, span: Span) -> float:
    """Return Nbar: how many tuples of a side are live, a mean over the span's ticks."""
    return sum(naive_lifetimes(stream, window, span)) / (span[1] - span[0] + 1)


def naive_peak(stream: Sequence[Tuple], window: int) -> int:
    """Return the most tuples of a side that are live at once."""
    live = [ts for ts, key, _, _ in stream if key is not None]
    return max((sum(0 <= t - ts <= window for ts in live) for t in live), default=0)


def naive_key_counts(stream: Sequence[Tuple]) -> dict[Any, int]:
    """Return how often each key that is not null occurs."""
    counts: dict[Any, int] = {}
    for _, key, _, _ in stream:
        if key is not None:
            counts[key] = counts.get(key, 0) + 1
    return counts


def naive_sizes(
    rule: str,
    own: Sequence[Tuple],
    other: Sequence[Tuple],
    profile: dict[Any, float] | None = None,
    values: Sequence[Sequence[float | None]] = (),
) -> list[float]:
    """Return size(x) of every tuple of a side.

    Parameters
    ----------
    rule : {"matches", "values", "weighted", "equal"}
    own, other : sequence of Tuple
        The side and the side opposite to it, all lanes of the group.
    values : sequence of sequence of float or None
        For "values": columns of the side that aggregates add up.
    profile : dict, optional
        Key -> count on the other side as a profile has it; None: counted in `other`.
    """
    if rule == "equal":
        return [1.0] * len(own)
    counts = naive_key_counts(other)
    sizes = [
        float(counts.get(key, 0)) if profile is None else profile.get(key, 0.0) + 0.5
        for _, key, _, _ in own
    ]
    if rule == "matches":
        return sizes
    if rule == "values":
        for i in range(len(own)):
            large = []
            for column in values:
                some = [abs(v) for v in column if v is not None and math.isfinite(v)]
                mean = math.fsum(some) / len(some) if some else 0.0
                if mean > 0:
                    v = column[i]
                    large.append(abs(v) / mean if v is not None and math.isfinite(v) else 1.0)
            if large:
                sizes[i] *= 0.6 + 0.4 * math.fsum(large) / len(large)
        return sizes
    importances = [imp for _, key, imp, _ in own if key is not None]
    mean = math.fsum(importances) / len(importances) if importances else 0.0
    floor = 0.1 * mean or 1.0  # where all importance is 0, matches alone tell tuples apart
    return [size * (imp + floor) for size, (_, _, imp, _) in zip(sizes, own, strict=True)]


def naive_eq_fraction(stream: Sequence[Tuple], window: int, span: Span, memory: float) -> float:
    """Return p of EQ-CLUSTER on one side: its memory over the mean live tuples (P5 4.3.1)."""
    live = naive_mean_live(stream, window, span)
    return 1.0 if live <= memory else memory / live


def naive_inclusion(sizes: Sequence[float], scale: float) -> list[float]:
    """Return p_x of PPS-CLUSTER: min(1, scale * size), 0 where the size is 0."""
    return [min(1.0, scale * size) if size > 0.0 else 0.0 for size in sizes]


def naive_pps_scale(
    stream: Sequence[Tuple], sizes: Sequence[float], window: int, span: Span, memory: float
) -> float:
    """Return c of PPS-CLUSTER on one side, by bisection on the expected use (P5 footnote 2).

    Infinite if all tuples of positive size fit.
    """
    lifetimes = naive_lifetimes(stream, window, span)
    live = naive_mean_live(stream, window, span)

    def use(scale: float) -> float:
        probabilities = naive_inclusion(sizes, scale)
        mean = sum(p * w for p, w in zip(probabilities, lifetimes, strict=True)) / sum(lifetimes)
        return mean * live

    return _greatest_scale(use, memory) if sum(lifetimes) else math.inf


def naive_pps_fraction_scale(sizes: Sequence[float], fraction: float) -> float:
    """Return c with which the mean inclusion over tuples is a fraction; infinite if none is."""
    return _greatest_scale(lambda c: math.fsum(naive_inclusion(sizes, c)) / len(sizes), fraction)


def _greatest_scale(use: Callable[[float], float], limit: float) -> float:
    """Return the greatest scale whose use is within a limit, by bisection."""
    if use(math.inf) <= limit:
        return math.inf
    low, high = 0.0, 1.0
    while use(high) <= limit:
        high *= 2.0
    for _ in range(2000):
        middle = (low + high) / 2.0
        if middle in {low, high}:
            break
        low, high = (middle, high) if use(middle) <= limit else (low, middle)
    return low


def naive_match_counts(
    side: int, own: Sequence[Tuple], other: Sequence[Tuple], window: int
) -> list[int]:
    """Return how many probe outputs UNIFORM sees of each tuple, simultaneous ones the left's."""
    soonest = 0 if side == LEFT else 1
    return [
        sum(1 for s, v, _, _ in other if v == key and soonest <= s - ts <= window)
        if key is not None
        else 0
        for ts, key, _, _ in own
    ]


def naive_bound_counts(
    side: int, own: Sequence[Tuple], other: Sequence[Tuple], window: int
) -> list[int]:
    """Return n(x) of `--count bound`: the most matches of any tuple of the same side and key."""
    counts = naive_match_counts(side, own, other, window)
    return [
        max(n for n, (_, v, _, _) in zip(counts, own, strict=True) if v == key)
        for _, key, _, _ in own
    ]


def naive_frequency_counts(
    own: Sequence[Tuple], other: Sequence[Tuple], window: int, span: Span
) -> list[float]:
    """Return n(x) of `--count frequency` (P5 equation 1): W c_other(v) / T, a real number."""
    counts = naive_key_counts(other)
    ticks = span[1] - span[0] + 1
    return [window * counts.get(key, 0) / ticks for _, key, _, _ in own]


def naive_age_counts(own: Sequence[Tuple], other: Sequence[Tuple], window: int) -> list[float]:
    """Return n(x) of `--count age`: the mean number of probe outputs of a tuple (P5 2.3)."""
    joined = [row for row in own if row[1] is not None]
    mean = sum(naive_match_counts(RIGHT, joined, other, window)) / max(1, len(joined))
    return [mean] * len(own)
