"""Every replay kernel, compiled for GPU generations without a GPU, and its PTX read."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import pytest
from numba import cuda, types
from replay_cases import CUSTOM
from thorough import guards, repeats

from engine.device.policies import policy_functions
from engine.policies import POLICIES, SAMPLING
from engine.replay.settings import ReplaySettings
from gpu_kernels.compiler import Kernel, fused_operations
from gpu_kernels.replay.kernel import replay_kernel
from gpu_kernels.replay.layout import PolicyFunctions, Pooling, no_arrival, no_now
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
    array(types.float64, 3), array(types.int64, 3),
    FLOATS, FLOATS, LONGS, array(types.int64, 2), FLOATS,
)  # fmt: skip


def functions_of(policy: str, *, pooled: bool = False) -> PolicyFunctions:
    parameters = {"function": CUSTOM[0]} if policy == "custom" else {}
    settings = ReplaySettings(5, 5, policy=policy, parameters=parameters, pooled=pooled)
    return policy_functions(settings)


class Setting(NamedTuple):
    """What a kernel is compiled for beside a policy."""

    team: str = "warp"
    facts: bool = False
    generation: tuple[int, int] = (9, 0)


OF_POLICY = {
    "dgl": Setting(facts=True),
    "simpprob": Setting("block", generation=(8, 0)),
    "recent": Setting("block in device memory", generation=(8, 0)),
    "dimpprob": Setting("block", facts=True, generation=(8, 0)),
    "custom": Setting(facts=True),
    "simp": Setting("block in device memory", facts=True, generation=(7, 5)),
    "eq-cluster": Setting("block", generation=(8, 0)),
    "pps-cluster": Setting("block", generation=(8, 0)),
    "bottom-k": Setting("block in device memory", generation=(8, 0)),
}
"""Other settings than the first, so that each team and memory is met, through facts too."""
SCALAR = ("additive", "prob", "rand", "until_expiry")
"""Policies whose kernel is another's but for one scalar function, which is compiled alone."""
SAME = ("eq-cluster",)
"""Policies whose kernel is another's."""
EVERY = {policy: OF_POLICY.get(policy, Setting()) for policy in sorted(POLICIES | SAMPLING)}
ONCE = [own for own in EVERY.items() if own[0] not in (*SCALAR, *SAME)]
ALL = [
    *[("dgl", Setting(generation=generation)) for generation in GENERATIONS],
    *EVERY.items(),
    *[
        (policy, Setting(team, facts))
        for policy in sorted(POLICIES | SAMPLING)
        for team in SLOTS
        for facts in ((False, True) if policy in POLICIES else (False,))
    ],
]


def bare(functions: PolicyFunctions) -> PolicyFunctions:
    """Return what policies of one kernel have in common."""
    return functions._replace(arrival=no_arrival, now=no_now, draws=False)


@cache
def compiled(functions: PolicyFunctions, setting: Setting) -> str:
    variant = choose_variant(SLOTS[setting.team])
    return replay_kernel(functions, *variant, facts=setting.facts).ptx(
        SIGNATURE, setting.generation
    )


def check(functions: PolicyFunctions, setting: Setting) -> None:
    ptx = compiled(functions, setting)
    assert ".target sm_{}{}".format(*setting.generation) in ptx
    assert "f64" in ptx
    assert fused_operations(ptx) == []
    assert ".local" not in ptx, "an array went to local memory"


compiling = guards(
    "gpu_kernels", "engine/device", "engine/policies", "tests/gpu/test_replay_ptx.py"
)
"""Each kernel takes seconds."""


@compiling
@pytest.mark.parametrize(("policy", "setting"), [*ONCE, *repeats(ALL)])
def test_every_policy_compiles_without_fusing(policy: str, setting: Setting) -> None:
    check(functions_of(policy), setting)


POOLED = {
    "age": Setting("block", generation=(7, 5)),
    "custom": Setting("block in device memory", generation=(8, 0)),
    "dgl": Setting(facts=True),
    "dimpprob": Setting("block", facts=True, generation=(8, 0)),
    "simpprob": Setting("block in device memory", facts=True, generation=(7, 5)),
    "yield": Setting(),
}
"""One of each ranking, and of each way to compare; each team and memory."""


@compiling
@pytest.mark.parametrize(
    ("policy", "setting"),
    [
        *POOLED.items(),
        *repeats(
            [
                (policy, Setting(team, facts))
                for policy in sorted(POLICIES)
                for team in SLOTS
                for facts in (False, True)
            ]
        ),
    ],
)
def test_one_memory_for_both_sides_compiles_without_fusing(policy: str, setting: Setting) -> None:
    check(functions_of(policy, pooled=True), setting)


def test_one_memory_is_compiled_by_value_or_by_priority() -> None:
    met = {functions_of(policy, pooled=True)[:2] for policy in POOLED}
    every = {functions_of(policy, pooled=True)[:2] for policy in POLICIES}
    assert {ranking for ranking, _ in met} == {ranking for ranking, _ in every}
    assert {functions_of(policy, pooled=True).pooling for policy in POOLED} == {
        Pooling.BY_PRIORITY, Pooling.BY_VALUE, Pooling.CORRECTED,
    }  # fmt: skip
    assert {functions_of(policy).pooling for policy in POLICIES} == {Pooling.NONE}


def test_every_team_and_memory_is_met() -> None:
    """With facts and without; each sampling method in a block, where it has most steps."""
    met = {setting[:2] for policy, setting in ONCE if policy in POLICIES}
    assert met == {(team, facts) for team in SLOTS for facts in (False, True)}
    assert {own.team for policy, own in ONCE if policy in SAMPLING} == set(SLOTS) - {"warp"}
    assert {setting.generation for _, setting in ONCE} == set(GENERATIONS)


@pytest.mark.parametrize("policy", SCALAR)
def test_what_a_policy_has_of_its_own_compiles_without_fusing(policy: str) -> None:
    functions = functions_of(policy)
    check_scalar(functions)
    whole = [bare(functions_of(other)) for other, _ in ONCE]
    assert bare(functions) in whole


def check_scalar(functions: PolicyFunctions) -> None:
    """Check the functions of a policy alone, without the kernel around them."""
    arrival, now = functions.arrival, functions.now

    def both(x: Any, out: Any) -> None:
        i = cuda.grid(1)
        rel, draw = int(x[i + 2]), x[i + 3]
        out[i] = arrival(x[i], x[i + 1], rel, draw, x[i + 4], x[i + 5], x[i + 6])
        out[i + 1] = now(x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5])

    ptx = Kernel(both).ptx((FLOATS, FLOATS), (9, 0))
    assert "f64" in ptx
    assert fused_operations(ptx) == []


def test_sampling_by_one_probability_is_the_kernel_of_sampling_by_size() -> None:
    assert functions_of("eq-cluster") == functions_of("pps-cluster")


def test_a_user_function_that_asks_for_fusing_is_not_fused() -> None:
    def greedy(
        imp: float, m: float, age: float, lifetime: float, previous: float, produced: float
    ) -> float:
        return imp * m + age * lifetime + previous * produced

    settings = ReplaySettings(5, 5, policy="custom", parameters={"function": greedy})
    check_scalar(policy_functions(settings))
    assert fused_operations("fma.rn.f64 %fd1, %fd2, %fd3, %fd4;") == ["fma.rn.f64"]
