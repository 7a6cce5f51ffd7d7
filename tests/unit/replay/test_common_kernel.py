"""The kernel for all policies gives the rows of each one's own; when which of the two replays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from replay_cases import Case, batch_of, busy, cases, expected, fact_cases, pooled, run
from thorough import THOROUGH

from engine.policies import POLICIES
from engine.replay import common
from engine.replay.layout import CommonRules
from engine.runtime.compilation.compilations import COMPILED
from engine.runtime.compilation.deferred import LEFT, STEPS

DRAWN = settings(
    max_examples=100 if THOROUGH else 20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    derandomize=True,
)
CASE = Case(
    [(0, 1, 1.0), (2, 1, 1.0)], [(1, 1, 1.0), (2, 1, 2.0)], (3, 3), (1, 1), "simp", {}
)  # fmt: skip
ROWS = len(batch_of(CASE.left).ts) + len(batch_of(CASE.right).ts)


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Note of each batch whether the kernel for all replays it, while no other is there."""
    found: list[bool] = []
    choose = common.Kernels.choose

    def noted(kernels: common.Kernels, tuples: int, arguments: tuple[Any, ...]) -> Any:
        ends = choose(kernels, tuples, arguments)
        found.append(isinstance(ends[0], CommonRules))
        return ends

    monkeypatch.setattr(common.Kernels, "choose", noted)
    monkeypatch.setattr(common, "TUPLES", 10**9)
    monkeypatch.setattr(common, "LANE_TUPLES", 10**9)
    monkeypatch.setattr(common, "FEW", 0)
    monkeypatch.setattr(common, "_REPLAYED", Counter())
    monkeypatch.setattr(common, "_ASKED", {})
    monkeypatch.setattr(common, "_is_there", lambda ends, _: isinstance(ends[0], CommonRules))
    return found


def equals_the_oracle(case: Case, step: int) -> None:
    ref, comp = expected(case), run(case, step=step)
    assert comp.outputs == [tuple(output) for output in ref.outputs]
    assert comp.peaks == (ref.peak_left, ref.peak_right)
    assert comp.counted == len(ref.outputs)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_equals_the_oracle(policy: str, used: list[bool]) -> None:
    each = cases(policy), cases(policy).map(pooled)
    through_facts = fact_cases(policy), fact_cases(policy).map(pooled)

    @DRAWN
    @given(case=st.one_of(*each, *through_facts), step=st.sampled_from([1, 7]))
    def every(case: Case, step: int) -> None:
        equals_the_oracle(case, step)

    every()
    assert used
    assert all(used)


@pytest.mark.parametrize("policy", sorted(POLICIES))
@pytest.mark.parametrize("change", [lambda case: case, pooled], ids=["two memories", "one memory"])
def test_equals_the_own_kernel_in_importance_too(
    policy: str, change: Callable[[Case], Case], used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = change(busy(policy, 3))
    ours = run(case)
    assert used
    assert all(used)
    monkeypatch.setattr(common, "TUPLES", 0)
    assert run(case) == ours
    assert not all(used)


def test_a_process_compiles_a_kinds_own_kernel_where_it_replays_much(
    used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "TUPLES", ROWS + 1)
    run(CASE)
    assert used == [True]
    whole = run(CASE, step=1)
    assert used == [True, True, False, False]
    assert whole.outputs == run(CASE).outputs


def test_a_long_lane_begins_with_its_own_kernel(
    used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "LANE_TUPLES", ROWS - 1)
    run(CASE, step=1)
    assert used == [False, False, False]
    run(CASE, spares=True)  # as trials do, which replay little by each kernel
    assert used == [False, False, False, True]


def test_little_of_a_long_lane_has_the_kernel_for_all_only_where_it_is_there(
    used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "LANE_TUPLES", ROWS - 1)
    run(CASE, spares=False)  # as estimates of one replay do
    monkeypatch.setattr(common, "_is_there", lambda *_: False)
    monkeypatch.setattr(common, "_ASKED", {})
    run(CASE, spares=False)
    assert used == [True, False]


def test_where_little_is_replayed_of_a_long_lane_the_kernel_for_all_begins(
    used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "TUPLES", ROWS - 1)
    run(CASE, spares=True, step=1)
    assert used == [True, True, False]


def test_the_own_kernel_is_preferred_where_it_is_there(
    used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "_is_there", lambda *_: True)
    run(CASE)
    assert used == [False]


@pytest.mark.parametrize("there", [False, True])
def test_few_tuples_are_replayed_by_the_kernel_for_all_where_it_is_there(
    there: bool, used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "FEW", 2 * ROWS)
    monkeypatch.setattr(
        common, "_is_there", lambda ends, _: there or not isinstance(ends[0], CommonRules)
    )
    for _ in range(3):
        run(CASE)
    assert used == [there, there, False]


@pytest.mark.parametrize("spares", [False, True])
def test_the_kernel_for_all_is_compiled_only_to_spare_others(
    spares: bool, used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(common, "_is_there", lambda *_: False)
    made = common.Kernels.__init__

    def init(kernels: common.Kernels, *arguments: Any, **_: bool) -> None:
        made(kernels, *arguments, spares=spares)

    monkeypatch.setattr(common.Kernels, "__init__", init)
    run(CASE)
    assert used == [spares]


def test_the_disk_is_asked_once_a_lane(used: list[bool], monkeypatch: pytest.MonkeyPatch) -> None:
    """To ask takes as long as to replay thousands of tuples, and a batch may hold one."""
    asked = []

    def is_there(ends: tuple[Any, Any], _: Any) -> bool:
        asked.append(ends)
        return isinstance(ends[0], CommonRules)

    monkeypatch.setattr(common, "_is_there", is_there)
    run(CASE, step=1)
    assert used == [True] * 3
    assert len(asked) == 2


def test_the_disk_is_asked_seldom_for_lanes_of_few_tuples(
    used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Counter[bool]()

    def is_there(ends: tuple[Any, Any], _: Any) -> bool:
        asked[isinstance(ends[0], CommonRules)] += 1
        return False

    monkeypatch.setattr(common, "_is_there", is_there)
    for _ in range(40):
        run(CASE)
    assert not any(used)
    assert asked == {True: 6}  # at 1, 2, 4, 8, 16, and 32 lanes


@pytest.mark.parametrize("spares", [False, True])
def test_before_numba_is_loaded_it_is_interpreted_only_where_it_may_be_compiled(
    spares: bool, used: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that turns out to be too much is compiled: then it is to be the right kernel."""
    monkeypatch.setattr(COMPILED, "always", False)
    monkeypatch.setattr(LEFT, "steps", STEPS)
    made = common.Kernels.__init__

    def init(kernels: common.Kernels, *arguments: Any, **_: bool) -> None:
        made(kernels, *arguments, spares=spares)

    monkeypatch.setattr(common.Kernels, "__init__", init)
    run(CASE)
    assert LEFT.is_some()
    assert used == [spares]
