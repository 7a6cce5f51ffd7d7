"""Tournaments of ranks against a sorted list, and ordinals against their numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreted_too import only_interpreted

from engine.policies import Structure
from engine.replay import layout, tournament
from engine.replay.allocate import join_memory
from engine.runtime.errors import SpecError
from engine.runtime.jit import NONE
from engine.runtime.ordinals import LAST, numbered, ordinal, precede

NUMBERS = st.one_of(
    st.floats(allow_nan=False), st.sampled_from([0.0, -0.0, math.inf, -math.inf, 5e-324, 1.0])
)
RANKS = st.tuples(*[st.sampled_from([-1.5, -0.0, 0.0, 2.0])] * 3)

SOME = settings(deadline=None, derandomize=True)


@SOME
@given(NUMBERS, NUMBERS)
def test_ordinals_are_in_the_order_of_numbers(one: float, other: float) -> None:
    assert (ordinal(one) < ordinal(other)) == (one < other)
    assert (ordinal(one) == ordinal(other)) == (one == other)
    assert numbered(np.uint64(ordinal(one))) == one
    assert ordinal(one) < LAST


@SOME
@given(st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8))
def test_the_first_word_to_differ_decides(words: list[int]) -> None:
    given_words = [np.uint64(word) for word in words]
    assert precede(*given_words) == (words[:4] < words[4:])


@pytest.mark.parametrize("places", [1, 2, 3, 7, 8, 13])
@SOME
@given(changes=st.lists(st.tuples(st.integers(0, 99), st.sampled_from("eclfr"), RANKS)))
def test_the_least_rank_wins(
    places: int, changes: list[tuple[int, str, tuple[float, float, float]]]
) -> None:
    """Slots are entered, and again with another rank, left by the least, freed, or all ranked."""
    memory = join_memory(places, Structure.STATIC, None, 9)
    held: dict[int, tuple[float, float, float, int]] = {}
    for seq, (which, change, rank) in enumerate(changes):
        if change == "e" and len(held) < places:
            at = [slot for slot in range(places) if slot not in held][which % (places - len(held))]
            held[at] = (*rank, seq)
            slot = memory.slots[at]
            slot["priority"], slot["importance"], slot["m"], slot["seq"] = held[at]
            tournament.enter(memory.tree, memory, np.int64(at), *rank, np.int64(seq))
        elif change == "c" and held:
            at = sorted(held)[which % len(held)]
            held[at] = (rank[0], held[at][1], rank[2], held[at][3])
            slot = memory.slots[at]
            slot["priority"], slot["importance"], slot["m"], _ = held[at]
            tournament.enter(memory.tree, memory, np.int64(at), *held[at][:3], held[at][3])
        elif change == "l" and held:
            at = tournament.least(memory)
            tournament.vacate(memory.tree, memory, at)
            assert min(held.values()) == held.pop(at)
            memory.slots["seq"][at] = NONE
        elif change == "f" and held:
            at = sorted(held)[which % len(held)]
            del held[at]
            memory.slots["seq"][at] = NONE
        elif change == "r":
            _chain(memory, sorted(held, key=lambda at: held[at][3]))
            tournament.rank(memory, True)
        if held:
            assert held[tournament.least(memory)] == min(held.values())
            assert not tournament.precedes_all(
                memory.tree, memory, *min(held.values())[:3], np.int64(seq + 1)
            )
            assert tournament.precedes_all(memory.tree, memory, -math.inf, 0.0, 0.0, np.int64(seq))


def _chain(memory: layout.Memory, slots: list[int]) -> None:
    """Chain the slots in their order of arrival."""
    memory.n[layout.OLDEST] = slots[0] if slots else NONE
    for at, newer in zip(slots, [*slots[1:], NONE], strict=False):
        memory.slots["newer"][at] = newer


def test_ranks_below_zero_are_interpreted_too() -> None:
    memory = join_memory(2, Structure.STATIC, None, 9)
    memory.slots["seq"] = [0, 1]
    with only_interpreted():
        for at, priority in enumerate((-1.0, -2.0)):
            tournament.enter(memory.tree, memory, np.int64(at), priority, 0.0, 0.0, np.int64(at))
        assert tournament.least(memory) == 1
        assert numbered(memory.tree["priority"][1]) == -2.0


def test_more_arrivals_than_numbers_are_refused() -> None:
    memory = join_memory(1 << 10, Structure.STATIC, None, 9)
    memory.n[layout.SEQ] = (1 << 54) - 10
    tournament.check_arrivals(memory, 9)
    with pytest.raises(SpecError, match=r"18,014,398,509,481,984 tuples or more.*1,024 of its"):
        tournament.check_arrivals(memory, 10)
