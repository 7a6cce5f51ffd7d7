"""The GPU suite's replay sections run, and compare what they measure; here at toy size."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from places import BENCHMARKS
from thorough import guards

from engine.policies import POLICIES
from gpu_kernels.devices import SimulatedDevice
from gpu_kernels.replay.plan import Variant


@pytest.fixture(name="suite")
def loaded(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("gpu_replay")


@guards("benchmarks", "gpu_kernels", "engine/device", "tests/gpu/simulator")
def test_parity_compares_every_policy(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    small = (Variant("warp", 1, 4, in_shared=True),)
    monkeypatch.setattr(suite, "VARIANTS", small)
    found = suite.parity(SimulatedDevice(), lanes=4, rows=16)
    assert found["replays_compared"] == (6 + 2 * 4) * len(POLICIES)
    assert found["plans_followed"] == 4 * len(POLICIES)
    assert found["samples_compared"] == 3 * 2 * (2 + 2)


def test_measuring_compares_first_and_times_both(suite: Any) -> None:
    found = suite.measure_replay(SimulatedDevice(), lanes=2, rows=20, cpu_lanes=2)
    assert all(found[policy]["times_cpu"] > 0 for policy in POLICIES)


def test_facts_are_compared_and_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    facts = importlib.import_module("gpu_facts")
    monkeypatch.setattr(facts, "POLICIES", ("dgl",))
    found = facts.measure_facts(SimulatedDevice(), lanes=2, rows=20, compared=2)
    assert found["compared"] == 2 * 6
    assert found["dgl"]["times_equi"] > 0


def test_a_difference_is_not_passed_over(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    true = suite.replay_on_device

    def wrong(*arguments: Any, **named: Any) -> Any:
        return [one._replace(outputs=one.outputs + 1) for one in true(*arguments, **named)]

    monkeypatch.setattr(suite, "replay_on_device", wrong)
    with pytest.raises(suite.UnequalError, match="rand memory"):
        suite.parity(SimulatedDevice(), lanes=4, rows=20)
