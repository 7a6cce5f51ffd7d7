"""The oracle of star-streaming joins of any number of streams: every combination is tried.

It imports nothing of ours but `naive`, whose rules of priority and rank it shares, and nothing
beyond the standard library. Matches and outputs are counted here in its own way, so that with two
streams it checks `naive.replay`. Sources: the contract (semantics.md, 1, 2, 3 and 5); P2 2.
"""

import math
import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import product
from typing import Any, NamedTuple

import naive
from naive import Item, Lane, Links, Table, _admit, _update

Output = tuple[tuple[int, ...], int, float, int]
Pools = list[list[Item]]


class StarReplay(NamedTuple):
    """What `replay_star` returns.

    Attributes
    ----------
    outputs : list of (rows, ts, importance, fact)
        The row of every stream, the instant of production, the combined importance, the position
        of f in the facts given. Sorted by (ts, rows, fact).
    retained : list of (t, rows)
        One entry an instant: of every stream the rows kept after step 5, sorted.
    peaks : list of int
        Of every stream the greatest number of rows kept after any step 5.
    """

    outputs: list[Output]
    retained: list[tuple[int, list[list[int]]]]
    peaks: list[int]


def combine(name: str, importances: Sequence[float]) -> float:
    """Return the importance of an output, from its members' in the order of the streams."""
    if name in {"min", "max"}:
        return min(importances) if name == "min" else max(importances)
    if name == "product":
        return reduce(operator.mul, importances)
    total = reduce(operator.add, importances)  # `sum` rounds in another way
    return total / len(importances) if name == "mean" else total


def _combinations(pools: Pools) -> Iterator[tuple[tuple[Item, ...], int]]:
    """Every combination of one tuple of each pool, with each f active at all of them."""
    for f in sorted({f for item in pools[0] for f in item.facts or []}):
        pools_of_f = [[item for item in pool if f in (item.facts or [])] for pool in pools]
        for members in product(*pools_of_f):
            yield members, f


def _outputs(members: Iterator[tuple[tuple[Item, ...], int]], name: str) -> list[Output]:
    """Return the outputs that combinations make, sorted."""
    found = [
        (
            tuple(item.row for item in items),
            max(item.ts for item in items),
            combine(name, [item.imp for item in items]),
            f,
        )
        for items, f in members
    ]
    return sorted(found, key=lambda output: (output[1], output[0], output[3]))


def exact_star(
    streams: Sequence[Table],
    windows: Sequence[int],
    facts: Links,
    combine_name: str = "min",
    start_ts: int | None = None,
) -> list[Output]:
    """All outputs of the exact star-streaming join (semantics 1 and 5; P2 2).

    Parameters
    ----------
    streams : sequence of lists of (ts, key, importance)
        In any order; key None is null. A row is the position in its list.
    windows : sequence of int
        The closed windows W, in ticks.
    facts : sequence of (values, begin, end) or (values, begin, end, identity)
        A set; one value a stream. A begin of None is before the streams, an end of None never.
        Facts with a null and equal facts are as `naive.replay` says.
    combine_name : {"min", "sum", "product", "max", "mean"}
        Importance of an output.
    start_ts : int, optional
        Outputs of earlier instants are left out.

    Returns
    -------
    list of (rows, ts, importance, fact)
        As in `StarReplay`: a combination once for every f by which it joins.
    """
    pools = [naive.items_of(side, table, facts) for side, table in enumerate(streams)]

    def joins(members: tuple[Item, ...]) -> bool:
        """Tell whether the latest member finds all others unexpired, and counts."""
        latest = max(members, key=lambda item: (item.ts, item.side, item.row))
        counts = start_ts is None or latest.ts >= start_ts
        return counts and all(0 <= latest.ts - u.ts <= windows[u.side] for u in members)

    return _outputs((each for each in _combinations(pools) if joins(each[0])), combine_name)


def _count(pools: Pools, item: Item) -> int:
    """Count (combinations of one tuple of each other pool, f) that `item` joins."""
    others = [[item] if side == item.side else pool for side, pool in enumerate(pools)]
    return sum(1 for _ in _combinations(others))


def _history(lane: Lane, item: Item, t: int) -> float:
    """Return m by "history": of every f the product of the other streams' expectations.

    With two streams there is one factor, and the number is counted before it is multiplied
    (semantics 2 step 2).
    """
    so_far = [[u for u in rows if u.ts <= t] for rows in lane.items]
    others = [side for side in range(len(so_far)) if side != item.side]
    if not all(so_far[side] for side in others):
        return 0.0
    quotient = [
        float(naive.lifetime(lane, side)) / float(t - min((u.ts for u in rows), default=t) + 1)
        for side, rows in enumerate(so_far)
    ]
    if len(others) == 1:
        return float(_count(so_far, item)) * quotient[others[0]]
    m = 0.0
    for f in item.facts or []:
        numbers = [sum(f in (u.facts or []) for u in rows) for rows in so_far]
        m += math.prod(float(numbers[side]) * quotient[side] for side in others)
    return m


