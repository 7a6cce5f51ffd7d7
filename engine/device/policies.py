"""The registry's policies as kernels get them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from engine.device.columns import LaneColumns
from engine.jit import jit
from engine.policies import Policy, Structure, Value, dgl, yield_
from engine.replay.layout import ESTIMATORS, HISTORY_ESTIMATOR, Rules
from engine.replay.settings import ReplaySettings
from gpu_kernels.portable import portable
from gpu_kernels.replay.layout import PolicyFunctions, Ranking
from gpu_kernels.replay.run import NOT_TABULATED, Tabulated

RANKINGS = {
    Structure.STATIC: Ranking.STATIC,
    Structure.KEYED: Ranking.BY_MATCHES,
    Structure.DECAY: Ranking.DECAYING,
    Structure.AGED: Ranking.BY_AGE,
    Structure.RERANK: Ranking.ANY,
    Structure.VALUED: Ranking.VALUED,
}


def policy_functions(settings: ReplaySettings) -> PolicyFunctions:
    """Return what the kernels compile in for a policy and its parameters.

    Settings that differ in numbers alone give equal functions, so that they share a kernel.
    """
    policy = settings.the_policy
    ranking = RANKINGS[policy.structure]
    ties = settings.parameters.get("ties", policy.ties)
    functions = PolicyFunctions(ranking, by_importance=ties == "importance")
    if ranking is Ranking.STATIC:
        arrival = policy.product or policy.arrival
        assert arrival is not None  # noqa: S101 - the registry's audit
        return functions._replace(
            arrival=arrival, tabulated=policy.product is not None, draws=policy.draws
        )
    if ranking is Ranking.DECAYING:
        return functions._replace(initial=dgl.initial, decayed=dgl.priority, gained=dgl.gained)
    if ranking is Ranking.VALUED:
        return functions._replace(worth=yield_.priority, by_importance=True)
    if ranking is Ranking.BY_AGE:
        return functions
    return functions._replace(now=_now(policy, settings.parameters))


def _now(policy: Policy, parameters: dict[str, Value]) -> Callable[..., float]:
    given = parameters.get("function")
    if callable(given):
        return portable(getattr(given, "py_func", given))
    assert policy.now is not None  # noqa: S101 - the registry's audit
    return policy.now


def tabulate(settings: ReplaySettings, rules: Rules, lane: LaneColumns) -> Tabulated:
    """Return the columns of a tabulated policy; the CPU's own function fills them.

    Parameters
    ----------
    settings : ReplaySettings
    rules : Rules
        Of the lane; the columns depend on its exponents, windows and first times alone.
    lane : LaneColumns

    Notes
    -----
    O(rows). A match count of the memory or the window is a whole number, at most the rows of a
    side: `m_table` has them all. One of the history is not, but does not depend on the replay.
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
        table = np.empty(1 + max(lane.left.ts.size, lane.right.ts.size))
        factor(np.arange(table.size, dtype=np.float64), rules.b, table)
    return Tabulated(x, y, column, table)


_FILLERS: dict[Callable[..., float], Callable[..., None]] = {}


def _filler(factor: Callable[..., float]) -> Callable[..., None]:
    """Return a compiled loop of `factor`, which rounds as the CPU's kernels do."""
    if factor not in _FILLERS:

        def fill(values: NDArray[np.float64], exponent: float, out: NDArray[np.float64]) -> None:
            for i in range(values.size):
                out[i] = factor(values[i], exponent)

        _FILLERS[factor] = jit(fill, cached=False)
    return _FILLERS[factor]


def history_counts(
    lane: LaneColumns, rules: Rules
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the match count at arrival of each tuple by the history estimator (section 2)."""
    found = []
    for own, opposite, window, first in (
        (lane.left, lane.right, rules.window_right, rules.first_right),
        (lane.right, lane.left, rules.window_left, rules.first_left),
    ):
        order = np.lexsort((opposite.ts, opposite.key))
        instants, ranks = np.unique(np.concatenate([own.ts, opposite.ts]), return_inverse=True)
        ranks = ranks.astype(np.int64)
        width = np.int64(instants.size)
        theirs = opposite.key[order] * width + ranks[own.ts.size :][order]
        mine = own.key * width + ranks[: own.ts.size]
        seen = np.searchsorted(theirs, mine, "right") - np.searchsorted(theirs, own.key * width)
        since = (own.ts - first + 1).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            counts = seen * (np.float64(window + 1) / since)
        found.append(np.where(seen > 0, counts, 0.0))
    return found[0], found[1]
