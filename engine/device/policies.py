"""The registry's policies, and the value model behind yield, as kernels get them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.device.columns import LaneColumns, both, joined_with
from engine.device.through_facts import most_matches
from engine.facts.key_links import KeyLinks
from engine.policies import Across, Policy, Structure, Value, dgl, yield_
from engine.replay.layout import ESTIMATORS, HISTORY_ESTIMATOR, ReplayRules
from engine.replay.settings import ReplaySettings, now_callback
from engine.runtime.host import half_of_memory
from engine.runtime.jit import Floats, Ints, jit
from engine.runtime.jit import kernel as compiled
from engine.runtime.streams import StreamBatch
from engine.value_model.estimate import Terms, estimate_of
from gpu_kernels.devices import TooLargeError
from gpu_kernels.portable import portable
from gpu_kernels.replay.layout import LANE_INTEGERS, PolicyFunctions, Pooling, Ranking
from gpu_kernels.replay.run import NOT_TABULATED, Tabulated

RANKINGS = {
    Structure.STATIC: Ranking.STATIC,
    Structure.KEYED: Ranking.BY_MATCHES,
    Structure.DECAY: Ranking.DECAYING,
    Structure.AGED: Ranking.BY_AGE,
    Structure.RERANK: Ranking.ANY,
    Structure.VALUED: Ranking.VALUED,
    Structure.SAMPLED: Ranking.SAMPLED,
}


def policy_functions(settings: ReplaySettings) -> PolicyFunctions:
    """Return what the kernels compile in for a policy and its parameters.

    Settings that differ in numbers alone give equal functions, so that they share a kernel.
    """
    policy = settings.the_policy
    ranking = RANKINGS[policy.structure]
    ties = settings.parameters.get("ties", policy.ties)
    functions = PolicyFunctions(
        ranking, by_importance=ties == "importance", pooling=_pooling(settings)
    )
    if ranking is Ranking.STATIC:
        arrival = policy.product or policy.arrival
        assert arrival is not None  # noqa: S101 - the registry's audit
        return functions._replace(
            arrival=arrival, tabulated=policy.product is not None, draws=policy.draws
        )
    if ranking is Ranking.DECAYING:
        return functions._replace(initial=dgl.initial, decayed=dgl.priority, gained=dgl.gained)
    if ranking is Ranking.VALUED:
        return functions._replace(valued=yield_.priority, by_importance=True)
    if ranking is Ranking.SAMPLED:
        assert policy.sampled is not None  # noqa: S101 - the registry's audit
        return functions._replace(sampled=policy.sampled)
    if ranking is Ranking.BY_AGE:
        return functions
    return functions._replace(now=_now(policy, settings.parameters))


def _pooling(settings: ReplaySettings) -> Pooling:
    if not settings.pooled:
        return Pooling.NONE
    known = {Across.BY_VALUE: Pooling.BY_VALUE, Across.CORRECTED: Pooling.CORRECTED}
    return known.get(settings.the_policy.across, Pooling.BY_PRIORITY)


def _now(policy: Policy, parameters: dict[str, Value]) -> Callable[..., float]:
    given = parameters.get("function")
    if callable(given):
        now_callback(policy, parameters)  # refuses what may raise, which a GPU would not tell
        return portable(getattr(given, "py_func", given))
    assert policy.now is not None  # noqa: S101 - the registry's audit
    return policy.now


def tabulate(settings: ReplaySettings, rules: ReplayRules, lane: LaneColumns) -> Tabulated:
    """Return the columns of a tabulated policy; the CPU's own function fills them.

    Parameters
    ----------
    settings : ReplaySettings
    rules : ReplayRules
        Of the lane; the columns depend on its exponents, windows and first times alone.
    lane : LaneColumns

    Raises
    ------
    TooLargeError
        If a tuple has so many pairs through facts that their table does not fit in memory.

    Notes
    -----
    O(rows). A match count of the memory or the window is a whole number, at most the rows of a
    side, or through facts the pairs of a tuple: `m_table` has them all. One of the history is not,
    but does not depend on the replay.
    """
    policy = settings.the_policy
    if policy.product is None or policy.factor is None:
        return NOT_TABULATED
    factor = _filler(policy.factor)
    importance = np.concatenate([lane.left.importance, lane.right.importance])
    ts = np.concatenate([lane.left.ts, lane.right.ts])
    x, y = np.empty(lane.rows), np.empty(lane.rows)
    factor(importance, rules.a, x)
    factor((ts - rules.t0).astype(np.float64), rules.d, y)
    column, table = np.zeros(1), np.zeros(1)
    if settings.estimator == ESTIMATORS[HISTORY_ESTIMATOR]:
        column = np.empty(lane.rows)
        factor(np.concatenate(history_counts(lane, rules)), rules.b, column)
    else:
        most = most_matches(lane)
        if 8 * most > half_of_memory():
            raise TooLargeError(
                f"a tuple may match {most} times, and {settings.policy} takes a table of as many "
                "numbers; use --device cpu"
            )
        table = np.empty(1 + most)
        factor(np.arange(table.size, dtype=np.float64), rules.b, table)
    return Tabulated(x, y, column, table)


_FILLERS: dict[Callable[..., float], Callable[..., None]] = {}


def _filler(factor: Callable[..., float]) -> Callable[..., None]:
    """Return a compiled loop of `factor`, which rounds as the CPU's kernels do."""
    if factor not in _FILLERS:

        def fill(values: Floats, exponent: float, out: Floats) -> None:
            for i in range(values.size):
                out[i] = factor(values[i], exponent)

        _FILLERS[factor] = jit(fill, cached=False)
    return _FILLERS[factor]


