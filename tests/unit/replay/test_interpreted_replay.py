"""Replays of interpreted kernels equal the oracle, like those of compiled ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from interpreted_too import only_interpreted
from replay_cases import Case, busy, cases, expected, fact_cases, pooled, run
from thorough import THOROUGH

from engine.policies import POLICIES

OURS = sorted(set(POLICIES) - {"custom"})
"""Policies whose functions are not the user's."""
DRAWN = settings(
    max_examples=200 if THOROUGH else 15,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)


def equals(case: Case, step: int | None) -> None:
    ref = expected(case)
    with only_interpreted() as found:
        comp = run(case, step=step)
    assert comp.outputs == [tuple(output) for output in ref.outputs]
    assert comp.peaks == (ref.peak_left, ref.peak_right)
    assert comp.counted == len(ref.outputs)
    if comp.outputs:
        assert "engine.replay.kernel.replay" in found


@pytest.mark.parametrize("policy", OURS)
def test_busy_streams_equal_the_oracle(policy: str) -> None:
    equals(busy(policy, 3), None)
    equals(pooled(busy(policy, 1)), 7)


@pytest.mark.parametrize("policy", OURS)
def test_equals_the_oracle(policy: str) -> None:
    each = cases(policy), cases(policy).map(pooled)
    through_facts = fact_cases(policy), fact_cases(policy).map(pooled)

    @DRAWN
    @given(st.one_of(*each, *through_facts), st.sampled_from([1, 5, 1000]))
    def equal(case: Case, step: int) -> None:
        equals(case, step)

    equal()
