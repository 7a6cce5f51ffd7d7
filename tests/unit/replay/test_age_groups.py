"""Groups of residents by age and state against a list of all of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from engine.policies import Structure
from engine.replay import age_buckets, valued
from engine.replay.age_edges import grow_older
from engine.replay.age_groups import change_state, leave, lowest, newest_lowest, priority_at
from engine.replay.allocate import empty_keys, join_memory
from engine.replay.layout import Memory
from engine.replay.memory import remove
from engine.runtime.jit import Integer, Records, kernel

LOOK, PUT, LEAVE, MATCH = range(4)


class Resident(NamedTuple):
    """What the memory should hold."""

    slot: int
    ts: int
    seq: int
    value: float
    state: int = 0


@kernel
def step(
    memory: Memory, keys: Records, what: Integer, at: Integer, now: Integer, seq: Integer,
    value: float, window: Integer,
) -> Integer:  # fmt: skip
    """Change the memory; return the slot of the change, or of the least rank."""
    if what == PUT:
        return valued.put(memory, keys, 0, window, 0, now, seq, seq, 1.0, value)
    if what == LEAVE:
        leave(memory, at)
        remove(memory, keys, 0, at)
    elif what == MATCH:
        change_state(memory, at)
    else:
        grow_older(memory, now)
        return newest_lowest(memory)
    return at


@kernel
def look(memory: Memory, at: Integer, now: Integer) -> tuple[float, float, float]:
    """Return the least priority and value, and the priority of the resident in a slot."""
    priority, value, _ = lowest(memory)
    return priority, value, priority_at(memory, np.int64(memory.slots[at].at), now)


@pytest.mark.parametrize("buckets", [1, 2, 5, 32])
@pytest.mark.parametrize("values", [1, 3, 10**6])
@pytest.mark.parametrize("pace", [1, 2, 3, 40])
def test_the_least_is_that_of_a_list(buckets: int, values: int, pace: int) -> None:
    compare(buckets, values, pace, np.random.default_rng(buckets + values + pace))


@pytest.mark.parametrize(
    ("buckets", "values", "pace", "seed"),
    [
        (5, 30, 2, 102), (5, 10**6, 2, 107), (5, 30, 3, 124), (32, 10**6, 2, 122),
        (5, 10**6, 3, 2), (32, 30, 3, 1), (64, 30, 2, 5),
    ],
)  # fmt: skip
def test_a_tuple_that_passed_an_edge_unseen_is_not_in_the_group_that_it_left(
    buckets: int, values: int, pace: int, seed: int
) -> None:
    compare(buckets, values, pace, np.random.default_rng((buckets + values + pace, seed)))


def compare(buckets: int, values: int, pace: int, rng: np.random.Generator) -> None:
    """Change a memory at random, and look for the least of it and of a list."""
    window, budget = 99, 90
    memory = join_memory(budget, Structure.VALUED, None, window, buckets)
    keys, held, now = empty_keys(1), list[Resident](), 0
    table = np.ones(2 * buckets)
    for seq in range(1000):
        now += int(rng.integers(pace)) + (3 * window if rng.random() < 0.01 else 0)
        for one in [one for one in held if now - one.ts > window]:
            step(memory, keys, LEAVE, one.slot, now, 0, 0.0, window)
            held.remove(one)
        if rng.random() < 0.05:
            table = np.round(rng.random(2 * buckets), 1) if rng.random() < 0.8 else table * 0
            age_buckets.rank_by(memory, table)
        if len(held) < budget and rng.random() < 0.9:
            value = float(rng.integers(values))
            slot = step(memory, keys, PUT, 0, now, seq, value, window)
            held.append(Resident(slot, now, seq, value))
        for _ in range(int(rng.integers(9)) if held else 0):
            place = int(rng.integers(len(held)))
            if rng.random() < 0.5 and held[place].state == 0:
                step(memory, keys, MATCH, held[place].slot, now, 0, 0.0, window)
                held[place] = held[place]._replace(state=1)
        if held and rng.random() < 0.8:

            def rank(one: Resident, now: int = now, table: np.ndarray = table) -> tuple[float, ...]:
                bucket = (now - one.ts) * buckets // (window + 1)
                priority = one.value * table[bucket + one.state * buckets]
                return priority, one.value, -one.ts, -one.seq

            least = min(held, key=rank)
            assert step(memory, keys, LOOK, 0, now, 0, 0.0, window) == least.slot
            other = held[int(rng.integers(len(held)))]
            found = look(memory, other.slot, now)
            assert found == (*rank(least)[:2], rank(other)[0])
            if rng.random() < 0.3:
                step(memory, keys, LEAVE, least.slot, now, 0, 0.0, window)
                held.remove(least)
