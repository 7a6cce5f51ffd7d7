"""Static ranks and DGL's: what one match earns, and whether one arrival stays (steps 4 and 5)."""

from __future__ import annotations

import numpy as np

from engine.policies import Structure, dgl
from engine.replay import decay, ranks
from engine.replay.layout import Arrivals, Integer, Memory, Records, Rules
from engine.runtime.jit import kernel as compiled
from engine.runtime.jit import nth

_STATIC, _DECAY = int(Structure.STATIC), int(Structure.DECAY)


@compiled
def reward(
    rules: Rules,
    memory: Memory,
    side: Integer,
    head: Integer,
    residents: Integer,
    m: float,
    now: Integer,
) -> None:
    """Raise the priorities of a key's residents, which match an arrival of this instant (DGL)."""
    if side == 0:
        alpha, beta, lifetime = rules.alpha_left, rules.beta_left, rules.window_left + 1
    else:
        alpha, beta, lifetime = rules.alpha_right, rules.beta_right, rules.window_right + 1
    tau = np.float64(now - rules.t0)
    decay.match(memory, head, residents, m, now, lifetime, beta * tau, beta * (tau - 1.0), alpha)


@compiled
def admit_ranked(
    rules: Rules,
    memory: Memory,
    keys: Records,
    side: Integer,
    arrivals: Arrivals,
    i: Integer,
    seq: Integer,
    m: float,
    now: Integer,
    priority_at_arrival: Records,
) -> None:
    """Decide who stays of the residents and an arrival, by a static rank or by DGL's (step 5)."""
    if side == 0:
        budget, beta = rules.budget_left, rules.beta_left
    else:
        budget, beta = rules.budget_right, rules.beta_right
    key, row, importance = (
        np.int64(arrivals.key[nth(i)]),
        arrivals.row[nth(i)],
        arrivals.importance[nth(i)],
    )
    rel = np.float64(now - rules.t0)
    if rules.structure == _DECAY:
        lost = beta * rel
        value = dgl.initial(importance, m, rules.initial_by_importance) + lost
        decay.admit(memory, keys, side, budget, key, now, row, seq, importance, value, m, lost)
        return
    priority = arrivals.draw[nth(i)]
    if rules.structure == _STATIC:
        priority = priority_at_arrival(importance, m, rel, priority, rules.a, rules.b, rules.d)
    ranks.admit(
        memory, keys, side, budget, rules.ties_by_importance,
        key, now, row, seq, importance, priority, m,
    )  # fmt: skip
