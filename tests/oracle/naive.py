"""The independent oracle: exact and memory-limited two-way joins, written from the contract.

A fact relation turns an equi-join into a star-streaming join of two streams: it changes what
matches what, nothing else. More streams than two are in `naive_star`.

It imports nothing of ours and nothing beyond the standard library. At every instant the matches of
every key are counted again over plain lists, every priority is computed again and everything is
ranked again; what `yield` learns is in `naive_yield`, how one memory serves both sides in
`naive_pool`.
Sources: the contract (semantics.md, sections 1, 2, 3, 5 and 7); P1 4.3; P2 2 and 3.2; P5 3.2.
"""

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import naive_pool
import naive_yield
from naive_yield import combine

LEFT, RIGHT = 0, 1
SIDES = (LEFT, RIGHT)
POLICIES = (
    *("rand", "recent", "until_expiry", "prob", "simp", "simpprob", "dimpprob", "dgl", "age"),
    *("additive", "multiplicative", "custom", "yield"),
)
ESTIMATORS = ("memory", "window", "history")
COMBINES = ("min", "sum", "product", "max", "mean")
PROBES = ("before_admission", "after_admission")
TICK = 1
RAND_PURPOSE = 1
MASK32 = 0xFFFFFFFF
NO_FACT = -1

Table = list[tuple[int, Any, float]]
Fact = Sequence[tuple[Any, ...]]  # (a, b, begin, end) or (a, b, begin, end, identity)
Links = Sequence[tuple[Any, ...]]  # the same as ((a, b, ...), begin, end) or with an identity
Output = tuple[Any, ...]


class Replay(NamedTuple):
    """What `replay` returns.

    Attributes
    ----------
    outputs : list of (left_row, right_row, ts, importance)
        Sorted by (ts, left_row, right_row); ts is the instant of production. With a fact relation
        (left_row, right_row, ts, importance, position of f in it), sorted by that too.
    retained : list of (t, left_rows, right_rows)
        One entry an instant: the rows kept after step 5, each list sorted.
    peak_left, peak_right : int
        Greatest number of rows kept after any step 5.
    """

    outputs: list[Output]
    retained: list[tuple[int, list[int], list[int]]]
    peak_left: int
    peak_right: int


@dataclass
class Item:
    """One stream tuple and what its policy remembers of it."""

    side: int
    row: int
    ts: int
    key: Any
    imp: float
    priority: float = 0.0
    first: float = 0.0  # its priority at admission
    m: float = 0.0  # the m of the rank
    level: float = 0.0  # V of DGL
    value: float = 0.0  # of YIELD
    matched: bool = False  # the state of YIELD
    facts: list[int] | None = None  # those that are its, active at its arrival; None: an equi-join
    until: float = math.inf  # when the last of these ends
    meets: Callable[[Any, Any], bool] = operator.eq  # of keys, without facts


class Lane(NamedTuple):
    """One join: its rows, windows, budgets and policy; tuples are by stream, (left, right)."""

    items: tuple[list[Item], ...]
    windows: tuple[int, ...]
    budgets: tuple[int | None, ...]
    policy: str
    params: dict[str, Any]
    estimator: str
    probe: str
    seed: int
    t0: int
    combine: str = "min"
    estimate: naive_yield.Estimate | None = None  # of YIELD
    memory: int | None = None  # of both sides together, if it is one
    pool: naive_pool.Pool | None = None  # where priorities do not compare as they are


def exact_pairs(
    left: Table, right: Table, window_left: int, window_right: int
) -> list[tuple[int, int]]:
    """All pairs of the exact sliding-window equi-join (semantics 1).

    Parameters
    ----------
    left, right : list of (ts, key, importance)
        In any order; key None is null. A row is the position in its list.
    window_left, window_right : int
        The closed windows W, in ticks.

    Returns
    -------
    list of (left_row, right_row)
        Sorted, each pair once.
    """
    pairs = []
    for i, (left_ts, left_key, _) in enumerate(left):
        for j, (right_ts, right_key, _) in enumerate(right):
            if left_key is None or right_key is None or left_key != right_key:
                continue
            if left_ts < right_ts:
                inside = right_ts - left_ts <= window_left
            elif right_ts < left_ts:
                inside = left_ts - right_ts <= window_right
            else:
                inside = True
            if inside:
                pairs.append((i, j))
    return sorted(pairs)


