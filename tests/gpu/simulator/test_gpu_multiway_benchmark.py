"""The GPU suite's multi-way section runs, and compares what it measures; here at toy size."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from places import BENCHMARKS

from gpu_kernels.devices import SimulatedDevice

FOLDER = BENCHMARKS
SMALL: dict[str, Any] = {"sizes": (4, 7), "windows": (12,), "compared": 9, "repeats": 1, "lanes": 3}


@pytest.fixture(name="suite")
def loaded(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module("gpu_multiway")


def test_every_predicate_is_compared_and_timed(suite: Any) -> None:
    found = suite.measure_multiway(SimulatedDevice(), **SMALL)
    assert all(found["parity"][kind]["outputs"] > 0 for kind in suite.KINDS)
    assert all(found["predicates"][kind]["times_cpu"] > 0 for kind in suite.KINDS)
    assert list(found["band"]["window of 12"]) == ["batch of 4", "batch of 7"]
    assert found["lanes"]["times"] > 0


def test_a_difference_is_not_passed_over(suite: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    true = suite.GpuProber.count

    def wrong(*arguments: Any) -> Any:
        found = true(*arguments)
        return found._replace(importance=found.importance + 1e-9)

    monkeypatch.setattr(suite.GpuProber, "count", wrong)
    with pytest.raises(suite.UnequalError, match="counts of equi"):
        suite.measure_multiway(SimulatedDevice(), **SMALL)
