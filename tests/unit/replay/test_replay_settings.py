"""The settings of a replay: their policy is one object, wherever they travel."""

from __future__ import annotations

import math
import pickle
from dataclasses import replace
from typing import Any

import pytest

from engine.policies import POLICIES, SAMPLING, policy_named, policy_or_sample
from engine.replay.settings import ReplaySettings, now_callback
from engine.runtime.errors import SpecError


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


def raises(imp: float, m: float, _age: float, _w: float, _previous: float, _new: float) -> float:
    if m == 1.0:
        raise ValueError
    return imp * m


def looks_up(imp: float, m: float, _age: float, _w: float, _previous: float, _new: float) -> float:
    return (imp, 2.0)[int(m)]


@pytest.mark.parametrize("function", [raises, looks_up])
def test_a_function_that_may_raise_is_refused(function: Any) -> None:
    with pytest.raises(SpecError, match=f"{function.__name__} of policy custom may raise an excep"):
        now_callback(POLICIES["custom"], {"function": function})


def counts(imp: float, m: float, age: float, w: float, previous: float, new: float) -> float:
    found = imp / m + math.log(previous) + math.floor(age) ** 2 + 5 % int(m) + 5 // int(new)
    for i in range(int(w)):
        found = max(found, imp * i, abs(new), m**age)
    return round(found)


def test_arithmetic_raises_nothing() -> None:
    assert now_callback(POLICIES["custom"], {"function": counts}).raises is False


def test_a_function_of_no_module_is_taken() -> None:
    made: dict[str, Any] = {}
    exec("def own(imp, m, age, w, previous, new): return imp * m", made)  # noqa: S102 - as notebooks do
    assert made["own"].__module__ is None
    assert now_callback(POLICIES["custom"], {"function": made["own"]}).raises is False
