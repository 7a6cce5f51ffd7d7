"""Replays through facts by the GPU's kernels, in the CUDA simulator, against the oracle."""

from __future__ import annotations

import math

import lockstep
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from replay_cases import ESTIMATORS, PROBES, Case, busy_facts, expected, fact_cases
from test_replay_kernels import FEW, VARIANTS, check, fitted, on_device, setting_of

from engine.device.columns import LaneColumns
from engine.device.replay import load_lanes, replay_on_device
from engine.device.through_facts import most_matches
from engine.policies import POLICIES
from gpu_kernels.devices import SimulatedDevice, TooLargeError

KNOWN = sorted(POLICIES)


def small(policy: str, seed: int, rows: int = 60) -> Case:
    """Return a busy case of fewer rows."""
    case = busy_facts(policy, seed)
    return case._replace(left=case.left[:rows], right=case.right[:rows])


@pytest.mark.parametrize("probe", PROBES)
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("policy", KNOWN)
def test_equals_the_oracle_under_contest(policy: str, estimator: str, probe: str) -> None:
    """Each under another kind of team, so that each policy, estimator and probe meets all."""
    place = KNOWN.index(policy) + 2 * ESTIMATORS.index(estimator) + PROBES.index(probe)
    lockstep.SEED = place
    case = small(policy, place)._replace(estimator=estimator, probe=probe)
    variant = VARIANTS[place % len(VARIANTS)]
    check(fitted(case, variant), variant)


@pytest.mark.parametrize("policy", KNOWN)
def test_equals_the_oracle(policy: str) -> None:
    @FEW
    @given(case=fact_cases(policy, max_rows=16), seed=st.integers(0, 3), variant=st.integers(0, 4))
    def every(case: Case, seed: int, variant: int) -> None:
        lockstep.SEED = seed
        check(case, VARIANTS[variant])

    every()


def test_lanes_and_settings_share_the_partners() -> None:
    """Lanes of other streams and facts, each under several policies, two lanes a block."""
    lanes = [small("prob", seed, 25) for seed in (1, 4, 7)]
    made = [
        (i, lane._replace(policy=policy, params={}, estimator="window"))
        for i, lane in enumerate(lanes)
        for policy in ("dgl", "dimpprob", "multiplicative")
    ]
    device = SimulatedDevice()
    columns = [setting_of(lane._replace(estimator="window"))[1] for lane in lanes]
    loaded = load_lanes(device, columns)
    chosen = [setting_of(case)[0]._replace(lane=i) for i, case in made]
    (two_warps,) = [variant for variant in VARIANTS if variant.per_block == 2]
    outcomes = replay_on_device(device, loaded, chosen, choose=lambda _: two_warps)
    for (_, case), outcome in zip(made, outcomes, strict=True):
        ref = expected(case)
        assert outcome.outputs == len(ref.outputs), case.policy
        assert outcome.peaks == (ref.peak_left, ref.peak_right), case.policy
        total = math.fsum(o[3] for o in ref.outputs)
        assert outcome.importance == pytest.approx(total, rel=1e-12)


def test_partners_count_in_what_must_fit() -> None:
    _, columns = setting_of(small("prob", 1))
    without = columns._replace(key_links=None)

    class Tight(SimulatedDevice):
        def free_bytes(self) -> int:
            return 36 * columns.rows

    load_lanes(Tight(), [without])
    with pytest.raises(TooLargeError, match=r"rows and \d+ partners of their keys take"):
        load_lanes(Tight(), [columns])


def test_matches_that_no_counter_holds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _, columns = setting_of(small("prob", 1))
    monkeypatch.setattr("engine.device.through_facts.MOST_MATCHES", most_matches(columns))
    load_lanes(SimulatedDevice(), [columns])
    monkeypatch.setattr("engine.device.through_facts.MOST_MATCHES", most_matches(columns) - 1)
    with pytest.raises(TooLargeError, match="may match"):
        load_lanes(SimulatedDevice(), [columns])


def test_a_table_of_all_matches_must_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    setting, columns = setting_of(small("multiplicative", 1)._replace(estimator="memory"))
    lanes = load_lanes(SimulatedDevice(), [columns])
    monkeypatch.setattr("engine.device.policies.half_of_memory", lambda: 8)
    with pytest.raises(TooLargeError, match="takes a table of as many numbers"):
        replay_on_device(SimulatedDevice(), lanes, [setting])


def test_most_matches_are_those_of_a_tuple_that_meets_all() -> None:
    _, columns = setting_of(small("prob", 2))
    assert most_matches(columns) == max(pairs_of(columns, 0), pairs_of(columns, 1))


def pairs_of(lane: LaneColumns, side: int) -> int:
    """Return the most pairs of a key of a side, counted one by one."""
    assert lane.key_links is not None
    partners, opposite = lane.key_links[side], (lane.right, lane.left)[side]
    return max(
        sum(
            int((opposite.key == other).sum())
            for other in partners.other[partners.first[key] : partners.first[key + 1]]
        )
        for key in range(partners.first.size - 1)
    )


def test_nothing_is_joined_without_facts() -> None:
    case = small("dgl", 3)._replace(fact=())
    outcome = on_device(case, VARIANTS[0])
    assert (outcome.outputs, outcome.peaks) == (0, (0, 0))
    assert np.array_equal(outcome.until[0], setting_of(case)[1].left.ts)
