"""The last hop of a walk: which of its matches make outputs, which are written at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from engine.multiway.harvest.probing.matching import agree
from engine.multiway.harvest.probing.walk_layout import Walk, WalkJoin
from engine.multiway.predicate import Condition
from engine.runtime.bits import WORD, lowest, near, population
from engine.runtime.jit import Floats, Integer, Ints, kernel
from gpu_kernels.multiway.predicates import BAND
from gpu_kernels.multiway.walk import importance_of

_EXACT = 2.0**53
_THREE = 3
"""Streams whose members are written without a loop over them."""


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
def _near_word(
    walk: Walk, least: float, most: float, bound: float, at: Integer, number: Integer
) -> Any:  # noqa: ANN401 - a uint64
    """Return which of 64 matches of the last hop from `at` on are near two values."""
    bits = near(walk.value, at, least, most, bound)
    if number - at < WORD:
        bits &= (np.uint64(1) << np.uint64(number - at)) - np.uint64(1)
    return bits


@kernel
def near_number(
    join: WalkJoin, bound: float, stream: Integer, walk: Walk
) -> Integer:  # fmt: skip
    """Return how many matches of a band's last hop go on."""
    hop, going = walk.number.size - 1, np.int64(0)
    least, most = _ends(join, stream, hop, walk)
    for at in range(0, walk.number[hop], WORD):
        going += population(_near_word(walk, least, most, bound, at, walk.number[hop]))
    return going


@kernel
def last_matches(
    join: WalkJoin, condition: Condition, stream: Integer, hop: Integer, walk: Walk
) -> Integer:
    """Return how many matches of the last hop go on; of a clique, write which."""
    number, going, matches = walk.number[hop], np.int64(0), walk.matches[walk.begin[hop] :]
    if not join.rules.clique or hop == 0:
        return number
    if condition.kind == BAND:
        least, most = _ends(join, stream, hop, walk)
        for word in range(0, number, WORD):
            bits = _near_word(walk, least, most, condition.bound, word, number)
            while bits != 0:
                walk.going[going] = matches[word + lowest(bits)]
                going += 1
                bits &= bits - np.uint64(1)
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
    begin, one, two, three = walk.begin[hop], walk.members[0], walk.members[1], walk.members[2]
    for word in range(0, walk.number[hop], WORD):
        bits = _near_word(walk, least, most, bound, word, walk.number[hop])
        while bits != 0:
            members[written, 0] = one
            members[written, 1] = two
            members[written, 2] = three
            for side in range(_THREE, sides):
                members[written, side] = walk.members[side]
            members[written, other] = walk.matches[begin + word + lowest(bits)]
            written += 1
            bits &= bits - np.uint64(1)
    return written


@kernel
def write_rest_near(
    join: WalkJoin, bound: float, stream: Integer, hop: Integer, walk: Walk, members: Ints,
    written: Integer,
) -> Integer:  # fmt: skip
    """Write the members of the outputs of a band by the matches that are left of the hop but last.

    As far as there is room for as many as the last hop has matches; return where they end.
    """
    last, sides, begun = hop + 1, walk.members.size, written
    own, other = join.plans.order[stream, hop], join.plans.order[stream, last]
    first, begin, number = walk.begin[hop], walk.begin[last], walk.number[last]
    at, end, tuple_ = walk.at[hop], walk.number[hop], walk.members[stream]
    below, above = _ends(join, stream, hop, walk)
    while at < end and number <= members.shape[0] - written:
        one = walk.matches[first + at]
        value = join.matching.flat[one]
        at += 1
        if not (value - below <= bound and above - value <= bound):
            continue
        walk.passes[hop] += 1
        walk.members[own] = one
        least, most = min(below, value), max(above, value)
        for word in range(0, number, WORD):
            bits = _near_word(walk, least, most, bound, word, number)
            while bits != 0:
                if sides > _THREE:
                    for side in range(sides):
                        members[written, side] = walk.members[side]
                members[written, stream] = tuple_
                members[written, own] = one
                members[written, other] = walk.matches[begin + word + lowest(bits)]
                written += 1
                bits &= bits - np.uint64(1)
    walk.at[hop] = at
    walk.passes[last] += written - begun
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
