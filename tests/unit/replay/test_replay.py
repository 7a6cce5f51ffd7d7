"""Every policy's replay against the naive re-ranking of everything at every instant."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from replay_cases import Case, busy, cases, expected, pooled, run
from thorough import THOROUGH

from engine.policies import POLICIES

DRAWN = settings(
    max_examples=150 if THOROUGH else 30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_equals_the_oracle(policy: str) -> None:
    @DRAWN
    @given(case=cases(policy))
    def every(case: Case) -> None:
        check(case)

    every()


@pytest.mark.parametrize("seed", range(4))
def test_powers_beyond_float64_times_0_rank_last(seed: int) -> None:
    case = busy("multiplicative", seed)
    check(case._replace(params={"A": 2e3, "D": 0.5}))
    check(pooled(case._replace(params={"A": 2e3, "ties": "importance"})))


def check(case: Case) -> None:
    ref = expected(case)
    comp = run(case, step=1)
    assert comp.retained == [(t, sorted(a), sorted(b)) for t, a, b in ref.retained]
    assert comp.outputs == [tuple(o) for o in ref.outputs]
    assert comp.peaks == (ref.peak_left, ref.peak_right)
    total = math.fsum(o[3] for o in ref.outputs)
    assert comp.counted == len(ref.outputs)
    assert comp.importance == pytest.approx(total, rel=1e-12, abs=1e-12)
