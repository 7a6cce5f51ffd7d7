"""One memory for both sides by the GPU's kernels, in the CUDA simulator, against the oracle."""

from __future__ import annotations

import lockstep
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_cases import (
    ESTIMATORS,
    PROBES,
    Case,
    apart,
    busy,
    busy_facts,
    cases,
    expected,
    fact_cases,
    long_stream,
    pooled,
    run,
)
from test_replay_kernels import FEW, VARIANTS, fitted, on_device, retained, setting_of
from test_replay_kernels import check as check_replay
from thorough import THOROUGH, repeats
from yield_cases import lagged

from engine.device.replay import load_lanes, replay_on_device
from engine.policies import POLICIES, Across
from gpu_kernels.devices import SimulatedDevice
from gpu_kernels.pool import POOL_BYTES
from gpu_kernels.replay.plan import Need, choose_variant, lane_bytes

EVERY = sorted(POLICIES)
BY_VALUE = [name for name in EVERY if POLICIES[name].across is Across.BY_VALUE]
PLACES = [(estimator, probe) for estimator in ESTIMATORS for probe in PROBES]


def check(case: Case, place: int) -> None:
    """Compare a pooled case with the oracle, in a team and an order of threads of its own."""
    lockstep.SEED = place
    variant = VARIANTS[place % len(VARIANTS)]
    case = fitted(case, variant)
    comp = check_replay(case, variant)
    ref = expected(case)
    assert comp.peak == max((len(a) + len(b) for _, a, b in ref.retained), default=0)


def small(case: Case, rows: int = 60) -> Case:
    """Return a pooled case of fewer rows."""
    return pooled(case._replace(left=case.left[:rows], right=case.right[:rows]))


def tight(case: Case) -> Case:
    """Return a pooled case of a memory of at most four tuples."""
    case = pooled(case)
    return case._replace(budgets=(1, min(3, case.budgets[1] or 0)))


@pytest.mark.parametrize("policy", EVERY)
def test_equals_the_oracle(policy: str) -> None:
    @FEW
    @given(case=cases(policy, max_rows=24), place=st.sampled_from([0, 1, 2, 4]))
    def every(case: Case, place: int) -> None:
        check(pooled(case), place)

    every()


@pytest.mark.parametrize("policy", EVERY)
def test_equals_the_oracle_through_facts(policy: str) -> None:
    @FEW
    @given(case=fact_cases(policy, max_rows=24), place=st.sampled_from([0, 1, 2, 4]))
    def every(case: Case, place: int) -> None:
        check(tight(case), place)

    every()


@pytest.mark.parametrize("policy", EVERY)
def test_equals_the_oracle_under_contest(policy: str) -> None:
    """Each estimator and probe, another kind of team each; outputs are counted late in some."""
    for place, (estimator, probe) in enumerate(PLACES):
        case = busy(policy, place)._replace(estimator=estimator, probe=probe)
        check(small(case._replace(start_ts=(None, 11)[place % 2])), place)
        if THOROUGH or place % 2:
            check(small(apart(busy(policy, place + 6), place)), place + 1)


@pytest.mark.parametrize("policy", EVERY)
def test_equals_the_oracle_under_contest_through_facts(policy: str) -> None:
    for place, (estimator, probe) in enumerate(PLACES):
        case = busy_facts(policy, place)._replace(estimator=estimator, probe=probe)
        check(small(case._replace(start_ts=(None, 11)[place % 2]), 40), place + 2)


@pytest.mark.parametrize("budgets", [(1, 0), (0, 0), (500, 500)], ids=["one", "none", "all"])
@pytest.mark.parametrize("policy", ["age", "dgl", "dimpprob", "prob", "yield"])
def test_a_memory_of_one_tuple_of_none_and_of_all(policy: str, budgets: tuple[int, int]) -> None:
    for seed in [0, 1, *repeats([2, 3])]:
        check(small(busy(policy, seed))._replace(budgets=budgets), seed)


@pytest.mark.parametrize("policy", ["dgl", "dimpprob"])
def test_equals_the_cpu_on_long_streams(policy: str) -> None:
    rng = np.random.default_rng(3)
    case = busy(policy, 3)._replace(
        left=long_stream(rng, tied=True)[:300], right=long_stream(rng, tied=False)[:300],
        windows=(40, 25),
        budgets=(17, 9), pooled=True,
    )  # fmt: skip
    ref = run(case, step=1)
    comp = on_device(case, VARIANTS[0])
    assert retained(case, comp) == ref.retained
    assert (comp.peaks, comp.peak, comp.outputs) == (ref.peaks, ref.peak, ref.counted)
    assert comp.importance == pytest.approx(ref.importance, rel=1e-12)


@pytest.mark.parametrize("probe", PROBES)
def test_yield_once_it_has_learnt(probe: str) -> None:
    for seed, params in enumerate(({}, {"buckets": 3, "sample": 16}, {"counters": 8})):
        left, right = lagged(20 + seed, 120)
        check(
            Case(left, right, (40, 35), (7, 5), "yield", params, "window", probe, pooled=True), seed
        )


def test_a_side_whose_tuples_yield_nothing_loses_the_memory() -> None:
    """Orders join cancellations, which come later: a cancellation that is held yields nothing."""
    orders = [(10 * i, i, 1.0) for i in range(200)]
    cancellations = [(10 * i + 55, i, 1.0) for i in range(200)]
    case = Case(orders, cancellations, (100, 100), (4, 4), "prob", {})
    assert on_device(case, VARIANTS[0]).outputs < 10
    assert on_device(case._replace(pooled=True), VARIANTS[0]).outputs > 180


@pytest.mark.parametrize("facts", [True, False])
def test_lanes_split_and_pooled_share_the_streams(facts: bool) -> None:
    """Lanes of other streams, each pooled and split, of several memories, two lanes a block."""
    lanes = [small(busy_facts("prob", seed), 20)._replace(estimator="window") for seed in (1, 4)]
    if not facts:
        lanes = [lane._replace(fact=None) for lane in lanes]
    made = [
        (i, lane._replace(policy=policy, params={}, budgets=budgets, pooled=pooling))
        for i, lane in enumerate(lanes)
        for policy in ("dgl", "dimpprob")
        for budgets, pooling in (((3, 2), True), ((6, 3), True), ((3, 2), False))
    ]
    device = SimulatedDevice()
    loaded = load_lanes(device, [setting_of(lane)[1] for lane in lanes])
    chosen = [setting_of(case)[0]._replace(lane=i) for i, case in made]
    (two_warps,) = [variant for variant in VARIANTS if variant.per_block == 2]
    outcomes = replay_on_device(device, loaded, chosen, choose=lambda _: two_warps)
    for (_, case), outcome in zip(made, outcomes, strict=True):
        ref = run(case, emit=False)
        assert (outcome.outputs, outcome.peaks) == (ref.counted, ref.peaks), case.policy
        assert outcome.peak == ref.peak
        assert outcome.importance == pytest.approx(ref.importance, rel=1e-12)


def test_what_a_pooled_lane_takes_is_counted() -> None:
    need = Need(100, 10, 4)
    variant = choose_variant(100)
    both = lane_bytes(need._replace(pooled=True), variant, 3), lane_bytes(need, variant, 3)
    assert both[0] - both[1] == POOL_BYTES
