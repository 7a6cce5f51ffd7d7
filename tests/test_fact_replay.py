"""Replays through a fact relation that changes, against the oracle (contract, section 5)."""

from __future__ import annotations

import pytest
from hypothesis import given
from replay_cases import Case, busy_facts, fact_cases
from test_replay import THOROUGH, check

from engine.policies import POLICIES

KNOWN = sorted(set(POLICIES) - {"yield"})


@pytest.mark.parametrize("policy", KNOWN)
def test_equals_the_oracle(policy: str) -> None:
    @THOROUGH
    @given(case=fact_cases(policy))
    def every(case: Case) -> None:
        check(case)

    every()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("policy", KNOWN)
def test_busy_streams(policy: str, seed: int) -> None:
    check(busy_facts(policy, seed))
