"""Every replay kernel, compiled for GPU generations without a GPU, and its PTX read."""

from __future__ import annotations

import pytest
from numba import types
from replay_cases import CUSTOM

from engine.device.policies import policy_functions
from engine.policies import POLICIES, SAMPLING
from engine.replay.settings import ReplaySettings
from gpu_kernels.compiler import fused_operations
from gpu_kernels.replay.kernel import replay_kernel
from gpu_kernels.replay.layout import PolicyFunctions
from gpu_kernels.replay.plan import choose_variant

GENERATIONS = [(7, 5), (8, 0), (9, 0)]
SLOTS = {"warp": 200, "block": 1_000, "block in device memory": 100_000}


def array(dtype: types.Type, dimensions: int = 1) -> types.Array:
    return types.Array(dtype, dimensions, "C")


FLOATS, LONGS, INTS = array(types.float64), array(types.int64), array(types.int32)
SIGNATURE = (
    array(types.int64, 2), array(types.float64, 2),
    LONGS, INTS, FLOATS, LONGS, INTS, INTS, LONGS, INTS, LONGS, FLOATS, FLOATS, FLOATS, FLOATS,
    FLOATS, INTS, FLOATS, FLOATS, INTS, INTS, types.int64,
    FLOATS, FLOATS, LONGS, array(types.int64, 2), FLOATS,
)  # fmt: skip


def functions_of(policy: str) -> PolicyFunctions:
    parameters = {"function": CUSTOM[0]} if policy == "custom" else {}
    return policy_functions(ReplaySettings(5, 5, policy=policy, parameters=parameters))


def check(
    functions: PolicyFunctions, slots: int, generation: tuple[int, int], *, facts: bool = False
) -> None:
    kernel = replay_kernel(functions, *choose_variant(slots), facts=facts)
    ptx = kernel.ptx(SIGNATURE, generation)
    assert f".target sm_{generation[0]}{generation[1]}" in ptx
    assert "f64" in ptx
    assert fused_operations(ptx) == []
    assert ".local" not in ptx, "an array went to local memory"


@pytest.mark.parametrize("policy", sorted(POLICIES | SAMPLING))
def test_every_policy_compiles_without_fusing(policy: str) -> None:
    check(functions_of(policy), SLOTS["warp"], (9, 0))


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_generation(generation: tuple[int, int]) -> None:
    check(functions_of("dgl"), SLOTS["warp"], generation)


@pytest.mark.parametrize("slots", list(SLOTS.values()), ids=list(SLOTS))
def test_every_team_and_memory(slots: int) -> None:
    check(functions_of("simpprob"), slots, (8, 0))


@pytest.mark.parametrize(
    ("policy", "team", "generation"),
    [
        ("dgl", "warp", (9, 0)),
        ("dimpprob", "block", (8, 0)),
        ("custom", "warp", (9, 0)),
        ("simp", "block in device memory", (7, 5)),
    ],
)
def test_through_facts(policy: str, team: str, generation: tuple[int, int]) -> None:
    """Each step that is another through facts, in each kind of team."""
    check(functions_of(policy), SLOTS[team], generation, facts=True)


@pytest.mark.parametrize("team", [name for name in SLOTS if name != "warp"])
@pytest.mark.parametrize("policy", ["pps_cluster", "bottom_k"])
def test_samples_in_every_team_and_memory(policy: str, team: str) -> None:
    check(functions_of(policy), SLOTS[team], (8, 0))


def test_sampling_by_one_probability_is_the_kernel_of_sampling_by_size() -> None:
    assert functions_of("eq_cluster") == functions_of("pps_cluster")


def test_a_user_function_that_asks_for_fusing_is_not_fused() -> None:
    def greedy(
        imp: float, m: float, age: float, lifetime: float, previous: float, produced: float
    ) -> float:
        return imp * m + age * lifetime + previous * produced

    settings = ReplaySettings(5, 5, policy="custom", parameters={"function": greedy})
    check(policy_functions(settings), SLOTS["warp"], (9, 0))
    assert fused_operations("fma.rn.f64 %fd1, %fd2, %fd3, %fd4;") == ["fma.rn.f64"]
