"""Replays by the GPU's kernels, in the CUDA simulator, against the oracle: rows, peaks, sums."""

from __future__ import annotations

import math
from typing import Any

import lockstep
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay_cases import (
    Case,
    batch_of,
    busy,
    case_arguments,
    cases,
    expected,
    keys_of,
    long_stream,
    run,
)
from thorough import THOROUGH

from engine.device.columns import paired
from engine.device.replay import Outcome, Setting, load_lanes, replay_on_device
from engine.policies import POLICIES
from gpu_kernels.devices import SimulatedDevice, TooLargeError
from gpu_kernels.replay.plan import Variant

VARIANTS = [
    Variant("block", 1, 4, in_shared=True),
    Variant("block", 1, 2, in_shared=False),
    Variant("warp", 1, 4, in_shared=True),
    Variant("warp", 2, 32, in_shared=True),
    Variant("warp", 1, 8, in_shared=False),
]
FEW = settings(
    max_examples=25 if THOROUGH else 12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
FEWER = settings(FEW, max_examples=8 if THOROUGH else 4)
"""For 64 threads, which are slow: what a policy decides is tested with the smaller teams."""
MOST_ROWS = 150 if THOROUGH else 80
MOST_ROWS_OF_MANY = 150 if THOROUGH else 30
"""Rows of a side for small teams, and for 64 threads."""


def setting_of(case: Case) -> tuple[Setting, Any]:
    left, right = batch_of(case.left), batch_of(case.right)
    keys = keys_of(case, left, right)
    ids = keys.ids(0, left), keys.ids(1, right)
    columns = paired(left, ids[0], right, ids[1], keys.size, keys.key_links)
    names = None if case.fact is not None else np.unique(np.r_[left.key, right.key])
    codes = None if case.fact is None else (left.key, right.key)
    columns = columns._replace(names=names, facts=keys.index, codes=codes)
    return Setting(*case_arguments(case)), columns


def on_device(case: Case, variant: Variant) -> Outcome:
    setting, columns = setting_of(case)
    device = SimulatedDevice()
    lane = load_lanes(device, [columns])
    (outcome,) = replay_on_device(device, lane, [setting], record=True, choose=lambda _: variant)
    return outcome


def retained(case: Any, outcome: Outcome) -> list[tuple[int, list[int], list[int]]]:
    """Return the rows in memory after every instant, from when each tuple was dropped.

    `case` has both streams and `windows`, as a `Case` or a `Sampled`.
    """
    streams = batch_of(case.left), batch_of(case.right)
    found = []
    for now in np.unique(np.r_[streams[0].ts, streams[1].ts]).tolist():
        rows = []
        for stream, until, window in zip(streams, outcome.until, case.windows, strict=True):
            kept = (stream.ts <= now) & (now - stream.ts <= window) & (until > now)
            rows.append(sorted(stream.row[kept].tolist()))
        found.append((now, *rows))
    return found


def fitted(case: Case, variant: Variant, rows: int = MOST_ROWS) -> Case:
    """Return a case of fewer rows, and yet fewer for a team whose threads are many."""
    most = min(rows, MOST_ROWS_OF_MANY) if variant.per_block > 1 else rows
    return case._replace(left=case.left[:most], right=case.right[:most])


def check(case: Case, variant: Variant) -> Outcome:
    ref = expected(case)
    comp = on_device(case, variant)
    assert retained(case, comp) == [(t, sorted(a), sorted(b)) for t, a, b in ref.retained]
    assert comp.peaks == (ref.peak_left, ref.peak_right)
    assert comp.outputs == len(ref.outputs)
    total = math.fsum(o[3] for o in ref.outputs)
    assert comp.importance == pytest.approx(total, rel=1e-12, abs=1e-12)
    return comp


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: f"{v.kind}{v.width}x{v.per_block}")
@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_equals_the_oracle(policy: str, variant: Variant) -> None:
    @(FEWER if variant.per_block > 1 else FEW)
    @given(case=cases(policy, max_rows=24), seed=st.integers(0, 3))
    def every(case: Case, seed: int) -> None:
        lockstep.SEED = seed
        check(case, variant)

    every()


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_equals_the_oracle_under_contest(policy: str) -> None:
    for seed in range(6):
        lockstep.SEED = seed
        variant = VARIANTS[seed % len(VARIANTS)]
        check(fitted(busy(policy, seed), variant), variant)


