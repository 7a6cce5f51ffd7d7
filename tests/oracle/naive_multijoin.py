"""The oracle of multi-way sliding-window joins: the definition, and P3's methods step by step.

It imports nothing of ours and nothing beyond the standard library. Stores are plain lists that are
scanned whole; what is counted is counted where it happens.
Sources: the contract (semantics.md, sections 1 and 6); P3 3 and 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

EAGER = ("naive-nlj", "eager-nlj", "eager-hash", "hybrid")
LAZY = ("lazy-nlj", "general-lazy-nlj", "lazy-hash")
METHODS = EAGER + LAZY
HASHED = ("eager-hash", "lazy-hash", "hybrid")
COMBINES = ("min", "sum", "product", "max", "mean")

Window = tuple[str, int]  # ("ticks", W) or ("rows", C)
Meets = Callable[[Any, Any], bool]
Output = tuple[tuple[int, ...], int, float]


class Tuple(NamedTuple):
    """One stream tuple; `value` is a code, a float, a tuple of floats or {item: weight}."""

    ts: int
    row: int
    value: Any
    importance: float = 1.0


class Member(NamedTuple):
    """A tuple in its stream.

    Attributes
    ----------
    ts, stream, row : int
        Its place in the arrival order.
    value, importance : Any, float
    seen : tuple of int
        Of every stream the number of tuples that arrived before it; of its own stream that is
        P3's counter (`cnt`, from 0).
    """

    ts: int
    stream: int
    row: int
    value: Any
    importance: float
    seen: tuple[int, ...]


class Run(NamedTuple):
    """What `run` returns.

    Attributes
    ----------
    outputs : list of (rows, ts, importance)
        As `exact` returns them.
    comparisons, visits, insertions, expirations, accesses : int
    peak : int
        Most tuples in all stores after an insertion.
    delays : list of int
        Of every output, in their order, the time at which it is found less its ts.
    """

    outputs: list[Output]
    comparisons: int
    visits: int
    insertions: int
    expirations: int
    accesses: int
    peak: int
    delays: list[int]


def equi() -> Meets:
    """Two codes are equal."""
    return lambda a, b: bool(a == b)


def band(eps: float) -> Meets:
    """Two numbers differ by `eps` at most."""
    return lambda a, b: abs(a - b) <= eps


def distance(r: float) -> Meets:
    """Two vectors are at most `r` apart."""

    def meets(a: Sequence[float], b: Sequence[float]) -> bool:
        s = 0.0
        for x, y in zip(a, b, strict=True):
            s = s + (x - y) * (x - y)
        return s <= r * r

    return meets


def inner(t: float) -> Meets:
    """Two sparse vectors {item: weight} have an inner product of `t` at least."""

    def meets(a: dict[int, float], b: dict[int, float]) -> bool:
        s = 0.0
        for item in sorted(a.keys() & b.keys()):
            s = s + a[item] * b[item]
        return s >= t

    return meets


def combine_importance(name: str, importances: Sequence[float]) -> float:
    """Fold the members' importance in the order of the streams, left to right."""
    folded = importances[0]
    for x in importances[1:]:
        steps = {"min": min(folded, x), "max": max(folded, x), "product": folded * x}
        folded = steps.get(name, folded + x)
    return folded / len(importances) if name == "mean" else folded


def arrivals_of(streams: Sequence[Sequence[Tuple]]) -> list[Member]:
    """Return all tuples in arrival order: (ts, stream, row)."""
    everything = [(t.ts, i, t.row, t) for i, stream in enumerate(streams) for t in stream]
    seen = [0] * len(streams)
    arrivals = []
    for ts, i, row, t in sorted(everything, key=lambda each: each[:3]):
        arrivals.append(Member(ts, i, row, t.value, t.importance, tuple(seen)))
        seen[i] += 1
    return arrivals


def arrival(u: Member) -> tuple[int, int, int]:
    """Return the place of `u` in the arrival order."""
    return u.ts, u.stream, u.row


