"""The outputs of an instant, fact by fact: count them and, if wanted, write them.

What a fact joins is gathered stream by stream, residents before arrivals. Combinations with an
arrival of the instant are then those of m *units*: in unit l the streams before l give residents,
l arrivals, and those behind it both; so each is in one unit.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import NONE, Floats, Integer, Ints, inlined
from engine.star import layout
from engine.star.combinations import (
    DENSE,
    combinations,
    importance_of,
    least_of_each,
    member,
    next_one,
    set_parts,
)
from engine.star.layout import StarOutputs, StarRules, StarState, StarStreams, StarTallies
from engine.star.memory import first_live
from engine.star.pool import StarPool
from engine.star.yields import note_yields
from gpu_kernels.combine import MAX, MEAN, MIN, PRODUCT, neumaier


@inlined
def _meets(streams: StarStreams, state: StarState, fact: Integer) -> bool:
    """Return whether a fact has a tuple of every stream."""
    sides = streams.first.size - 1
    for place in range(fact * sides, (fact + 1) * sides):
        if state.held[place] + state.arrived[place] == 0:
            return False
    return True


@inlined
def _gather(
    rules: StarRules, streams: StarStreams, state: StarState, fact: Integer, now: Integer
) -> None:
    """Write what a fact joins to the pool: older residents, then arrivals. O(of both, versions)."""
    sides = streams.first.size - 1
    for side in range(sides):
        at = state.pool_room[side]
        stop = streams.spans[fact * sides + side, 1]
        start = first_live(rules, streams, state, fact, side, now)
        for arrivals in range(2):
            version = start
            while version < stop and streams.arrives[version, 0] <= now:
                chain = state.chain if arrivals else state.after
                one = np.int64(state.arrival[version] if arrivals else state.head[version])
                while one != NONE:
                    if arrivals or streams.ts[one] < now:
                        state.pool[at] = one
                        state.pool_importance[at] = streams.importance[one]
                        at += 1
                    one = np.int64(chain[one])
                version += 1
            state.sizes[side, arrivals] = at - state.pool_room[side]


@inlined
def _total_importance(rules: StarRules, state: StarState, outputs: float) -> float:
    """Return the importance of a unit's outputs, added up without trying them all if many."""
    sides = state.sizes.shape[0]
    tuples = 0.0
    for side in range(sides):
        tuples += np.float64(state.part[side, 1])
    if rules.combine in (MIN, MAX) and outputs > DENSE * tuples:
        sign = 1.0 if rules.combine == MIN else -1.0
        return sign * least_of_each(state, sign, 0.0)
    total = 0.0
    if rules.combine in (MIN, MAX):
        state.counter[:] = 0
        for _ in range(np.int64(outputs)):
            total += importance_of(rules, state)
            next_one(state)
        return total
    if rules.combine == PRODUCT:
        total = 1.0
    for side in range(sides):
        begin, size = state.part[side, 0], state.part[side, 1]
        own = 0.0
        for i in range(begin, begin + size):
            own += state.pool_importance[i]
        if rules.combine == PRODUCT:
            total *= own
        else:
            total += own * (outputs / np.float64(size))
    return total / np.float64(sides) if rules.combine == MEAN else total


@inlined
def _tally(
    rules: StarRules, state: StarState, fact: Integer, outputs: float, tallies: StarTallies,
    progress: Ints, sums: Floats,
) -> None:  # fmt: skip
    found, importance = np.int64(outputs), _total_importance(rules, state, outputs)
    tallies.by_fact[fact] += found
    tallies.importance_by_fact[fact] += importance
    tallies.by_bin[progress[layout.BIN]] += found
    tallies.importance_by_bin[progress[layout.BIN]] += importance
    sums[layout.HIGH], sums[layout.REST] = neumaier(
        sums[layout.HIGH], sums[layout.REST], importance
    )
    sums[layout.OUTPUTS] += outputs


@inlined
def _age(
    rules: StarRules, streams: StarStreams, state: StarState, ages: Ints, now: Integer
) -> None:
    """Count the outputs of a fact by the ages of their older members."""
    sides = state.sizes.shape[0]
    for side in range(sides):
        every, older = np.int64(1), np.int64(1)
        for other in range(sides):
            if other != side:
                every *= state.sizes[other, 1]
                older *= state.sizes[other, 0]
        begin = state.pool_room[side]
        for i in range(begin, begin + state.sizes[side, 0]):
            age = now - streams.ts[state.pool[i]]
            ages[side, (age - 1) * ages.shape[1] // rules.window[side]] += every - older


@inlined
def _write(
    rules: StarRules, streams: StarStreams, state: StarState, fact: Integer, outputs: Integer,
    out: StarOutputs, progress: Ints,
) -> bool:  # fmt: skip
    """Write the outputs of a unit from `progress[COMBINATION]` on; False if `out` is full."""
    sides = state.sizes.shape[0]
    rest = progress[layout.COMBINATION]
    for side in range(sides - 1, -1, -1):
        size = state.part[side, 1]
        state.counter[side] = rest % size
        rest //= size
    while progress[layout.COMBINATION] < outputs:
        at = progress[layout.WRITTEN]
        if at == out.ts.size:
            return False
        for side in range(sides):
            out.members[at, side] = state.pool[member(state, side)] - streams.first[side]
        out.ts[at] = progress[layout.NOW]
        out.importance[at] = importance_of(rules, state)
        out.fact[at] = fact
        progress[layout.WRITTEN] = at + 1
        progress[layout.COMBINATION] += 1
        next_one(state)
    return True


@inlined
def produce(
    rules: StarRules, streams: StarStreams, state: StarState, pool: StarPool | None,
    out: StarOutputs, tallies: StarTallies, progress: Ints, sums: Floats,
) -> bool:  # fmt: skip
    """Count and write the outputs of this instant; False if `out` must be emptied first.

    Facts that lack a tuple of some stream cost O(m); the others O(their tuples, and what is
    written).
    """
    sides = streams.first.size - 1
    while progress[layout.FACT] < progress[layout.TOUCHED]:
        fact = np.int64(state.touched[progress[layout.FACT]])
        if progress[layout.UNIT] == NONE and _meets(streams, state, fact):
            _gather(rules, streams, state, fact, progress[layout.NOW])
            note_yields(rules, streams, state, pool, progress[layout.NOW])
            if tallies.ages.shape[1] > 0 and progress[layout.NOW] >= rules.start_ts:
                _age(rules, streams, state, tallies.ages, progress[layout.NOW])
            if progress[layout.NOW] >= rules.start_ts:
                progress[layout.UNIT] = 0
        while NONE < progress[layout.UNIT] < sides:
            set_parts(state, progress[layout.UNIT])
            outputs = combinations(state)
            if outputs > 0.0:
                if progress[layout.COMBINATION] == NONE:
                    _tally(rules, state, fact, outputs, tallies, progress, sums)
                    progress[layout.COMBINATION] = 0
                if rules.emit and not _write(
                    rules, streams, state, fact, np.int64(outputs), out, progress
                ):
                    return False
            progress[layout.COMBINATION] = NONE
            progress[layout.UNIT] += 1
        progress[layout.UNIT] = NONE
        progress[layout.FACT] += 1
    progress[layout.FACT] = 0
    return True
