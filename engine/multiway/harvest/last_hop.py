"""The last hop of a walk: which of its matches make outputs, which are written at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.harvest.matching import agree
from engine.multiway.harvest.walk_layout import Walk, WalkJoin
from engine.multiway.predicate import Condition
from engine.runtime.jit import Floats, Integer, Ints, kernel
from gpu_kernels.multiway.predicates import BAND
from gpu_kernels.multiway.walk import importance_of

_EXACT = 2.0**53
_THREE = 3
"""Streams whose outputs are written without a loop over them."""


@kernel
def agrees(
    join: WalkJoin, condition: Condition, stream: Integer, hop: Integer, other: Integer, walk: Walk
) -> bool:
    """Return whether a tuple agrees with all members before its hop."""
    for before in range(hop):
        member = walk.members[join.plans.order[stream, before]]
        if not agree(condition, join.streams.attributes, join.matching, member, other):
            return False
    return True


@kernel
def _ends(
    join: WalkJoin, stream: Integer, hop: Integer, walk: Walk
) -> tuple[float, float]:  # fmt: skip
    """Return the least and the greatest value of the members before a hop.

    What is at most EPS above the one and below the other is near all: rounding never turns an order
    round.
    """
    least, most = np.inf, -np.inf
    for before in range(hop):
        own = join.matching.flat[walk.members[join.plans.order[stream, before]]]
        least, most = min(least, own), max(most, own)
    return least, most


@kernel
def last_matches(
    join: WalkJoin, condition: Condition, stream: Integer, hop: Integer, walk: Walk
) -> Integer:
    """Return how many matches of the last hop go on; of a clique, write which."""
    number, going, matches = walk.number[hop], np.int64(0), walk.matches[walk.begin[hop] :]
    if not join.rules.clique or hop == 0:
        return number
    if condition.kind == BAND:
        bound = condition.bound
        least, most = _ends(join, stream, hop, walk)
        for at in range(number):
            value = walk.value[at]
            walk.going[going] = matches[at]
            going += np.int64((value - least <= bound) & (most - value <= bound))
        return going
    for at in range(number):
        if agrees(join, condition, stream, hop, matches[at], walk):
            walk.going[going] = matches[at]
            going += 1
    return going


@kernel
def write_near(
    join: WalkJoin, bound: float, stream: Integer, other: Integer, walk: Walk, members: Ints,
    written: Integer,
) -> Integer:  # fmt: skip
    """Write the members of the outputs of a band's last hop at once; return where they end.

    There is room for as many as the hop has matches.
    """
    hop, sides = walk.number.size - 1, walk.members.size
    least, most = _ends(join, stream, hop, walk)
    begin = walk.begin[hop]
    if sides == _THREE:
        one, two, three = walk.members[0], walk.members[1], walk.members[2]
        for at in range(walk.number[hop]):
            value = walk.value[at]
            members[written, 0] = one
            members[written, 1] = two
            members[written, 2] = three
            members[written, other] = walk.matches[begin + at]
            written += np.int64((value - least <= bound) & (most - value <= bound))
        return written
    for at in range(walk.number[hop]):
        value = walk.value[at]
        for side in range(sides):
            members[written, side] = walk.members[side]
        members[written, other] = walk.matches[begin + at]
        written += np.int64((value - least <= bound) & (most - value <= bound))
    return written


@kernel
def write_members(
    join: WalkJoin, other: Integer, at: Integer, end: Integer, walk: Walk, members: Ints,
    written: Integer,
) -> None:  # fmt: skip
    """Write the members of outputs of the last hop."""
    begin, sides, hop = written - at, walk.members.size, walk.number.size - 1
    going = walk.going[0:] if join.rules.clique and hop else walk.matches[walk.begin[hop] :]
    if sides == _THREE:
        one, two, three = walk.members[0], walk.members[1], walk.members[2]
        for k in range(at, end):
            members[begin + k, 0] = one
            members[begin + k, 1] = two
            members[begin + k, 2] = three
            members[begin + k, other] = going[k]
        return
    for k in range(at, end):
        for side in range(sides):
            members[begin + k, side] = walk.members[side]
        members[begin + k, other] = going[k]


@kernel
def weigh_rows(
    join: WalkJoin, members: Ints, importance: Floats, begin: Integer, end: Integer, total: float
) -> float:  # fmt: skip
    """Write the importance of outputs whose members are written; return it added to `total`."""
    for row in range(begin, end):
        value = importance_of(
            join.rules.combine, join.streams.importance, members[row], members.shape[1]
        )
        importance[row] = value
        total += value
    return total


@kernel
def weigh_unwritten(
    join: WalkJoin, other: Integer, end: Integer, walk: Walk, total: float
) -> float:  # fmt: skip
    """Return the importance of outputs of the last hop, of which none is written."""
    hop = walk.number.size - 1
    going = walk.going[0:] if join.rules.clique and hop else walk.matches[walk.begin[hop] :]
    for k in range(end):
        walk.members[other] = going[k]
        total += importance_of(
            join.rules.combine, join.streams.importance, walk.members, walk.members.size
        )
    return total


@kernel
def repeated(value: float, times: Integer) -> Any:  # noqa: ANN401 - numba's
    """Return the sum of equal numbers as it comes about one by one."""
    if value == np.floor(value) and value * times < _EXACT:
        return value * times
    total = 0.0
    for _ in range(times):
        total += value
    return total