def output_of(members: Sequence[Member], combine: str) -> Output:
    """Return the output that one tuple of every stream makes, found by its latest member."""
    ordered = sorted(members, key=lambda u: u.stream)
    importance = combine_importance(combine, [u.importance for u in ordered])
    return tuple(u.row for u in ordered), max(u.ts for u in ordered), importance


def pair_meets(meets: Meets, u: Member, v: Member) -> bool:
    """Evaluate the predicate; it is given the tuple of the stream of lesser number first."""
    a, b = (u, v) if u.stream < v.stream else (v, u)
    return meets(a.value, b.value)


def _reach_by_definition(stream: list[Member], window: Window, k: Member) -> set[int]:
    """Return the rows of a stream's tuples in reach of k, a tuple of another stream."""
    earlier = [u for u in stream if arrival(u) < arrival(k)]
    kind, size = window
    if kind == "rows":
        return {u.row for u in earlier[max(0, len(earlier) - size) :]}
    return {u.row for u in earlier if 0 <= k.ts - u.ts <= size}


def exact(
    streams: Sequence[Sequence[Tuple]],
    windows: Sequence[Window],
    meets: Meets,
    graph: str,
    combine: str = "min",
    start_ts: int | None = None,
) -> list[Output]:
    """All outputs of the exact join: every combination of one tuple a stream is tried.

    Parameters
    ----------
    streams : sequence of lists of Tuple
        In any order.
    windows : sequence of ("ticks", W) or ("rows", C)
        Closed windows in ticks, or the last C tuples.
    meets : callable
        meets(a_value, b_value), a of the stream of lesser number.
    graph : {"clique", "star"}
        Between which members the predicate holds: all, or the latest and each other.
    combine : {"min", "sum", "product", "max", "mean"}
    start_ts : int, optional
        Outputs of lesser ts are left out.

    Returns
    -------
    list of (rows, ts, importance)
        Sorted by (ts, rows); rows in the order of the streams.
    """
    arrivals = arrivals_of(streams)
    parts = [[u for u in arrivals if u.stream == i] for i in range(len(streams))]
    reach = {
        (k.stream, k.row, i): _reach_by_definition(parts[i], windows[i], k)
        for k in arrivals
        for i in range(len(streams))
        if i != k.stream
    }
    outputs = []
    for members in product(*parts):
        k = max(members, key=arrival)
        others = [u for u in members if u is not k]
        if not all(u.row in reach[k.stream, k.row, u.stream] for u in others):
            continue
        pairs = [(u, v) for u in members for v in members if u.stream < v.stream]
        if graph == "star":
            pairs = [(u, v) for u, v in pairs if u is k or v is k]
        if all(pair_meets(meets, u, v) for u, v in pairs):
            outputs.append(output_of(members, combine))
    counted = [out for out in outputs if start_ts is None or out[1] >= start_ts]
    return sorted(counted, key=lambda out: (out[1], out[0]))


