"""A tuple's walk by the threads of a warp together (see `gpu_kernels.multiway.walk`).

The threads compare neighbouring tuples of a run at once, a *group*. A ballot shows all of them who
agrees, and the partial results go on one after the other, in the order of the tuples: the outputs
are found, and their importance is added, in the order in which one thread would find them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import cuda

from gpu_kernels.compiler import device_function
from gpu_kernels.multiway.predicates import Array, holds
from gpu_kernels.multiway.walk import (
    DEPTH,
    END,
    ENDED,
    MEMBER,
    POSITION,
    RUN,
    STACK_COLUMNS,
    begin_walk,
    taken,
)
from gpu_kernels.portable import Integer
from gpu_kernels.teams import Team

PENDING = 4
"""Row of a walk's stack behind `gpu_kernels.multiway.walk`'s: who agreed and has not gone on."""
ROWS = 5
COMPARED, PASSED = range(2)
"""Rows of a walk's tally: tuples compared and gone on with, by hop."""
SAVED = ROWS * STACK_COLUMNS + 1
"""Numbers of a walk that waits: its stack, and the number of its next output."""
ALL = 0xFFFFFFFF
"""The mask of a whole warp."""


class Join(NamedTuple):
    """The common inputs of all walks, within a kernel."""

    clique: Any
    """int64. Not 0: a member must agree with all members before it."""
    bound: Any
    """float64."""
    places: Any
    """(n,) int64. Place among all tuples of each admitted tuple."""
    code: Any
    value: Any
    first: Any
    item: Any
    weight: Any
    """`code`, `value`, `first`, `item`, `weight`: Attributes, see
    `gpu_kernels.multiway.predicates.holds`."""


class Walk(NamedTuple):
    """Device functions of a team that all its threads call together."""

    ballot: Any
    """``(bool) -> int64``: a bit for each thread whose answer is yes."""
    next_group: Any
    """Go on to the next outputs; see `make_walk`."""
    back: Any
    """``(stack, hops)``: put a walk back before the group it has just found."""


@device_function
def prepare(stack: Array, tally: Array, bounds: Array, runs: Array, hops: Integer) -> None:
    """Start a team's walk, with nothing counted.

    Parameters
    ----------
    stack : (5, 8) int64
        Written.
    tally : (2, 8) int64
        Set to 0.
    bounds : (runs, 2) int64
    runs : (hops + 1,) int64
    hops : int64
        See `gpu_kernels.multiway.walk.begin_walk`.
    """
    for hop in range(hops):
        tally[COMPARED, hop] = 0
        tally[PASSED, hop] = 0
        stack[PENDING, hop] = 0
    begin_walk(stack, bounds, runs, hops)


@device_function
def save(stack: Array, number: Integer, saved: Array) -> None:
    """Write a walk and the number of the next output that it finds.

    Parameters
    ----------
    stack : (5, 8) int64
    number : int64
    saved : (SAVED,) int64
        Written.
    """
    for row in range(ROWS):
        for column in range(STACK_COLUMNS):
            saved[row * STACK_COLUMNS + column] = stack[row, column]
    saved[SAVED - 1] = number


@device_function
def restore(saved: Array, stack: Array) -> Integer:
    """Restore a saved walk; return the number of its next output.

    Parameters
    ----------
    saved : (SAVED,) int64
        As `save` has written it.
    stack : (5, 8) int64
        Written.

    Returns
    -------
    int64
    """
    for row in range(ROWS):
        for column in range(STACK_COLUMNS):
            stack[row, column] = saved[row * STACK_COLUMNS + column]
    return saved[SAVED - 1]


@device_function
def enter(stack: Array, bounds: Array, hop: Integer, run: Integer) -> None:
    """Enter a run of a hop.

    Parameters
    ----------
    stack : (5, 8) int64
        Written.
    bounds : (runs, 2) int64
        Where each run begins and ends.
    hop, run : int64
    """
    stack[RUN, hop] = run
    stack[POSITION, hop] = bounds[run, 0]
    stack[END, hop] = bounds[run, 1]
    stack[PENDING, hop] = 0


