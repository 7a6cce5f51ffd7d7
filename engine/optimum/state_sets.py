"""The memory states of one instant, their successors, and one copy of each (P1 4.2.1, P2 3.1.2).

A state is a row of positions of tuples, increasing, then FREE. Its value is P1's MI, the most that
any path from the start to it earns. Successors are merged by hashing (P2's InsertState): of equal
values the path that was found first stays.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import NONE, Floats, kernel

FREE = -1
_ROOM = 256
"""States there is room for at first."""

Rows = NDArray[np.int32]


class States(NamedTuple):
    """The states of one instant."""

    held: Rows
    """(s, width) int32. Positions of the tuples in memory, increasing, then FREE."""
    value: Floats
    """(s,) float64. MI."""


class Links(NamedTuple):
    """How states were reached: P1's prev."""

    prev: Rows
    """(s,) int32. The state before."""
    lost: Rows
    """(s,) int32. The tuple that gave its slot up or was not let in; NONE where there is none."""


@kernel
def place_of(row: Rows, table: Rows, held: Rows) -> Any:  # noqa: ANN401 - numba's int64
    """Return where a state stands in the hash table, or where it would."""
    code = np.uint64(0)
    for each in row:
        code = (code ^ np.uint64(each + 1)) * np.uint64(0x9E3779B97F4A7C15)
        code ^= code >> np.uint64(29)
    last = len(table) - 1
    place: Any = np.int64(code & np.uint64(last))
    while table[place] >= 0:
        same = True
        for k in range(len(row)):
            same = same and held[table[place], k] == row[k]
        if same:
            return place
        place = (place + 1) & last
    return place


@kernel
def enter(held: Rows, size: int, table: Rows) -> None:
    """Put states into an empty hash table."""
    for state in range(size):
        table[place_of(held[state], table, held)] = state


@kernel
def follow(
    held: Rows, value: Floats, first: int, newcomer: int, leaver: int, new: Rows, new_held: Rows,
    new_value: Floats, prev: Rows, lost: Rows, table: Rows, size: int,
) -> tuple[int, int]:  # fmt: skip
    """Gather successors of the states from `first` on, as long as there is room for one's.

    Returns
    -------
    (successors there are, the first state whose own are not among them)
    """
    width = held.shape[1]
    for state in range(first, len(value)):
        if size + width + 1 > len(new_value):
            return size, state
        row = held[state]
        taken, place = 0, -1
        for k in range(width):
            taken += row[k] != FREE
            if row[k] == leaver:
                place = k
        full = newcomer >= 0 and taken == width
        options = width + 1 if full else 1
        if leaver >= 0 and place >= 0:
            options = 2
        for option in range(options):
            out = width if option == 0 else option - 1 if full else place
            kept = 0
            for k in range(width):
                if k != out and row[k] != FREE:
                    new[kept] = row[k]
                    kept += 1
            goes = NONE if option == 0 else row[out]
            if newcomer >= 0 and kept < width:
                new[kept] = newcomer
                kept += 1
            elif full:
                goes = newcomer
            for k in range(kept, width):
                new[k] = FREE
            at = place_of(new, table, new_held)
            if table[at] < 0:
                table[at] = size
                for k in range(width):
                    new_held[size, k] = new[k]
                size += 1
            elif new_value[table[at]] >= value[state]:
                continue
            new_value[table[at]] = value[state]
            prev[table[at]] = state
            lost[table[at]] = goes
    return size, len(value)


@kernel
def earn(held: Rows, value: Floats, gain: Floats) -> None:
    """Add what the tuples in memory earn to each state's value."""
    for state in range(len(value)):
        earned = 0.0
        for each in held[state]:
            if each != FREE:
                earned += gain[each]
        value[state] += earned


@kernel
def drop(held: Rows, gone: NDArray[np.bool_]) -> None:
    """Remove the tuples that are gone from all states; some states may then coincide."""
    for state in range(len(held)):
        kept = 0
        for k in range(held.shape[1]):
            each = held[state, k]
            if each != FREE:
                held[state, k] = FREE
                if not gone[each]:
                    held[state, kept] = each
                    kept += 1


def start(width: int) -> States:
    """Return the start vertex: memory is empty."""
    return States(np.full((1, width), FREE, np.int32), np.zeros(1))


def successors(
    states: States, most: int, *, newcomer: int = NONE, leaver: int = NONE
) -> tuple[States, Links]:
    """Return the states after a decision, each once, with the best way to it.

    Parameters
    ----------
    states : States
        Equal ones become one.
    most : int
        It may stop where there are more than these.
    newcomer : int, optional
        A tuple that arrives, later than all others: it takes a free slot, or that of any other
        tuple, or is not let in.
    leaver : int, optional
        A tuple that may give its slot up.

    Returns
    -------
    (States, Links)
        O(states * width) successors; width times as much time.
    """
    width = states.held.shape[1]
    room = max(_ROOM, 2 * (width + 1))
    held, value = np.empty((room, width), np.int32), np.empty(room)
    prev, lost = np.empty(room, np.int32), np.empty(room, np.int32)
    table, new = np.full(2 * _power(room), -1, np.int32), np.empty(width, np.int32)
    size = done = 0
    while True:
        size, done = follow(
            *states, done, newcomer, leaver, new, held, value, prev, lost, table, size
        )
        if done == states.value.size or size > most:
            break
        more = value.size
        held = np.concatenate([held, np.empty_like(held)])
        value = np.concatenate([value, np.empty(more)])
        prev, lost = (np.concatenate([a, np.empty_like(a)]) for a in (prev, lost))
        table = np.full(2 * table.size, -1, np.int32)
        enter(held, size, table)
    return (
        States(held[:size].copy(), value[:size].copy()),
        Links(prev[:size].copy(), lost[:size].copy()),
    )


def _power(number: int) -> int:
    """Return the least power of two that is not less than `number`."""
    return 1 << (number - 1).bit_length()