def history_counts(lane: LaneColumns, rules: ReplayRules) -> tuple[Floats, Floats]:
    """Return the match count at arrival of each tuple by the history estimator (section 2)."""
    sides = lane.left, lane.right
    seen = tuple(np.zeros(side.ts.size, np.int64) for side in sides)
    _count_seen(
        lane.left.ts, lane.left.key, lane.right.ts, lane.right.key,
        *both(lane.key_links), np.zeros(2 * lane.keys, np.int64), seen[0], seen[1],
    )  # fmt: skip
    found = []
    windows = (rules.window_right, rules.first_right), (rules.window_left, rules.first_left)
    for own, counts, (window, first) in zip(sides, seen, windows, strict=True):
        since = (own.ts - first + 1).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            m = counts * (np.float64(window + 1) / since)
        found.append(np.where(counts > 0, m, 0.0))
    return found[0], found[1]


@compiled
def _count_seen(
    left_ts: Ints, left_key: NDArray[np.int32], right_ts: Ints, right_key: NDArray[np.int32],
    left_links: KeyLinks | None, right_links: KeyLinks | None, counts: Ints, left_seen: Ints,
    right_seen: Ints,
) -> None:  # fmt: skip
    """Write how many opposite tuples each one joins of those so far, its own instant included."""
    i = j = 0
    while i < left_ts.size or j < right_ts.size:
        if j >= right_ts.size or (i < left_ts.size and left_ts[i] <= right_ts[j]):
            now = left_ts[i]
        else:
            now = right_ts[j]
        end, stop = i, j
        while end < left_ts.size and left_ts[end] == now:
            counts[2 * np.int64(left_key[end])] += 1
            end += 1
        while stop < right_ts.size and right_ts[stop] == now:
            counts[2 * np.int64(right_key[stop]) + 1] += 1
            stop += 1
        for row in range(i, end):
            left_seen[row] = joined_with(left_links, counts, left_key[row], 1)
        for row in range(j, stop):
            right_seen[row] = joined_with(right_links, counts, right_key[row], 0)
        i, j = end, stop


class LaneValues(NamedTuple):
    """The values of one lane's tuples by the value model, and its tables."""

    values: Floats
    """(left rows + right rows,) float64."""
    tables: tuple[Floats, Floats]
    """(left, right) of float64. Number of parts, rows after which each begins, and each one's
    table."""
    buckets: int


def lane_values(lane: LaneColumns, terms: Terms) -> LaneValues:
    """Estimate what the tuples of a lane are worth, on the host. O(rows)."""
    valued = estimate_of(terms, lane.facts).push(_stream(lane, 0), _stream(lane, 1))
    begins = [0, *(part.left + part.right for part in valued.parts[:-1])]
    head = np.array([len(begins), *begins], np.float64)
    left, right = (
        np.concatenate([head, *(part.table[side].reshape(-1) for part in valued.parts)])
        for side in range(2)
    )
    return LaneValues(np.concatenate(valued.values), (left, right), terms.buckets)


def _stream(lane: LaneColumns, side: int) -> StreamBatch:
    own = (lane.left, lane.right)[side]
    if lane.codes is not None:
        return StreamBatch(own.ts, own.row, lane.codes[side], own.importance)
    names = np.arange(lane.keys) if lane.names is None else lane.names
    return StreamBatch(own.ts, own.row, names[own.key], own.importance)


def place_values(
    lanes: Sequence[LaneColumns], terms: Terms, numbers: Sequence[int], integers: Ints
) -> tuple[Floats, Floats]:
    """Put values and tables of all lanes behind each other and tell replays where theirs lie.

    Parameters
    ----------
    lanes : sequence of LaneColumns
    terms : Terms
    numbers : sequence of int
        The lane of each replay.
    integers : (replays, len(LANE_INTEGERS)) int64
        Changed: where the tables of both sides begin, and their buckets.

    Returns
    -------
    values : (rows,) float64
        By row of the streams; 0 on lanes that no replay is of.
    tables : (n,) float64
    """
    found = {number: lane_values(lanes[number], terms) for number in sorted(set(numbers))}
    values = [
        found[number].values if number in found else np.zeros(lane.rows)
        for number, lane in enumerate(lanes)
    ]
    places: dict[int, tuple[int, int]] = {}
    size = 0
    for number, own in found.items():
        left, right = (table.size for table in own.tables)
        places[number] = size, size + left
        size += left + right
    for replay, number in enumerate(numbers):
        for side, name in enumerate(("left", "right")):
            integers[replay, LANE_INTEGERS.index(f"{name}_table")] = places[number][side]
            integers[replay, LANE_INTEGERS.index(f"{name}_buckets")] = terms.buckets
    tables = np.concatenate([table for own in found.values() for table in own.tables])
    return np.concatenate(values), tables
