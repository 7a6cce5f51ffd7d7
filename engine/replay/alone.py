"""An instant of one arrival in an equi-join: all of its steps at once.

Most instants of a lane have one arrival. Then nothing is to be chained, counted for others or
forgotten, and but for the sums nothing is written unless it matches or is admitted.
"""

from __future__ import annotations

import numpy as np

from engine.facts.key_links import Partners
from engine.policies import Structure
from engine.replay.instant import expire, hasten
from engine.replay.layout import (
    MEMORY_ESTIMATOR,
    OLDEST,
    SEQ,
    Arrivals,
    Memory,
    Outputs,
    ReplayRules,
    Tallies,
)
from engine.replay.probe import has_room, probe_residents
from engine.replay.ranks import admit_ranked, reward
from engine.runtime.jit import NONE, Integer, Records, nth, woven
from engine.runtime.jit import kernel as compiled

_LEFT, _RIGHT = np.int64(0), np.int64(1)
_NO_FACT = np.int32(-1)
_STATIC, _DECAY = int(Structure.STATIC), int(Structure.DECAY)


@compiled
def allowed(rules: ReplayRules, partners: Partners | None) -> bool:
    """Tell whether arrivals that are alone in their instants can be replayed by `replay_alone`."""
    if partners is not None:
        return False
    return bool(
        rules.structure in (_STATIC, _DECAY)
        and rules.estimator == MEMORY_ESTIMATOR
        and not rules.after_admission
    )


@compiled
def is_alone(
    rules: ReplayRules, arrivals: Arrivals, i: Integer, now: Integer, keys: Records, side: Integer,
    out: Outputs, progress: Records,
) -> bool:  # fmt: skip
    """Tell whether no arrival of its side follows `i` at `now`, and its outputs have room."""
    if i + 1 < arrivals.ts.size and arrivals.ts[nth(i + 1)] == now:
        return False
    return not rules.emit or has_room(
        keys, None, np.int64(arrivals.key[nth(i)]), side, out, progress
    )


@compiled
def _first_due(memory: Memory, window: Integer, now: Integer) -> Integer:
    """Return a tick before which nobody of a side expires, whoever else arrives from `now` on."""
    oldest = memory.n[OLDEST]
    since = now if oldest == NONE else memory.slots[nth(oldest)].ts
    return since + window + 1  # beyond int64 it wraps below every tick: then step 1 is always done


@woven
def expire_both(
    rules: ReplayRules, left_memory: Memory, right_memory: Memory, keys: Records, now: Integer
) -> Integer:
    """Do step 1, and return a tick before which it need not be done again."""
    expire(rules, left_memory, right_memory, keys, None, _LEFT, now - rules.window_left, now)
    expire(rules, right_memory, left_memory, keys, None, _RIGHT, now - rules.window_right, now)
    return min(
        _first_due(left_memory, rules.window_left, now),
        _first_due(right_memory, rules.window_right, now),
    )


@woven
def replay_alone(
    rules: ReplayRules, memory: Memory, opposite: Memory, keys: Records, arrivals: Arrivals,
    i: Integer, side: Integer, now: Integer, out: Outputs, tallies: Tallies, progress: Records,
    sums: Records, priority_at_arrival: Records,
) -> None:  # fmt: skip
    """Do steps 2 to 5 for arrival `i` of `side`, which is alone."""
    key = np.int64(arrivals.key[nth(i)])
    theirs = keys[nth(2 * key + 1 - side)]
    hasten(arrivals, i, keys, None, side, opposite)
    seq = memory.n[SEQ] + i
    m = np.float64(theirs.residents)
    if theirs.head != NONE:
        if now >= rules.start_ts:
            probe_residents(
                rules, arrivals, i, seq, side, False, opposite, np.int64(theirs.head),
                np.int64(theirs.residents), key, _NO_FACT, out, tallies, progress, sums,
            )  # fmt: skip
        if rules.structure == _DECAY:
            reward(
                rules, opposite, 1 - side, np.int64(theirs.head), np.int64(theirs.residents),
                np.float64(keys[nth(2 * key + side)].residents + 1), now,
            )  # fmt: skip
    admit_ranked(rules, memory, keys, side, arrivals, i, seq, m, now, priority_at_arrival)
