"""Kernels that Python runs: what they return and write is what compiled ones do."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from engine.multiway.fractions.greedy import direction_terms
from engine.policies import policy_named
from engine.replay.allocate import empty_keys
from engine.replay.layout import MEMORY_ESTIMATOR
from engine.replay.renumber import _count_present
from engine.replay.settings import now_callback
from engine.runtime.compilation import entries
from engine.runtime.compilation.compilations import COMPILED, LONG
from engine.runtime.compilation.entries import Entry
from engine.runtime.compilation.interpreted import interpret
from engine.runtime.compilation.interpreted_values import Arguments
from engine.runtime.compilation.translated import NotInterpretedError
from engine.runtime.jit import jit, shell_sorted
from engine.runtime.key_table import shift_of, slot_of
from engine.runtime.randomness import _fill
from engine.value_model.summary import _class_of
from gpu_kernels.harvest.layout import JoinTerms, flatten

RNG = np.random.default_rng(11)
WAYS = pytest.mark.parametrize("fast", [True, False], ids=["fast", "numpy"])


@WAYS
def test_a_part_of_an_array_is_written(fast: bool) -> None:
    values = RNG.integers(0, 50, 300)
    expected = values.copy()
    expected[20:220] = np.sort(expected[20:220])
    interpret(shell_sorted, (values[10:], 10, 200), fast=fast)
    np.testing.assert_array_equal(values, expected)


@WAYS
@pytest.mark.parametrize("size", [301, 100_000], ids=["out of range", "too many steps"])
def test_arguments_are_as_they_were_if_a_kernel_is_given_up(fast: bool, size: int) -> None:
    values = RNG.integers(0, 50, 300 if size == 301 else size)
    before = values.copy()
    with pytest.raises(NotInterpretedError):
        interpret(shell_sorted, (values, 0, size), fast=fast)
    np.testing.assert_array_equal(values, before)


def test_hashes_wrap() -> None:
    shift, _ = interpret(shift_of, (4096,), fast=True)
    assert shift == shift_of(4096)
    for key in [0, -1, 2**63 - 1, -(2**63), *RNG.integers(-(2**62), 2**62, 50).tolist()]:
        assert interpret(slot_of, (key, shift), fast=True)[0] == slot_of(key, shift), key


@WAYS
def test_draws_are_the_same(fast: bool) -> None:
    rows = RNG.integers(0, 2**62, 40)
    given = np.uint64(2**64 - 5), 3, 1, rows
    found, expected = np.empty(40), np.empty(40)
    interpret(_fill, (found, *given), fast=fast)
    _fill(expected, *given)
    np.testing.assert_array_equal(found, expected)


@WAYS
@pytest.mark.parametrize("shape", [(0, 3), (2, 0, 3), (0, 2, 3), (2, 3)])
def test_lists_and_arrays_without_rows_are_returned(fast: bool, shape: tuple[int, ...]) -> None:
    values, table = np.arange(8), np.ones(shape, np.int32)
    arguments = Arguments([values, table], id, 1000, fast=fast)
    own, more = map(arguments.given, (values, table))
    assert more.shape == shape
    (first, second), found = arguments.returned(([own[:4], own[4:]], more))
    assert (first.tolist(), second.tolist()) == ([0, 1, 2, 3], [4, 5, 6, 7])
    assert np.shares_memory(first, values)
    assert np.shares_memory(second, values)
    assert (found.shape, found.dtype) == (shape, np.int32)


@WAYS
def test_floats_are_taken_apart(fast: bool) -> None:
    for value in (0.0, 5e-324, 1e-310, 0.3, 1.0, 7.25, 1.7e308, float("inf"), float("nan")):
        assert interpret(_class_of, (value,), fast=fast)[0] == _class_of(value), value


@WAYS
def test_a_function_of_the_users_is_not_interpreted(fast: bool) -> None:
    def own(imp: float, m: float, age: float, w: float, previous: float, new: float) -> float:
        return imp + m + age + w + previous + new

    pointer = now_callback(policy_named("custom"), {"function": own})
    with pytest.raises(NotInterpretedError, match="the user's"):
        interpret(shell_sorted, (np.zeros(3), 0, pointer), fast=fast)


def sorts(kernel: Entry, size: int = 30) -> None:
    values = RNG.integers(0, 50, size)
    expected = np.sort(values)
    kernel(values, 0, size)
    np.testing.assert_array_equal(values, expected)


def test_a_kernel_is_compiled_once_patience_is_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMPILED, "always", False)
    kernel = jit(shell_sorted.py_func, cached=False).entry
    kernel.patience = 1000
    sorts(kernel)
    assert not kernel.overloads
    for _ in range(10):
        sorts(kernel)
    assert len(kernel.overloads) == 1


def test_records_that_are_copied_count_as_steps() -> None:
    """A call that does little with many records takes as long as one that takes many steps."""
    keys, ids = empty_keys(640), 640
    keys["residents"][3] = 1
    words, blocks = np.zeros(ids // 64, np.uint64), np.zeros(1, np.int32)
    _, steps = interpret(_count_present, (words, blocks, keys, 1, MEMORY_ESTIMATOR), fast=True)
    assert words.tolist() == [2, *[0] * 9]
    assert blocks.tolist() == [1]
    assert steps > 4 * keys.size >= 4 * 2 * ids


def test_tables_that_are_cut_into_rows_count_as_steps() -> None:
    """A call that does little with a large table takes as long as one that takes many steps."""
    terms = JoinTerms(np.ones(2), np.ones((2, 1)), np.ones((2, 1)), [[np.array([0.0, 1.0])]] * 2)
    counts = np.ones((50_000, 1), np.int64)
    given = 0, counts, flatten([terms])
    for fast, least in ((True, 150_000), (False, 0)):
        found, steps = interpret(direction_terms, given, fast=fast)
        assert found == (1.0, 1.0)
        assert least <= steps < least + 1000
    with pytest.raises(NotInterpretedError, match="too much"):
        interpret(direction_terms, (0, np.tile(counts, (4, 1)), given[2]), fast=True)


def test_a_kernel_is_compiled_for_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMPILED, "always", False)
    kernel = jit(shell_sorted.py_func, cached=False).entry
    sorts(kernel, 100_000)
    assert len(kernel.overloads) == 1


def test_a_kernel_is_compiled_at_once_where_more_is_expected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(COMPILED, "always", False)
    few, many = (jit(shell_sorted.py_func, cached=False).entry for _ in range(2))
    with COMPILED.expecting(LONG - 1):
        sorts(few)
        with COMPILED.expecting(LONG - 1):
            sorts(many)
    assert (len(few.overloads), len(many.overloads)) == (0, 1)
    assert COMPILED.expected == 0


def test_steps_that_were_expected_are_expected_no_more_once_they_are_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(COMPILED, "always", False)
    kernel = jit(shell_sorted.py_func, cached=False).entry
    with COMPILED.expecting(LONG - 1):
        sorts(kernel)
        left = COMPILED.expected
        assert LONG - 3000 < left < LONG - 30
        with COMPILED.expecting(LONG - left):
            assert COMPILED.is_all
        with COMPILED.expecting(LONG - left - 1):
            assert not COMPILED.is_all
            sorts(kernel)
        COMPILED.take(2 * LONG)
        assert COMPILED.expected == 0
    assert not kernel.overloads
    assert COMPILED.expected == 0
    COMPILED.take(9)
    with COMPILED.expecting(5):
        assert COMPILED.expected == 5


def test_nothing_is_interpreted_where_all_is_to_be_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(COMPILED, "always", True)
    kernel = jit(shell_sorted.py_func, cached=False).entry
    sorts(kernel)
    assert len(kernel.overloads) == 1


def test_threads_give_up_a_way_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COMPILED, "always", False)
    both = Barrier(2)

    def interpreted(function: Entry, given: tuple[int, ...], *, fast: bool) -> None:
        del function, given, fast
        both.wait(timeout=30)
        raise NotInterpretedError("it has no such method")

    monkeypatch.setattr(entries, "interpret", interpreted)
    double = jit(lambda a: 2 * a, cached=False)
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(double, [3, 4])) == [6, 8]