def _prioritise(lane: Lane, t: int, arrivals: Pools, residents: Pools) -> None:
    """Count matches on one snapshot, then set every priority (semantics 2 steps 2 and 4)."""
    snapshot = _joined(residents, arrivals)
    window = [
        [u for u in rows if 0 <= t - u.ts <= lane.windows[side]]
        for side, rows in enumerate(lane.items)
    ]
    for item in (item for pool in snapshot for item in pool):
        if lane.estimator == "history":
            m = _history(lane, item, t)
        else:
            m = float(_count(snapshot if lane.estimator == "memory" else window, item))
        if item.ts < t:
            hits = _count(snapshot, item) - _count(residents, item)
            _update(lane, item, t, m, hits)
        else:
            before = lane.probe == "before_admission"
            _admit(lane, item, m, _count(snapshot if before else arrivals, item))


def _joined(older: Pools, arrivals: Pools) -> Pools:
    return [[*rows, *new] for rows, new in zip(older, arrivals, strict=True)]


def _instant(lane: Lane, t: int, memory: Pools) -> tuple[Pools, Pools]:
    """Run steps 1 to 6 at t: the tuples that make its outputs, and the memory left behind."""
    arrivals = [[item for item in rows if item.ts == t] for rows in lane.items]
    residents = [[item for item in rows if naive.useful(lane, item, t)] for rows in memory]
    if lane.probe == "before_admission":
        _note(lane, t, _joined(residents, arrivals))
    _prioritise(lane, t, arrivals, residents)
    candidates = _joined(residents, arrivals)
    if lane.memory is None:
        kept = [naive.survivors(lane, side, rows) for side, rows in enumerate(candidates)]
    else:
        kept = naive.pooled_survivors(lane, t, residents, arrivals)
    older = [[item for item in rows if item.ts < t] for rows in kept]
    met = _joined(residents if lane.probe == "before_admission" else older, arrivals)
    if lane.probe == "after_admission":
        _note(lane, t, met)
    return met, kept


def _note(lane: Lane, t: int, met: Pools) -> None:
    """Note what each resident yields at t, for one memory of all streams: whole outputs."""
    if lane.pool is None:
        return
    for members, _ in _combinations(met):
        if any(item.ts == t for item in members):
            importance = combine(lane.combine, [item.imp for item in members])
            for item in members:
                if item.ts < t:
                    lane.pool.note(item.side, item.first, item.imp, t - item.ts, importance)


def replay_star(
    streams: Sequence[Table],
    facts: Links,
    *,
    windows: Sequence[int],
    budgets: Sequence[int | None],
    policy: str,
    params: dict[str, Any] | None = None,
    estimator: str = "memory",
    probe: str = "before_admission",
    combine_name: str = "min",
    start_ts: int | None = None,
    seed: int = 0,
    pooled: bool = False,
) -> StarReplay:
    """Star-streaming join under a memory budget a stream, instant by instant (semantics 2, 3, 5).

    Read into section 5, beside what `naive.replay` says: with "after_admission" an output needs
    all its older members to survive the decision, its arrivals need no memory. The matches that a
    policy is given are counted before the decision. To a resident they are its combinations of
    the snapshot with an arrival of t in them, whichever the probe. To an arrival they are its
    combinations with the snapshot, with "after_admission" those of arrivals only. With more than
    two streams "history" is the sum over f, in their order, of the product over the other streams,
    in theirs, of each one's number times its quotient. In one memory, an output counts whole for
    each of its members that arrived before its instant.

    Parameters
    ----------
    streams, facts
        As in `exact_star`.
    windows, budgets : sequence of int, sequence of (int or None)
        By stream: the closed windows W, in ticks; the rows that its memory may hold.
    policy, estimator, probe, combine_name, start_ts, seed, pooled
        As in `naive.replay`.
    params : dict, optional
        As in `naive.replay`, but for `curves`, a sequence of one age curve a stream.

    Returns
    -------
    StarReplay

    Raises
    ------
    ValueError
        Where a name is unknown, or YIELD, which learns by key.
    """
    policies = tuple(name for name in naive.POLICIES if name != "yield")
    names = ((policy, policies), (estimator, naive.ESTIMATORS), (probe, naive.PROBES))
    for name, known in (*names, (combine_name, naive.COMBINES)):
        if name not in known:
            raise ValueError(f"{name!r} must be one of {', '.join(known)}")
    items = tuple(naive.items_of(side, table, facts) for side, table in enumerate(streams))
    instants = sorted({item.ts for rows in items for item in rows})
    lane = Lane(
        items=items,
        windows=tuple(windows),
        budgets=tuple(budgets),
        policy=policy,
        params=params or {},
        estimator=estimator,
        probe=probe,
        seed=seed,
        t0=instants[0] if instants else 0,
        combine=combine_name,
    )
    if pooled:
        lane = naive.with_one_memory(lane)
    memory: Pools = [[] for _ in streams]
    outputs: list[Output] = []
    retained = []
    for t in instants:
        met, memory = _instant(lane, t, memory)
        retained.append((t, [sorted(item.row for item in rows) for rows in memory]))
        if start_ts is None or t >= start_ts:
            now = (each for each in _combinations(met) if any(u.ts == t for u in each[0]))
            outputs += _outputs(now, combine_name)
    peaks = [max((len(rows[i]) for _, rows in retained), default=0) for i in range(len(streams))]
    return StarReplay(outputs, retained, peaks)
