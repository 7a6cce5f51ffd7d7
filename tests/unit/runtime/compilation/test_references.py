"""Parts of compiled code get named tuples by reference, and read what they were given."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.registry import cpu_target

from engine.runtime.jit import Floats, Ints, jit, kernel, outlined


class Inner(NamedTuple):
    """A tuple in a tuple."""

    values: Floats
    least: float


class Outer(NamedTuple):
    """Arrays, a flag, a tuple, and what is not there."""

    counts: Ints
    flag: bool
    inner: Inner
    other: Inner | None


class Pair(NamedTuple):
    """Arrays of one type."""

    one: Floats
    other: Floats


def given() -> Outer:
    return Outer(np.arange(5), True, Inner(np.array([0.5, 2.0, 8.0]), 1.0), None)


@outlined
def _of_inner(inner: Inner | None) -> float:
    total = 0.0
    if inner is None:
        return total
    for i in range(inner.values.size):
        if inner.values[i] >= inner.least:
            total += inner.values[i]
    return total


@outlined
def _of_outer(outer: Outer) -> float:
    outer.counts[0] += 10
    found = 100.0 * _of_inner(outer.other) + outer.counts.sum()
    return found + _of_inner(outer.inner) if outer.flag else found


def total(outer: Outer) -> float:
    """Return what is only right if every field is read where it lies."""
    return _of_outer(outer) + outer.counts[0]


@pytest.mark.parametrize("other", [None, Inner(np.array([3.0, 4.0]), 3.5)], ids=["none", "some"])
@pytest.mark.parametrize("flag", [True, False])
def test_parts_read_and_change_what_an_entry_was_given(flag: bool, other: Inner | None) -> None:
    compiled = kernel(total)
    ours, expected = given()._replace(flag=flag, other=other), given()
    expected = expected._replace(flag=flag, other=other)
    assert compiled.entry(ours) == total(expected)  # type: ignore[attr-defined]
    assert ours.counts.tolist() == expected.counts.tolist()


@outlined
def _unpacked(pair: Pair) -> float:
    one, other = pair
    return one[0] - other[0]


def test_an_entry_and_its_parts_unpack_tuples() -> None:
    def difference(pair: Pair) -> float:
        one, other = pair
        return _unpacked(pair) + 10.0 * (one[1] - other[1])

    pair = Pair(np.array([5.0, 7.0]), np.array([1.0, 4.0]))
    assert kernel(difference).entry(pair) == 34.0  # type: ignore[attr-defined]


def test_tuples_are_values_where_others_are_made() -> None:
    part = jit(lambda pair: pair.one + pair.other, cached=False)

    def added(pair: Pair) -> Floats:
        last = Pair(np.zeros(100), part(pair))
        for _ in range(3):
            last, pair = Pair(part(last), pair.one), last
        return part(last)

    ours = Pair(np.ones(100), np.full(100, 2.0))
    before = [sys.getrefcount(array) for array in ours]
    compiled = jit(added, cached=False).entry  # type: ignore[attr-defined]
    assert compiled(ours).tolist() == added(ours).tolist()
    assert [sys.getrefcount(array) for array in ours] == before


def test_a_part_is_called_with_one_word_for_a_tuple() -> None:
    part = jit(lambda outer: outer.counts[1] + outer.inner.values[1], cached=False)

    def called(outer: Outer) -> float:
        return part(outer)

    assert kernel(called).entry(given()) == 3.0  # type: ignore[attr-defined]
    (signature,) = part.entry.part.overloads  # type: ignore[attr-defined]
    (passed,) = (cpu_target.target_context.get_value_type(kind) for kind in signature)
    assert passed.is_pointer