class _Stores:
    """The stores of all streams, what has been counted and found, and the ways to probe.

    `bound` are the members that are bound so far, in the order of binding.
    """

    def __init__(
        self,
        windows: Sequence[Window],
        meets: Meets,
        graph: str,
        transitive: bool,
        buckets: Sequence[int | None],
    ) -> None:
        self.windows, self.meets, self.graph = windows, meets, graph
        self.transitive, self.buckets = transitive, buckets
        self.stores: list[list[Member]] = [[] for _ in windows]
        self.found: list[tuple[Sequence[Member], int]] = []  # with the time of finding
        self.now = 0
        self.comparisons = self.visits = self.insertions = 0
        self.expirations = self.accesses = self.peak = 0

    def insert(self, k: Member) -> None:
        """Append k to its stream's store."""
        self.stores[k.stream].append(k)
        self.insertions += 1
        self.peak = max(self.peak, sum(len(store) for store in self.stores))

    def expire(self, now: int) -> None:
        """Remove from every store what no tuple from `now` on could have in reach."""
        for i, (kind, size) in enumerate(self.windows):
            store = self.stores[i]
            if kind == "rows":
                kept = store[max(0, len(store) - size) :]
            else:
                kept = [u for u in store if now - u.ts <= size]
            self.accesses += self.buckets[i] or 1
            self.expirations += len(store) - len(kept)
            self.stores[i] = kept

    def in_reach(self, u: Member, k: Member) -> bool:
        """Tell whether u is in reach of k; count windows by counters (P3 3.6)."""
        kind, size = self.windows[u.stream]
        counter, earlier = u.seen[u.stream], k.seen[u.stream]
        if kind == "rows":
            return earlier - size <= counter < earlier
        return counter < earlier and 0 <= k.ts - u.ts <= size

    def all_hold(self, u: Member, others: Sequence[Member]) -> bool:
        """Compare u with others, one after the other, until one comparison fails."""
        for v in others:
            self.comparisons += 1
            if not pair_meets(self.meets, u, v):
                return False
        return True

    def visit(self, tuples: Sequence[Member]) -> Iterator[Member]:
        """Go through tuples, each counted as a visit."""
        for u in tuples:
            self.visits += 1
            yield u

    def hashed(self, i: int, k: Member) -> list[Member]:
        """Return store i, or its bucket that k's code maps to."""
        b = self.buckets[i]
        return [u for u in self.stores[i] if b is None or u.value % b == k.value % b]

    def compute_join(self, bound: list[Member], order: Sequence[int]) -> None:
        """COMPUTEJOIN, COMPUTEHASHJOIN, COMPUTECOUNTJOIN; the first member bound is k."""
        if not order:
            self.found.append((bound, self.now))
            return
        k = bound[0]
        with_k_alone = self.transitive or self.graph == "star"
        for u in self.visit(self.hashed(order[0], k)):
            if self.in_reach(u, k) and self.all_hold(u, bound[:1] if with_k_alone else bound):
                self.compute_join([*bound, u], order[1:])

    def _partners(self, v: Member, i: int, bound: list[Member]) -> list[Member]:
        """With which members v is compared where k, of stream i, need not be bound first."""
        if self.transitive:
            return bound[:1]
        if self.graph == "clique" or v.stream == i:
            return bound
        return [u for u in bound if u.stream == i]

    def naive_join(self, k: Member, bound: list[Member], order: Sequence[int]) -> None:
        """Nested loops over the global order, the loop of k's stream being k alone (P3 3.1)."""
        if not order:
            self.found.append((bound, self.now))
            return
        for v in self.visit([k] if order[0] == k.stream else self.stores[order[0]]):
            reached = v is k or self.in_reach(v, k)
            if reached and self.all_hold(v, self._partners(v, k.stream, bound)):
                self.naive_join(k, [*bound, v], order[1:])

    def general_join(
        self, i: int, fresh: list[Member], bound: list[Member], order: Sequence[int]
    ) -> None:
        """GENERALCOMPUTEJOIN: k is one of stream i's fresh tuples, bound where its loop stands."""
        if not order:
            self.found.append((bound, self.now))
            return
        bound_k = [u for u in bound if u.stream == i]
        for v in self.visit(fresh if order[0] == i else self.stores[order[0]]):
            if v.stream == i:
                reached = all(self.in_reach(u, v) for u in bound)
            else:
                reached = all(self.in_reach(v, k) for k in bound_k)
            if reached and self.all_hold(v, self._partners(v, i, bound)):
                self.general_join(i, fresh, [*bound, v], order[1:])


def _without(order: Sequence[int], i: int) -> list[int]:
    """Return the local order of stream i."""
    return [stream for stream in order if stream != i]