def philox4x32(counter: tuple[int, ...], key: tuple[int, ...]) -> tuple[int, int, int, int]:
    """Philox-4x32-10 (semantics 7; Salmon et al., SC 2011): four 32-bit words."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        first = 0xD2511F53 * c0
        second = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (
            (second >> 32) ^ c1 ^ k0,
            second & MASK32,
            (first >> 32) ^ c3 ^ k1,
            first & MASK32,
        )
        k0 = (k0 + 0x9E3779B9) & MASK32
        k1 = (k1 + 0xBB67AE85) & MASK32
    return c0, c1, c2, c3


def uniform(seed: int, side: int, row: int) -> float:
    """Draw number 0 of a row for RAND, 53 bits in [0, 1) (semantics 7)."""
    key = (seed & MASK32, (seed >> 32) & MASK32)
    counter = (RAND_PURPOSE, side, row & MASK32, (row >> 32) & MASK32)
    x0, x1, _, _ = philox4x32(counter, key)
    return ((x0 >> 5) * 2**26 + (x1 >> 6)) / 2**53


def lifetime(lane: Lane, side: int) -> int:
    """Lifetime w = W + 1, in ticks (semantics 1)."""
    return lane.windows[side] + 1


def active(begin: int | None, end: int | None, ts: int) -> bool:
    """Tell whether ts lies in the active-time interval [begin, end) (P2 2.2)."""
    return (begin is None or begin <= ts) and (end is None or ts < end)


def useful(lane: Lane, item: Item, t: int) -> bool:
    """Tell whether a resident is unexpired and not pre-filtered at t (semantics 1 and 5)."""
    return t - item.ts <= lane.windows[item.side] and t < item.until


def _matching(item: Item, others: list[Item]) -> list[tuple[Item, int]]:
    """Those of `others` that match `item`, each once for every fact by which it does."""
    if item.facts is None:
        return [(other, NO_FACT) for other in others if item.meets(item.key, other.key)]
    return [(other, f) for other in others for f in item.facts if f in (other.facts or [])]


def _match_count(
    lane: Lane, item: Item, t: int, opposite_memory: list[Item], opposite_arrivals: list[Item]
) -> float:
    """Return m of one resident or arrival at t (semantics 2 step 2)."""
    opposite = 1 - item.side
    if lane.estimator == "memory":
        return float(len(_matching(item, opposite_memory + opposite_arrivals)))
    so_far = [other for other in lane.items[opposite] if other.ts <= t]
    if lane.estimator == "window":
        window = [other for other in so_far if t - lane.windows[opposite] <= other.ts]
        return float(len(_matching(item, window)))
    if not so_far:
        return 0.0
    t_first = min(other.ts for other in so_far)
    quotient = float(lifetime(lane, opposite)) / float(t - t_first + 1)
    return float(len(_matching(item, so_far))) * quotient


def _dgl_alpha(lane: Lane, side: int) -> float:
    """Alpha of DGL: by default the lifetime (semantics 3)."""
    alpha = lane.params.get("alpha")
    return float(lifetime(lane, side)) if alpha is None else float(alpha)


def _dgl_beta(lane: Lane, side: int) -> float:
    """Beta of DGL: by default the mean importance of the side over its lifetime (semantics 3)."""
    beta = lane.params.get("beta")
    if beta is not None:
        return float(beta)
    return _mean([item.imp for item in lane.items[side]]) / float(lifetime(lane, side))


def _age_priority(lane: Lane, item: Item, t: int) -> float:
    """AGE: the fastest rate at which a tuple of this age can still produce (P5 3.2.1)."""
    curve = lane.params["curves"][item.side]
    window = lane.windows[item.side]
    n = len(curve)
    cumulative = [0.0]
    for expected in curve:
        cumulative.append(cumulative[-1] + expected)
    i = n if window == 0 else ((t - item.ts) * n) // window
    if i == n:
        return 0.0
    return max((cumulative[j] - cumulative[i]) / (j - i) for j in range(i + 1, n + 1))


def _custom_priority(lane: Lane, item: Item, t: int, m: float, produced: int) -> float:
    """Value of the user's function (semantics 3), of float64 arguments alone."""
    function: Callable[..., float] = lane.params["function"]
    age, whole = float(t - item.ts), float(lifetime(lane, item.side))
    value = float(function(item.imp, m, age, whole, item.priority, float(produced)))
    return -math.inf if math.isnan(value) else value  # what is not a number ranks last