@pytest.mark.parametrize("policy", ["dgl", "dimpprob", "prob"])
def test_equals_the_cpu_on_long_streams(policy: str) -> None:
    rng = np.random.default_rng(3)
    case = busy(policy, 3)._replace(
        left=long_stream(rng, tied=True),
        right=long_stream(rng, tied=False),
        windows=(40, 25),
        budgets=(17, 9),
    )
    ref = run(case, step=1)
    comp = on_device(case, VARIANTS[0])
    assert retained(case, comp) == ref.retained
    assert comp.peaks == ref.peaks
    assert comp.outputs == ref.counted
    assert comp.importance == pytest.approx(ref.importance, rel=1e-12)


def many(seed: int) -> tuple[list[Case], list[Setting], Any]:
    """Return settings of every policy over one pair of streams, mixed."""
    shared = fitted(busy("prob", seed), VARIANTS[0])
    made = []
    for place, policy in enumerate([*sorted(POLICIES), *sorted(POLICIES)]):
        again, at = divmod(place, len(POLICIES))
        own = busy(policy, at + 12 * again)  # of the same probe and estimator both times
        made.append(own._replace(left=shared.left, right=shared.right))
    settings_of = [setting_of(case) for case in made]
    return made, [setting for setting, _ in settings_of], settings_of[0][1]


@pytest.mark.parametrize(("memory", "launches"), [(2**31, 15), (1_500, 26)])
def test_many_settings_share_the_streams(memory: int, launches: int) -> None:
    """All at once, and cut into launches by a device of little memory; yield has one a setting."""

    class Small(SimulatedDevice):
        launches = 0

        def free_bytes(self) -> int:
            return memory

        def launch(self, *arguments: Any, **named: Any) -> None:
            Small.launches += 1
            super().launch(*arguments, **named)

    made, chosen, columns = many(5)
    lane = load_lanes(SimulatedDevice(), [columns])
    outcomes = replay_on_device(Small(), lane, chosen)
    for case, outcome in zip(made, outcomes, strict=True):
        ref = run(case, emit=False)
        assert outcome.outputs == ref.counted, case.policy
        assert outcome.peaks == ref.peaks, case.policy
        assert outcome.importance == pytest.approx(ref.importance, rel=1e-12)
    assert Small.launches == launches


def test_what_cannot_fit_is_refused_before_it_is_tried() -> None:
    class Tiny(SimulatedDevice):
        def free_bytes(self) -> int:
            return 4_000

    _, chosen, columns = many(5)
    with pytest.raises(TooLargeError, match=r"\d+ rows take .* bytes of device memory"):
        load_lanes(Tiny(), [columns])
    lane = load_lanes(SimulatedDevice(), [columns])
    small = Tiny()
    small.free_bytes = lambda: 700  # type: ignore[method-assign]
    with pytest.raises(TooLargeError, match=r"slots and .* keys takes"):
        replay_on_device(small, lane, chosen[:1])


def test_many_lanes_are_replayed_together() -> None:
    """Lanes of different streams, keys and instants, every policy on each."""
    made = [busy(policy, seed) for seed, policy in enumerate(sorted(POLICIES)) for _ in range(2)]
    both = [setting_of(case) for case in made]
    device = SimulatedDevice()
    lanes = load_lanes(device, [columns for _, columns in both])
    chosen = [setting._replace(lane=i) for i, (setting, _) in enumerate(both)]
    outcomes = replay_on_device(device, lanes, chosen, record=True)
    for case, outcome in zip(made, outcomes, strict=True):
        ref = run(case, step=1)
        assert retained(case, outcome) == ref.retained, case.policy
        assert (outcome.outputs, outcome.peaks) == (ref.counted, ref.peaks), case.policy
