"""Sampling policies in the replay: what is held is what the definitions say, row by row."""

from __future__ import annotations

import naive_sampling
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay_cases import Run
from sampled_cases import (
    NAMES,
    Sampled,
    adversarial,
    brute,
    cases,
    lengthy,
    measures,
    run,
    sample_setting,
)

from engine.policies import POLICIES, SAMPLING, Structure, policy_named, policy_or_sample
from engine.replay.lane import LaneReplay
from engine.runtime.errors import SpecError
from engine.runtime.streams import StreamBatch
from engine.sampling.sizes import priorities

FEW = settings(
    max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)


def check(ref: Run, comp: Run, *, retained: bool = True) -> None:
    assert comp.outputs == ref.outputs
    assert comp.counted == ref.counted
    assert comp.peaks == ref.peaks
    assert comp.importance == pytest.approx(ref.importance, rel=1e-12, abs=1e-12)
    if retained:
        assert comp.retained == ref.retained


@pytest.mark.parametrize("policy", NAMES)
def test_equals_the_brute_force(policy: str) -> None:
    @FEW
    @given(case=cases(policy), step=st.sampled_from([2, 7, None]))
    def every(case: Sampled, step: int | None) -> None:
        ref = brute(case)
        check(ref, run(case, step=1))
        check(ref, run(case, step=step), retained=False)

    every()


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("policy", NAMES)
def test_adversarial_streams(policy: str, seed: int) -> None:
    case = adversarial(policy, seed)
    check(brute(case), run(case, step=1))


@pytest.mark.parametrize("policy", NAMES)
def test_long_streams(policy: str) -> None:
    for seed in range(6):
        check(brute(lengthy(policy, seed)), run(lengthy(policy, seed), step=1))


@pytest.mark.parametrize("policy", NAMES)
def test_rows_and_memory_are_those_of_the_sampler_that_weighs_them(policy: str) -> None:
    """By the oracle of `winnow sample`: the same rows and, at every instant, as many held."""
    for seed in range(4):
        case = lengthy(policy, seed)._replace(probe="before_admission")
        left, right = case.tuples
        ref = naive_sampling.naive_sample(
            policy.replace("_", "-"), left, right, case.windows, measures(case),
            budget=case.budgets, seed=case.seed,
        )  # fmt: skip
        comp = run(case, step=1)
        assert comp.outputs == [row[:4] for row in ref.rows]
        assert comp.peaks == ref.peaks
        assert [(t, len(a), len(b)) for t, a, b in comp.retained] == ref.memory


def test_counting_alone_changes_nothing() -> None:
    for policy in NAMES:
        case = lengthy(policy, 3)
        ref, comp = run(case), run(case, emit=False)
        assert (comp.counted, comp.peaks, comp.importance) == (
            ref.counted, ref.peaks, ref.importance,
        )  # fmt: skip


def test_a_sample_is_of_the_memory_on_average_and_bottom_k_never_above() -> None:
    used = {}
    for policy in NAMES:
        means, peaks = [], []
        for seed in range(12):
            case = lengthy(policy, 0)._replace(seed=seed, size="matches")
            held = {t: len(rows) for t, rows, _ in run(case, step=1).retained}
            means.append(np.mean(list(held.values())))
            peaks.append(max(held.values()))
        used[policy] = float(np.mean(means)), max(peaks)
    assert used["bottom-k"][1] == 17
    assert used["eq-cluster"][1] > 17
    assert used["pps-cluster"][1] > 17
    assert 15 < used["eq-cluster"][0] < 19
    assert 15 < used["pps-cluster"][0] < 19


def test_matches_weigh_more_than_chance() -> None:
    """What PPS and bottom-k are for: larger samples from the same memory."""
    found = {
        policy: np.mean([run(lengthy(policy, 0)._replace(seed=s)).counted for s in range(12)])
        for policy in NAMES
    }
    assert found["pps-cluster"] > 1.1 * found["eq-cluster"]
    assert found["bottom-k"] > 1.1 * found["eq-cluster"]


def test_seeds_draw_apart_and_sizes_matter() -> None:
    for policy in NAMES:
        case = lengthy(policy, 0)
        assert run(case).outputs != run(case._replace(seed=1)).outputs
        if policy != "eq-cluster":
            assert run(case).outputs != run(case._replace(size="equal")).outputs


def test_priorities_are_drawn_bit_for_bit() -> None:
    sizes, draws = np.array([0.0, 1.0, 3.0, 3.0, 1e-300]), np.array([0.0, 0.25, 0.5, 1 / 3, 0.0])
    found = priorities(SAMPLING["bottom-k"], sizes, 1.0, draws)
    assert found.tolist() == [-1.0, 1 / 0.75, 6.0, 3.0 / (1.0 - 1 / 3), 1e-300]
    kept = priorities(SAMPLING["pps-cluster"], sizes, 1 / 6, draws)
    assert kept.tolist() == [-1.0, -1.0, -1.0, 0.0, 0.0]
    everything = priorities(SAMPLING["eq-cluster"], sizes, float("inf"), draws)
    assert everything.tolist() == [-1.0, 0.0, 0.0, 0.0, 0.0]


def test_sampling_policies_are_no_policies_of_a_replay() -> None:
    assert not set(SAMPLING) & set(POLICIES)
    for name, policy in SAMPLING.items():
        assert policy.name == name
        assert policy.structure is Structure.SAMPLED
        assert policy.draws
        assert policy.sampled is not None
        assert policy_or_sample(name.upper().replace("_", "-")) is policy
        method = name.replace("_", "-")
        with pytest.raises(SpecError, match=f"winnow sample --method {method}"):
            policy_named(name)
    assert all(policy.sampled is None for policy in POLICIES.values())
    with pytest.raises(SpecError, match="Did you mean 'eq-cluster'"):
        policy_or_sample("eq_clustr")


def test_a_replay_without_priorities_is_refused() -> None:
    setting = sample_setting(lengthy("bottom-k", 0))
    lane = LaneReplay(setting.settings, setting.profile, (3, 3))
    none, ids = np.zeros(1, np.int64), np.zeros(1, np.int32)
    batch = StreamBatch(none, none, none, np.ones(1))
    with pytest.raises(SpecError, match="give their priorities"):
        list(lane.push(batch, ids, batch, ids, 1))