def _weighted_priority(lane: Lane, item: Item, m: float) -> float:
    """ADDITIVE and MULTIPLICATIVE (P1 3.2, formulations 1 and 2)."""
    a, b, d = (float(lane.params.get(name, 1.0)) for name in ("A", "B", "D"))
    ts_rel = float(item.ts - lane.t0)
    if lane.policy == "additive":
        return a * item.imp + b * m + d * ts_rel
    value = (_power(item.imp, a) * _power(m, b)) * _power(ts_rel, d)
    return -math.inf if math.isnan(value) else value  # 0 times infinity ranks last


def _power(x: float, exponent: float) -> float:
    try:
        return float(x**exponent)
    except OverflowError:
        return math.inf


def _admit(lane: Lane, item: Item, m: float, produced: int) -> None:
    """Assign an arrival its first priority (semantics 3)."""
    item.m = m
    t = item.ts
    if item.facts == []:  # pre-filtered (semantics 5)
        item.priority = -1.0
    elif lane.policy == "rand":
        item.priority = uniform(lane.seed, item.side, item.row)
    elif lane.policy == "recent":
        item.priority = float(item.ts)
    elif lane.policy == "until_expiry":
        item.priority = float(-item.ts)
    elif lane.policy == "prob":
        item.priority = m
    elif lane.policy == "simp":  # P1 4.3.1
        item.priority = item.imp
    elif lane.policy in {"simpprob", "dimpprob"}:  # P1 4.3.2, 4.3.3
        item.priority = item.imp * m
    elif lane.policy == "dgl":
        by_importance = lane.params.get("initial", "simpprob") == "importance"
        first = item.imp if by_importance else item.imp * m  # P1 4.3.4, P2 3.2
        loss = _dgl_beta(lane, item.side) * float(t - lane.t0)
        item.level = first + loss
        item.priority = max(0.0, item.level - loss)
    elif lane.policy == "age":
        item.priority = _age_priority(lane, item, t)
    elif lane.estimate is not None:
        item.priority = item.value * lane.estimate.best(item.side, 0, 0)
    elif lane.policy == "custom":
        item.m = m
        item.priority = _custom_priority(lane, item, t, m, produced)
    else:
        item.priority = _weighted_priority(lane, item, m)
    item.first = first if lane.policy == "dgl" and item.facts != [] else item.priority


def _update(lane: Lane, item: Item, t: int, m: float, hits: int) -> None:
    """Recompute a resident's priority; `hits` opposite arrivals of t match it (semantics 3)."""
    if lane.policy == "dimpprob":  # P1 4.3.3
        item.m = m
        item.priority = item.imp * m
    elif lane.policy == "dgl":  # P1 4.3.4, P2 3.2; the m of the rank stays that of the arrival
        beta = _dgl_beta(lane, item.side)
        tau = t - lane.t0
        if hits > 0:
            remaining = float(item.ts + lifetime(lane, item.side) - t)
            previous = max(0.0, item.level - beta * float(tau - TICK))
            gain = item.imp * m * remaining / _dgl_alpha(lane, item.side)
            item.level = beta * float(tau) + (previous + gain)
        item.priority = max(0.0, item.level - beta * float(tau))
    elif lane.policy == "age":
        item.priority = _age_priority(lane, item, t)
    elif lane.estimate is not None:  # docs/yield.md
        if lane.probe == "before_admission" and hits > 0:
            item.matched = True
        best = lane.estimate.best(item.side, int(item.matched), t - item.ts)
        item.priority = item.value * best
        if hits > 0:
            item.matched = True
    elif lane.policy == "custom":
        item.m = m
        item.priority = _custom_priority(lane, item, t, m, hits)


