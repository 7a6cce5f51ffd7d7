"""One memory for both sides, against the naive ranking of both sides' tuples at every instant."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from replay_cases import Case, apart, busy, busy_facts, cases, expected, fact_cases, pooled, run
from thorough import THOROUGH

from engine.policies import POLICIES, SAMPLING
from engine.replay.settings import ReplaySettings
from engine.runtime.errors import SpecError
from gpu_kernels.pool import MOST_STEPS, scale_of, steps

DRAWN = settings(
    max_examples=150 if THOROUGH else 25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)
EVERY = sorted(POLICIES)
SEEDS = range(24 if THOROUGH else 6)
"""Six meet each estimator with each probe."""


def check(case: Case, step: int = 1) -> None:
    ref = expected(case)
    comp = run(case, step=step)
    if step == 1:
        assert comp.retained == [(t, sorted(a), sorted(b)) for t, a, b in ref.retained]
    assert comp.outputs == [tuple(o) for o in ref.outputs]
    assert comp.peaks == (ref.peak_left, ref.peak_right)
    assert comp.peak == max((len(a) + len(b) for _, a, b in ref.retained), default=0)
    assert comp.peak <= sum(own for own in case.budgets if own is not None)
    total = math.fsum(o[3] for o in ref.outputs)
    assert comp.importance == pytest.approx(total, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("policy", EVERY)
def test_equals_the_oracle(policy: str) -> None:
    @DRAWN
    @given(case=cases(policy))
    def every(case: Case) -> None:
        check(pooled(case))

    every()


@pytest.mark.parametrize("policy", EVERY)
def test_equals_the_oracle_through_facts(policy: str) -> None:
    @DRAWN
    @given(case=fact_cases(policy))
    def every(case: Case) -> None:
        check(pooled(case))

    every()


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", EVERY)
@pytest.mark.parametrize("change", [None, apart], ids=["busy", "apart"])
def test_equals_the_oracle_on_busy_streams(
    policy: str, seed: int, change: Callable[[Case, int], Case] | None
) -> None:
    case = busy(policy, seed)
    check(pooled(case if change is None else change(case, seed)), step=(1, 7)[seed % 2])


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("policy", EVERY)
def test_equals_the_oracle_on_busy_streams_through_facts(policy: str, seed: int) -> None:
    check(pooled(busy_facts(policy, seed)))


def test_a_side_whose_tuples_yield_nothing_loses_the_memory() -> None:
    """Orders join cancellations, which come later: a cancellation that is held yields nothing."""
    orders = [(10 * i, i, 1.0) for i in range(400)]
    cancellations = [(10 * i + 55, i, 1.0) for i in range(400)]
    case = Case(orders, cancellations, (100, 100), (4, 4), "prob", {})
    even, one = run(case), run(case._replace(pooled=True))
    assert even.counted < 10  # five orders come before an order's cancellation, and four are held
    assert one.counted > 380


def test_expectations_that_are_off_on_one_side_cost_no_more_than_a_split() -> None:
    """Lamps bound what outputs are worth; `yield` expects too little of the brightest air."""
    ratios = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rooms, rows = 45, 6000
        bright = 20 * np.exp(2 * rng.standard_normal(rooms))
        lit, breathed = rng.integers(0, rooms, (2, rows))
        light = bright[lit] * rng.uniform(0.9, 1.1, rows)
        lamps = list(zip(range(rows), lit.tolist(), light.tolist(), strict=True))
        air = [(t, room, 400.0) for t, room in enumerate(breathed.tolist())]
        case = Case(lamps, air, (600, 600), (60, 60), "yield", {})
        even, one = run(case), run(case._replace(pooled=True))
        ratios.append(one.importance / even.importance)
    assert np.mean(ratios) > 0.99, ratios  # of 60, one was at 0.92 and most at 0.99 or more


@pytest.mark.parametrize(
    ("policy", "estimator", "windows", "parameters", "reason"),
    [
        *((name, "memory", (5, 5), {}, "samples each side") for name in sorted(SAMPLING)),
        ("age", "memory", (5, 6), {}, "age curve of each side, and these are of windows"),
        ("age", "memory", (5, 5), {"curve_left": "1,2", "curve_right": "1"}, "of buckets"),
        ("dimpprob", "history", (5, 5), {}, "when all of history is counted"),
    ],
)
def test_priorities_that_do_not_compare_are_refused(
    policy: str, estimator: str, windows: tuple[int, int], parameters: dict[str, str], reason: str
) -> None:
    with pytest.raises(SpecError, match=f"policy {policy} .*{reason}.*another split than pooled"):
        ReplaySettings(
            *windows, policy=policy, estimator=estimator, parameters=dict(parameters), pooled=True
        )


@pytest.mark.parametrize("unit", [0.0, 5e-324, 1e-300, 1.0, 1e300])
def test_steps_of_any_unit(unit: float) -> None:
    scale = scale_of(unit)
    assert 0 < scale < math.inf
    assert steps(0.0, scale) == 0
    assert 0 <= steps(1.7e308, scale) <= MOST_STEPS
