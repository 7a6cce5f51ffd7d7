"""Sampling policies by the GPU's kernels, in the CUDA simulator: rows, peaks and sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lockstep
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from job_cases import streams
from replay_cases import Run, busy
from replay_cases import run as replay
from sampled_cases import (
    NAMES,
    Sampled,
    adversarial,
    brute,
    cases,
    columns_of,
    lengthy,
    sample_setting,
)
from sampled_cases import run as on_cpu
from sweep_cases import drifting, swept_alike
from test_replay_kernels import VARIANTS, retained, setting_of
from thorough import THOROUGH

from engine.device.replay import Outcome, load_lanes, replay_on_device
from gpu_kernels.devices import SimulatedDevice
from gpu_kernels.replay.plan import Variant

FEW = settings(
    max_examples=25 if THOROUGH else 12,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
)
FEWER = settings(FEW, max_examples=6 if THOROUGH else 4)


def on_device(case: Sampled, variant: Variant | None = None) -> Outcome:
    columns = columns_of(case)
    device = SimulatedDevice()
    lanes = load_lanes(device, [columns])
    choose = None if variant is None else (lambda _: variant)
    (found,) = replay_on_device(
        device, lanes, [sample_setting(case, columns)], record=True, choose=choose
    )
    return found


def check(case: Sampled, ref: Run, comp: Outcome) -> None:
    assert retained(case, comp) == ref.retained
    assert comp.peaks == ref.peaks
    assert comp.outputs == ref.counted
    assert comp.importance == pytest.approx(ref.importance, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: f"{v.kind}{v.width}x{v.per_block}")
@pytest.mark.parametrize("policy", NAMES)
def test_equals_the_brute_force(policy: str, variant: Variant) -> None:
    @(FEWER if variant.per_block > 1 else FEW)
    @given(case=cases(policy, max_rows=24), seed=st.integers(0, 3))
    def every(case: Sampled, seed: int) -> None:
        lockstep.SEED = seed
        check(case, brute(case), on_device(case, variant))

    every()


@pytest.mark.parametrize("policy", NAMES)
def test_adversarial_streams(policy: str) -> None:
    for seed in range(0, 16, 1 if THOROUGH and policy != "bottom-k" else 2):
        lockstep.SEED = seed
        case = adversarial(policy, seed + seed // 8, n=54)
        check(case, on_cpu(case, step=1), on_device(case, VARIANTS[seed % 3]))


@pytest.mark.parametrize("policy", NAMES)
def test_long_streams(policy: str) -> None:
    for seed in range(2):
        check(lengthy(policy, seed), on_cpu(lengthy(policy, seed), step=1),
              on_device(lengthy(policy, seed)))  # fmt: skip


@pytest.mark.parametrize("policy", ["eq-cluster", "pps-cluster"])
def test_there_is_a_slot_for_every_tuple_held_and_no_more(policy: str) -> None:
    """Memories without a cap are as large as what is drawn asks, which the host counts first."""
    for seed in range(3):
        case = lengthy(policy, seed)
        asked: list[int] = []

        def choose(slots: int, asked: list[int] = asked) -> Variant:
            asked.append(slots)
            return VARIANTS[0]

        columns = columns_of(case)
        lanes = load_lanes(SimulatedDevice(), [columns])
        (found,) = replay_on_device(
            SimulatedDevice(), lanes, [sample_setting(case, columns)], choose=choose
        )
        assert found.peaks == on_cpu(case).peaks
        assert set(asked) == {sum(found.peaks)}


def test_lanes_seeds_sizes_and_other_policies_share_launches() -> None:
    """Of two lanes, with policies that do not sample between them, whose rows stay their own."""
    others = [busy(policy, 3) for policy in ("rand", "prob", "dgl")]
    long = {policy: lengthy(policy, 2) for policy in NAMES}
    sampled = [
        own._replace(left=own.left[:250], right=own.right[:250], seed=seed, size=size)
        for own in long.values()
        for seed in (0, 1)
        for size in ("matches", "weighted")
    ]
    lanes = [columns_of(sampled[0]), setting_of(others[0])[1]]
    columns = load_lanes(SimulatedDevice(), lanes)
    others = [case._replace(left=others[0].left, right=others[0].right) for case in others]
    chosen = [sample_setting(case, lanes[0]) for case in sampled]
    mixed = [setting_of(case)[0]._replace(lane=1) for case in others]
    launched: list[int] = []

    class Counting(SimulatedDevice):
        def launch(self, *arguments: Any, **named: Any) -> None:
            launched.append(1)
            super().launch(*arguments, **named)

    found = replay_on_device(Counting(), columns, [*mixed, *chosen])
    for case, outcome in zip(others, found[: len(others)], strict=True):
        ref = replay(case, emit=False)
        assert (outcome.outputs, outcome.peaks) == (ref.counted, ref.peaks), case.policy
    for one, outcome in zip(sampled, found[len(others) :], strict=True):
        ours = on_cpu(one, emit=False)
        assert (outcome.outputs, outcome.peaks) == (ours.counted, ours.peaks), one
        assert outcome.importance == pytest.approx(ours.importance, rel=1e-12)
    assert len(launched) == len(others) + 5  # a launch for each policy and kind of size


@pytest.mark.parametrize(("probe", "windows"), [("before_admission", 9), ("after_admission", 3)])
def test_cells_are_those_of_the_cpu(probe: str, windows: int, tmp_path: Path) -> None:
    streams(tmp_path, rows=50)
    told_all: dict[str, Any] = {
        "policies": [*NAMES, "rand"], "memory": "0,7,20%,300", "windows": windows, "seeds": "0,5",
        "params": {"pps-cluster.size": "weighted"}, "probe": probe,
    }  # fmt: skip
    compared(tmp_path, **told_all)


def test_groups_and_lanes(tmp_path: Path) -> None:
    drifting(tmp_path, rows=120)
    compared(tmp_path, policies=NAMES, memory="6,40%", windows="30", partition_by="g", lanes=2,
             params={"size": "weighted"})  # fmt: skip


def compared(folder: Path, **options: Any) -> None:
    assert swept_alike(folder, **options).report["device"]["used"] == "gpu"