def _by_importance(lane: Lane) -> bool:
    """Tell whether importance breaks ties of priority."""
    if lane.policy in {"prob", "additive", "multiplicative", "custom"}:
        return bool(lane.params.get("ties", "ts") == "importance")
    return lane.policy in {"simpprob", "dimpprob", "dgl"}


def _rank(lane: Lane, item: Item) -> tuple[float, ...]:
    """Order of eviction, greatest kept (semantics 2 step 5)."""
    by_importance = _by_importance(lane)
    if lane.policy == "yield":
        return (item.priority, item.value, -item.ts, -item.row)
    if by_importance:
        return (item.priority, item.imp, item.m, item.ts, item.row)
    return (item.priority, item.ts, item.row)


def survivors(lane: Lane, side: int, candidates: list[Item]) -> list[Item]:
    """Return the K greatest by rank, without those of no fact (semantics 2 step 5, and 5)."""
    admissible = [item for item in candidates if item.facts != []]
    ranked = sorted(admissible, key=lambda item: _rank(lane, item), reverse=True)
    budget = lane.budgets[side]
    return ranked if budget is None else ranked[:budget]


def _worth(lane: Lane, item: Item, t: int, residents: int) -> tuple[float, ...]:
    """Order of eviction across sides: value, then rank, a full tie drops the first to arrive."""
    value = item.priority
    if lane.pool is not None:
        value = lane.pool.value(item.side, item.priority, item.imp, t - item.ts, residents)
    if lane.policy == "yield":
        return (value, item.priority, item.value, -item.ts, -item.side, -item.row)
    *rank, ts, row = _rank(lane, item)
    return (value, *rank, ts, item.side, row)


def pooled_survivors(
    lane: Lane, t: int, residents: list[list[Item]], arrivals: list[list[Item]]
) -> list[list[Item]]:
    """Admit the arrivals in order; where one is too many, the lesser of the sides' least goes."""
    if lane.pool is not None:
        by_now = lane.policy == "yield"
        lane.pool.learn(
            t,
            [
                [(item.priority if by_now else item.first, item.imp, item.ts) for item in own]
                for own in residents
            ],
        )
    kept = [list(own) for own in residents]
    for side, own in enumerate(arrivals):
        for arrival in own:
            if arrival.facts == []:
                continue
            kept[side].append(arrival)
            if sum(map(len, kept)) > (lane.memory or 0):
                least = [min(rows, key=lambda item: _rank(lane, item)) for rows in kept if rows]
                gone = min(least, key=lambda item: _worth(lane, item, t, len(kept[item.side])))
                kept[gone.side].remove(gone)
    return kept


def _probe(arrivals: list[list[Item]], stored: list[list[Item]]) -> list[tuple[Item, Item, int]]:
    """Pairs (left, right, fact) of the arrivals of one side with what is stored of the other."""
    pairs = [(x, y, f) for x in arrivals[LEFT] for y, f in _matching(x, stored[RIGHT])]
    pairs += [(y, x, f) for x in arrivals[RIGHT] for y, f in _matching(x, stored[LEFT])]
    return pairs


def _prioritise(
    lane: Lane, t: int, arrivals: list[list[Item]], residents: list[list[Item]]
) -> None:
    """Count matches on one snapshot, then set every priority (semantics 2 steps 2 and 4)."""
    for side in SIDES:
        memory, others = residents[1 - side], arrivals[1 - side]
        counts: dict[str, tuple[float, int, int]] = {}  # tuples of one key match the same
        for item in residents[side] + arrivals[side]:
            by = repr((item.key, item.facts))  # sets and dictionaries have no hash
            if by not in counts:
                m = _match_count(lane, item, t, memory, others)
                counts[by] = m, len(_matching(item, others)), len(_matching(item, memory))
            m, arrived, stored = counts[by]
            if item.ts < t:
                _update(lane, item, t, m, arrived)
            else:
                _admit(lane, item, m, arrived + stored * (lane.probe == "before_admission"))


