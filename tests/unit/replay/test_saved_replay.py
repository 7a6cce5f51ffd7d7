"""A replay cut anywhere and gone on from its state emits what it would have emitted uncut."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay_cases import Case, batch_of, busy, case_arguments, cases, cut, keys_of, pooled, run

from engine.policies import POLICIES
from engine.replay.layout import KEY, LOG, SLOT
from engine.replay.ranks import RetentionPlan
from engine.replay.saved import SavedReplay
from engine.runtime.errors import SpecError
from spark_plugin.streaming.lane import pack, unpack

SOME = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)


def resumed(case: Case, edges: list[int]) -> tuple[list[tuple[Any, ...]], SavedReplay]:
    """Replay a case batch by batch, each by another replay that goes on from bytes."""
    left, right = batch_of(case.left), batch_of(case.right)
    settings_, profile, budget, curves = case_arguments(case)
    keys = keys_of(case, left, right)
    blob = b""
    outputs = []
    for begin, end in pairwise(edges):
        lane = SavedReplay(settings_, profile, budget, curves=curves, chunk=4)
        if blob:
            lane.restore(unpack(blob))
        a, b = cut(left, begin, end), cut(right, begin, end)
        for out in lane.push(a, keys.ids(0, a), b, keys.ids(1, b), keys.size):
            columns = (out.left_row, out.right_row, out.ts, out.importance)
            outputs += list(zip(*(column.tolist() for column in columns), strict=True))
        blob = pack(lane.state(keys.size))
    outputs.sort(key=lambda o: (o[2], o[0], o[1]))
    return outputs, lane


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_every_policy_goes_on_after_every_instant(policy: str) -> None:
    @SOME
    @given(case=cases(policy), step=st.sampled_from([1, 2, 5]))
    def every(case: Case, step: int) -> None:
        ref = run(case)
        outputs, lane = resumed(case, list(range(-step, 26 + step, step)))
        assert outputs == ref.outputs
        assert lane.outputs == ref.counted
        assert lane.importance == pytest.approx(ref.importance, rel=1e-12, abs=1e-12)
        assert lane.peaks == ref.peaks

    every()


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_full_memories_go_on_from_their_state(policy: str) -> None:
    for seed in range(3):
        case = busy(policy, seed)
        outputs, _ = resumed(case, [-1, 3, 9, 10, 40, 41, 77, 200])
        assert outputs == run(case).outputs


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_one_memory_of_both_sides_goes_on_from_its_state(policy: str) -> None:
    for seed in range(4):
        case = pooled(busy(policy, seed))
        outputs, lane = resumed(case, [-1, 3, 9, 10, 40, 41, 77, 200])
        ref = run(case)
        assert outputs == ref.outputs
        assert (lane.peaks, lane.peak) == (ref.peaks, ref.peak)


def test_a_state_of_other_settings_is_refused() -> None:
    case = busy("dgl", 1)
    settings_, profile, *_ = case_arguments(case)
    big = SavedReplay(settings_, profile, (50, 50))
    batch = batch_of(case.left)
    ids = np.zeros(batch.ts.size, np.int32)
    list(big.push(batch, ids, batch, ids, 1))
    state = dict(big.state(1))
    small = SavedReplay(settings_, profile, (2, 2))
    with pytest.raises(SpecError, match=r"no left_slots that fits.*new checkpoint"):
        small.restore(state)
    del state["sums"]
    with pytest.raises(SpecError, match="no sums that fits"):
        SavedReplay(settings_, profile, (50, 50)).restore(state)


def test_what_follows_a_plan_has_no_state() -> None:
    settings_, profile, budget, _ = case_arguments(busy("dgl", 1))
    lane = SavedReplay(settings_, profile, budget, plan=RetentionPlan(np.zeros(0), np.zeros(0)))
    with pytest.raises(SpecError, match="follows a plan"):
        lane.state(0)


@pytest.mark.parametrize("dtype", [SLOT, KEY, LOG, np.dtype("?"), np.dtype("i4")])
def test_arrays_of_any_type_come_back_from_bytes(dtype: Any) -> None:
    raw = np.random.default_rng(1).integers(0, 2, 3 * dtype.itemsize, np.uint8)
    array = raw.view(dtype)
    found = unpack(pack({"a": array, "none": array[:0], "b": np.ones((2, 3))}))
    assert found["a"].dtype == dtype
    assert found["a"].tobytes() == array.tobytes()
    assert found["none"].size == 0
    assert found["b"].tolist() == [[1.0] * 3] * 2


def test_bytes_of_another_version_are_refused() -> None:
    with pytest.raises(SpecError, match="another version of winnow"):
        unpack(b"winnow-state-0\nxxxx")
