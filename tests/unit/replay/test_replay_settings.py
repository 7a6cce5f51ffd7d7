"""The settings of a replay: their policy is one object, wherever they travel."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from engine.policies import POLICIES, SAMPLING, policy_named, policy_or_sample
from engine.replay.settings import ReplaySettings


@pytest.mark.parametrize("name", [*POLICIES, *SAMPLING])
def test_a_policy_is_resolved_once(name: str) -> None:
    policy = policy_or_sample(name)
    settings = ReplaySettings(5, 9, policy=policy)
    assert settings == ReplaySettings(5, 9, policy=name.upper().replace("_", "-"))
    assert settings.policy == name
    for other in (settings, pickle.loads(pickle.dumps(settings)), replace(settings, seed=3)):  # noqa: S301 - our own
        assert other.the_policy is policy
    if name in POLICIES:
        assert policy_named(policy) is policy


def test_an_exact_join_has_a_policy_that_does_not_matter() -> None:
    assert ReplaySettings(5, 9).policy is None
    assert ReplaySettings(5, 9).the_policy in POLICIES.values()