def _instant(
    lane: Lane, t: int, memory: list[list[Item]]
) -> tuple[list[tuple[Item, Item, int]], list[list[Item]]]:
    """Run steps 1 to 6 at t (semantics 2): the pairs produced and the memory left behind."""
    arrivals = [[item for item in lane.items[side] if item.ts == t] for side in SIDES]
    residents = [[item for item in memory[side] if useful(lane, item, t)] for side in SIDES]
    pairs = [(x, y, f) for x in arrivals[LEFT] for y, f in _matching(x, arrivals[RIGHT])]
    if lane.estimate is not None:
        lane.estimate.arrive(t, arrivals)
    if lane.probe == "before_admission":
        pairs += _noted(lane, t, _probe(arrivals, residents))
    _prioritise(lane, t, arrivals, residents)
    candidates = [residents[side] + arrivals[side] for side in SIDES]
    if lane.memory is None:
        kept = [survivors(lane, side, candidates[side]) for side in SIDES]
    else:
        kept = pooled_survivors(lane, t, residents, arrivals)
    if lane.probe == "after_admission":
        older = [[item for item in kept[side] if item.ts < t] for side in SIDES]
        pairs += _noted(lane, t, _probe(arrivals, older))
    return pairs, kept


def _noted(lane: Lane, t: int, pairs: list[tuple[Item, Item, int]]) -> list[tuple[Item, Item, int]]:
    """Note what the older of each pair yielded, for one memory of both sides."""
    if lane.pool is not None:
        for x, y, _ in pairs:
            older = x if x.ts < t else y
            yielded = combine(lane.combine, x.imp, y.imp)
            first = older.first
            if lane.estimate is not None and lane.probe == "after_admission":
                first = older.priority
            elif lane.estimate is not None:
                best = lane.estimate.best(older.side, int(older.matched), t - older.ts)
                first = older.value * best
            lane.pool.note(older.side, first, older.imp, t - older.ts, yielded)
    return pairs


def with_one_memory(lane: Lane) -> Lane:
    """Return a lane whose budgets are one memory, for which the tuples of all sides compete."""
    budgets = [own for own in lane.budgets if own is not None]
    if len(budgets) < len(lane.budgets):
        raise ValueError("one memory for all sides has a budget of each, which are added")
    lane = lane._replace(memory=sum(budgets))
    if lane.policy in {"prob", "simp", "simpprob", "dimpprob", "dgl", "yield"}:
        means = [_mean([item.imp for item in side]) for side in lane.items]
        pool = naive_pool.Pool(
            lane.windows,
            means,
            counts=lane.policy in {"prob", "yield"},
            by_importance=_by_importance(lane),
            corrected=lane.policy == "yield",
            t0=lane.t0,
        )
        lane = lane._replace(pool=pool)
    return lane


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else 0.0


def items_of(
    side: int, table: Table, links: Links | None, meets: Callable[[Any, Any], bool] = operator.eq
) -> list[Item]:
    """Return the rows that take part, null keys do not (semantics 1), each with its facts."""
    rows = enumerate(table)
    items = [
        Item(side, row, ts, key, float(imp), meets=meets)
        for row, (ts, key, imp) in rows
        if key is not None
    ]
    if links is None:
        return items
    for item in items:
        mine = {
            f: math.inf if end is None else end
            for f, (values, begin, end, *_) in enumerate(links)
            if values[side] == item.key and active(begin, end, item.ts)
            if None not in values and links[f] not in links[:f]
        }
        item.facts, item.until = list(mine), max(mine.values(), default=math.inf)
    return items