def _due(since: int, every: int, grid: int) -> int:
    """Return the last expiration time up to `since`, both counted from t0; 0 is none.

    Expiration times are the multiples of `every`, put off to the next multiple of `grid`.
    """
    last_on_grid = since // grid * grid
    return -(-(last_on_grid // every * every) // grid) * grid


def run(
    method: str,
    streams: Sequence[Sequence[Tuple]],
    windows: Sequence[Window],
    meets: Meets,
    graph: str,
    *,
    transitive: bool,
    order: Sequence[int],
    orders: Sequence[Sequence[int]] | None = None,
    tau: int | None = None,
    expire_every: int = 0,
    buckets: Sequence[int | None] | None = None,
    combine: str = "min",
    start_ts: int | None = None,
) -> Run:
    """Do what one of P3's methods does, tuple by tuple.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    streams, windows, meets, graph, combine, start_ts
        As of `exact`.
    transitive : bool
        The predicate is an equi-join's: one comparison stands for all. This goes before the graph,
        which makes no difference to the outputs then.
    order : sequence of int
        The global order, a permutation of the streams.
    orders : sequence of sequences of int, optional
        "general-lazy-nlj": O_i of every i, each of all streams. None: i first, then `order`.
    tau : int, optional
        Ticks between re-evaluations; lazy methods need it.
    expire_every : int
        Ticks between lazy expirations; 0: eager expiration, of lazy methods every tau. Lazy
        methods: tau at least; where it is no multiple of tau, an expiration waits for the next
        re-evaluation, comes after it and has its time for NOW: before, tuples not yet processed
        might still reach what it would remove. So it is with count windows too, which then keep
        the last C. Nothing is expired after the last arrival, as an expiration comes before what
        arrives at or after it.
    buckets : sequence of int or None, optional
        Of "eager-hash" and "lazy-hash" each an int; of "hybrid" None where a store is scanned.
        Other methods have no use for it.

    Returns
    -------
    Run
        Outputs before `start_ts` have cost their work but are not in `outputs` and `delays`.
    """
    m, lazy = len(streams), method in LAZY
    lists = buckets if method in HASHED and buckets is not None else [None] * m
    if method not in METHODS or (lazy and (tau is None or 0 < expire_every < tau)):
        raise ValueError(method, tau, expire_every)
    if method in HASHED and not transitive:
        raise ValueError(method, "only codes that must be equal are hashed")
    if buckets is None and method in HASHED:
        raise ValueError(method, "needs buckets")
    stores = _Stores(windows, meets, graph, transitive, lists)
    arrivals = arrivals_of(streams)
    t0 = arrivals[0].ts if arrivals else 0
    grid = tau if lazy and tau is not None else 1
    every = expire_every or (grid if lazy else 0)
    fresh: list[Member] = []  # arrived since the last re-evaluation
    expired = 0  # the last expiration, from t0

    def re_evaluate() -> None:
        stores.now = t0 + ((fresh[-1].ts - t0) // grid + 1) * grid
        for i in range(m):
            new = [k for k in fresh if k.stream == i]
            if method == "general-lazy-nlj":
                o_i = orders[i] if orders is not None else [i, *_without(order, i)]
                stores.general_join(i, new, [], o_i)
                continue
            for k in new:
                stores.compute_join([k], _without(order, i))
        fresh.clear()

    for k in arrivals:
        since = k.ts - t0
        if lazy and fresh and (fresh[-1].ts - t0) // grid < since // grid:
            re_evaluate()
        if not every:
            stores.expire(k.ts)
        elif _due(since, every, grid) > expired:
            expired = _due(since, every, grid)
            stores.expire(t0 + expired)
        if not lazy:
            stores.now = k.ts
            if method == "naive-nlj":
                stores.naive_join(k, [], order)
            else:
                stores.compute_join([k], _without(order, k.stream))
        stores.insert(k)
        fresh.append(k)
    if lazy and fresh:
        re_evaluate()

    found = [(output_of(members, combine), now) for members, now in stores.found]
    found = [(out, now) for out, now in found if start_ts is None or out[1] >= start_ts]
    found.sort(key=lambda each: (each[0][1], each[0][0]))
    return Run(
        [out for out, _ in found],
        stores.comparisons,
        stores.visits,
        stores.insertions,
        stores.expirations,
        stores.accesses,
        stores.peak,
        [now - out[1] for out, now in found],
    )
