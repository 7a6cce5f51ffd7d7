"""Replays through a fact relation that changes, against the oracle (contract, section 5)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_cases import Case, batch_of, busy_facts, cut, expected, fact_cases, keys_of
from test_replay import DRAWN, check

from engine.exact.stream import ExactStream
from engine.policies import POLICIES
from engine.runtime.streams import StreamBatch

KNOWN = sorted(POLICIES)


@pytest.mark.parametrize("policy", KNOWN)
def test_equals_the_oracle(policy: str) -> None:
    @DRAWN
    @given(case=fact_cases(policy))
    def every(case: Case) -> None:
        check(case)

    every()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("policy", KNOWN)
def test_busy_streams(policy: str, seed: int) -> None:
    check(busy_facts(policy, seed))


def counted(case: Case, step: int) -> tuple[ExactStream, list[tuple[Any, ...]]]:
    """Count the exact join of a case in batches of `step` ticks, beside what the oracle finds."""
    left, right = batch_of(case.left), batch_of(case.right)
    keys = keys_of(case, left, right)
    edges = np.arange(0, 26, 4)
    join = ExactStream(
        *case.windows, case.combine, case.start_ts, edges, 5, key_links=keys.key_links
    )
    outputs, importance = np.zeros(keys.size, np.int64), np.zeros(keys.size)
    for begin in range(0, 200, step):
        a, b = cut(left, begin, begin + step), cut(right, begin, begin + step)
        join.push(a, keys.ids(0, a), b, keys.ids(1, b), outputs, importance)
    found = expected(case._replace(budgets=(None, None), policy="recent", params={})).outputs
    codes = np.array([fact[0] for fact in case.fact or ()])
    tally = np.zeros(keys.size, np.int64)
    for output in found:
        a = left.row == output[0]
        assert codes[output[4]] == left.key[a]
        tally[keys.ids(0, StreamBatch(*(column[a] for column in left)))] += 1
    assert outputs.tolist() == tally.tolist()
    return join, found


@DRAWN
@given(case=fact_cases("recent"), step=st.sampled_from([1, 7, 200]))
def test_the_exact_count_equals_the_oracle(case: Case, step: int) -> None:
    check_counted(case, *counted(case, step))


@pytest.mark.parametrize("seed", range(12))
def test_the_exact_count_of_busy_streams(seed: int) -> None:
    case = busy_facts("recent", seed)
    check_counted(case, *counted(case, 200))


def check_counted(case: Case, join: ExactStream, found: list[tuple[Any, ...]]) -> None:
    """Check sums, time bins and ages."""
    assert join.outputs == len(found)
    assert join.importance == pytest.approx(math.fsum(o[3] for o in found), rel=1e-12, abs=1e-12)
    bins = np.zeros(7, np.int64)
    ages = np.zeros((2, 5), np.int64)
    for left_row, right_row, ts, *_ in found:
        bins[min(ts // 4, 6)] += 1
        times = case.left[left_row][0], case.right[right_row][0]
        side = int(times[1] < times[0])
        if times[0] != times[1]:
            ages[side, (abs(times[0] - times[1]) - 1) * 5 // case.windows[side]] += 1
    assert join.outputs_by_bin.tolist() == bins.tolist()
    assert [join.ages_left.tolist(), join.ages_right.tolist()] == ages.tolist()


def test_an_arrival_may_have_more_partners_than_a_block() -> None:
    """One left tuple is joined to 2000 attributes of the right stream."""
    n = 2000
    case = Case(
        [(n, 0, 1.0), (2 * n, 0, 2.0)],
        [(i, i, 1.0) for i in range(n)],
        (4 * n, 4 * n),
        (None, None),
        "recent",
        {},
        fact=tuple((0, i, None, None, 0) for i in range(n)),
    )
    left, right = batch_of(case.left), batch_of(case.right)
    keys = keys_of(case, left, right)
    join = ExactStream(*case.windows, key_links=keys.key_links)
    outputs, importance = np.zeros(keys.size, np.int64), np.zeros(keys.size)
    join.push(left, keys.ids(0, left), right, keys.ids(1, right), outputs, importance)
    assert (join.outputs, join.importance) == (2 * n, 2.0 * n)