def replay(
    left: Table,
    right: Table,
    *,
    window_left: int,
    window_right: int,
    budget_left: int | None,
    budget_right: int | None,
    policy: str,
    params: dict[str, Any] | None = None,
    estimator: str = "memory",
    probe: str = "before_admission",
    combine_name: str = "min",
    start_ts: int | None = None,
    seed: int = 0,
    fact: Fact | None = None,
    pooled: bool = False,
    meets: Callable[[Any, Any], bool] = operator.eq,
) -> Replay:
    """Two-way join under a memory budget, instant by instant (semantics 2, 3 and 5).

    Read into section 5: t0, the t_first of "history", the mean importance of DGL and the instants
    are of all rows whose key is not null, those of no fact among them; YIELD alone does not see
    these. Facts that are equal in every field are one, of the first's position; others are several,
    intervals overlapping or not. A fact with a null attribute is nobody's. What two tuples match by
    was active when they arrived: they still count as each other's matches when it has ended.

    Parameters
    ----------
    left, right : list of (ts, key, importance)
        In any order; key None is null. A row is the position in its list.
    window_left, window_right : int
        The closed windows W, in ticks; the lifetime is W + 1.
    budget_left, budget_right : int or None
        Rows that each memory may hold; None is unlimited.
    policy : str
        One of `POLICIES`.
    params : dict, optional
        ties; A, B, D; alpha, beta, initial; curve_left, curve_right; function.
    estimator : {"memory", "window", "history"}
        How m is estimated (semantics 2 step 2).
    probe : {"before_admission", "after_admission"}
        When arrivals probe the opposite memory.
    combine_name : {"min", "sum", "product", "max", "mean"}
        Importance of an output.
    start_ts : int, optional
        Outputs of earlier instants are left out of the result; decisions do not see it.
    seed : int
        Seed of RAND.
    fact : sequence of (a, b, begin, end) or (a, b, begin, end, identity), optional
        The set F of a star-streaming join, a the left key and b the right key. A begin of None is
        before the streams, an end of None never. None is the equi-join.
    pooled : bool
        Whether the two budgets are one memory, for which the tuples of both sides compete.
    meets : callable
        Whether a left and a right key match, without facts. YIELD knows equality alone.

    Returns
    -------
    Replay

    Raises
    ------
    ValueError
        Where a name is not one of those above.
    """
    names = ((policy, POLICIES), (estimator, ESTIMATORS), (probe, PROBES))
    for name, known in (*names, (combine_name, COMBINES)):
        if name not in known:
            raise ValueError(f"{name!r} must be one of {', '.join(known)}")
    params, windows = params or {}, (window_left, window_right)
    links = None if fact is None else [((a, b), *rest) for a, b, *rest in fact]
    backwards = lambda key, other: meets(other, key)  # noqa: E731
    items = (items_of(LEFT, left, links, meets), items_of(RIGHT, right, links, backwards))
    instants = sorted({item.ts for side in SIDES for item in items[side]})
    estimate = None
    if policy == "yield":
        estimate = naive_yield.Estimate(windows, combine_name, params, links)
    lane = Lane(
        items=items,
        windows=windows,
        budgets=(budget_left, budget_right),
        policy=policy,
        params={**params, "curves": (params.get("curve_left"), params.get("curve_right"))},
        estimator=estimator,
        probe=probe,
        seed=seed,
        t0=instants[0] if instants else 0,
        combine=combine_name,
        estimate=estimate,
    )
    if pooled:
        lane = with_one_memory(lane)
    memory: list[list[Item]] = [[], []]
    outputs: list[Output] = []
    retained: list[tuple[int, list[int], list[int]]] = []
    for t in instants:
        pairs, memory = _instant(lane, t, memory)
        kept_left, kept_right = (sorted(item.row for item in memory[side]) for side in SIDES)
        retained.append((t, kept_left, kept_right))
        if start_ts is None or t >= start_ts:
            for x, y, f in pairs:
                output = (x.row, y.row, t, combine(combine_name, x.imp, y.imp))
                outputs.append(output if fact is None else (*output, f))
    outputs.sort(key=lambda output: (output[2], output[0], output[1], output[4:]))
    peak_left = max((len(rows) for _, rows, _ in retained), default=0)
    peak_right = max((len(rows) for _, _, rows in retained), default=0)
    return Replay(outputs, retained, peak_left, peak_right)