@device_function
def lowest(mask: Integer) -> Integer:
    """Return the number of the lowest bit of a mask that has one."""
    return np.int64(cuda.popc((mask & -mask) - 1))


@device_function
def ballot(answer: bool) -> Integer:
    """Return a bit for each thread of the warp whose answer is yes: int64."""
    return np.int64(cuda.ballot_sync(ALL, answer)) & np.int64(ALL)


def make_walk(team: Team, kind: int, theta: Any) -> Walk:  # noqa: ANN401 - a device function
    """Return the walk of a team on a predicate.

    Parameters
    ----------
    team : Team
        Of a warp.
    kind : int
        Index among `gpu_kernels.multiway.predicates.KINDS`.
    theta : device function
        Of two vectors; called for theta only.
    """
    rank, width = team.rank, team.width

    @device_function
    def agrees(join: Join, place: Integer, stack: Array, depth: Integer, other: Integer) -> Integer:
        """Return whether a tuple agrees with the current partial result."""
        others = depth if join.clique != 0 else np.int64(0)
        for hop in range(-1, others):
            member = place if hop < 0 else stack[MEMBER, hop]
            if not holds(
                kind, join.bound, theta, join.code, join.value, join.first, join.item, join.weight,
                member, other,
            ):  # fmt: skip
                return False
        return True

    @device_function
    def compare_group(
        join: Join, place: Integer, stack: Array, depth: Integer, shred: float, tally: Array
    ) -> Integer:
        """Compare the next group at a depth; return who agrees: int64, a bit a thread."""
        position = stack[POSITION, depth]
        end = stack[END, depth]
        mine = position + rank()
        looks = mine < end
        looked = min(end - position, np.int64(width))
        if depth == 0 and shred <= 1.0:
            looks = looks and taken(end - 1 - mine, shred)
            looked = np.int64(cuda.popc(ballot(looks)))
        met = False
        if looks and agrees(join, place, stack, depth, join.places[mine]):
            met = True
        who = ballot(met)
        stack[POSITION, depth] = position + width
        tally[COMPARED, depth] += looked
        tally[PASSED, depth] += cuda.popc(who)
        return who

    @device_function
    def next_group(
        join: Join, place: Integer, stack: Array, bounds: Array, runs: Array, hops: Integer,
        shred: float, tally: Array,
    ) -> Integer:  # fmt: skip
        """Advance to the next group with outputs: return whose tuples are their last members.

        0 where there is no more. The thread of rank r has tuple ``stack[POSITION, hops - 1] -
        width + r``; members of the hops before are in ``stack[MEMBER]``. Each thread has a stack
        and a tally of its own, equal to the others'.

        Parameters
        ----------
        join : Join
        place : int64
            Of the tuple that walks.
        stack : (5, 8) int64
        bounds : (runs, 2) int64
        runs : (hops + 1,) int64
        hops : int64
        shred : float64
            The throttle fraction, where the tuple is shredded; else more than 1.
        tally : (2, 8) int64
            Added to.
        """
        depth = stack[POSITION, DEPTH]
        while depth >= 0:
            pending = stack[PENDING, depth]
            if pending != 0:
                stack[PENDING, depth] = pending & (pending - 1)
                stack[MEMBER, depth] = join.places[stack[POSITION, depth] - width + lowest(pending)]
                depth += 1
                enter(stack, bounds, depth, runs[depth])
            elif stack[POSITION, depth] < stack[END, depth]:
                who = compare_group(join, place, stack, depth, shred, tally)
                if depth < hops - 1:
                    stack[PENDING, depth] = who
                elif who != 0:
                    stack[POSITION, DEPTH] = depth
                    return who
            elif stack[RUN, depth] + 1 < runs[depth + 1]:
                enter(stack, bounds, depth, stack[RUN, depth] + 1)
            else:
                depth -= 1
        stack[POSITION, DEPTH] = ENDED
        return np.int64(0)

    @device_function
    def back(stack: Array, hops: Integer) -> None:
        """Put a walk back before the group that it has just found."""
        stack[POSITION, hops - 1] -= width

    return Walk(ballot, next_group, back)
