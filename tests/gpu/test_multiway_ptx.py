"""Multi-way probe kernels compiled for GPU generations, with no GPU, and their code read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_cases import CompilingDevice, make_up_device
from multiway_cases import PREDICATES, random_streams
from numba import types
from thorough import guards

from engine.device.walks import GpuProber
from engine.multiway.harvest.layout import (
    WHOLE,
    HarvestRules,
    ProbeBatch,
    admitted_none,
    whole_plan,
)
from engine.multiway.predicate import Predicate
from engine.multiway.streams import windows_of
from gpu_kernels.compiler import Kernel, fused_operations
from gpu_kernels.multiway.kernels import FIND, WalkVariant, count_kernel, never, write_kernel
from gpu_kernels.multiway.predicates import KINDS, THETA
from gpu_kernels.multiway.proposals import COMPACT, Bounds, DeviceProposals

F, F2 = types.float64[::1], types.float64[:, ::1]
I, I2, I3 = types.int64[::1], types.int64[:, ::1], types.int64[:, :, ::1]  # noqa: E741 - as the signatures read
N, D = types.int64, types.float64
PLAN = (I2, I2, I, I, I)
FOUND = (I, I, I, *PLAN, I, I, I, I, I, I3)
WALK = (I, I, F, I3, I2, I2, N, N, D, I, I, F2, I, I, F, F)
COUNTED = (*WALK, I2, F)
WRITTEN = (*WALK, I, N, N, N, N, I, I, I2, F)
GENERATIONS = [(7, 5), (8, 0), (9, 0)]
compiling = guards(
    "gpu_kernels", "engine/device", "engine/multiway", "tests/gpu/test_multiway_ptx.py"
)
"""Each kernel takes a second."""


def greedy(a: Any, b: Any) -> Any:
    """Ask for products and sums in one rounding."""
    return a[0] * b[0] + a[1] * b[1] >= b[0] * b[0] - a[1] * a[0]


def check(kernel: Kernel, signature: Any, generation: tuple[int, int]) -> str:
    ptx = kernel.ptx(signature, generation)
    assert f".target sm_{generation[0]}{generation[1]}" in ptx
    assert ".entry" in ptx
    assert fused_operations(ptx) == []
    assert "call.uni" not in ptx, "a function was not inlined"
    return ptx


def variant(kind: str) -> WalkVariant:
    return WalkVariant(KINDS.index(kind), greedy if kind == "theta" else never)


@compiling
@pytest.mark.parametrize("kind", KINDS)
def test_every_predicate_compiles_without_fusing(kind: str) -> None:
    counts = check(count_kernel(variant(kind)), COUNTED, (9, 0))
    writes = check(write_kernel(variant(kind)), WRITTEN, (9, 0))
    for ptx in (counts, writes):
        assert "vote.sync.ballot" in ptx
        assert ".local .align 16 .b8 \t__local_depot0[512]" in ptx, "more than a walk's stack"


@compiling
@pytest.mark.parametrize("generation", GENERATIONS, ids=str)
def test_every_generation(generation: tuple[int, int]) -> None:
    check(FIND, FOUND, generation)
    check(count_kernel(variant("inner")), COUNTED, generation)
    check(write_kernel(variant("distance")), WRITTEN, generation)


def test_no_function_but_theta_s_makes_a_kernel_of_its_own() -> None:
    assert count_kernel(variant("band")) is count_kernel(variant("band"))
    assert count_kernel(variant("theta")) is not count_kernel(WalkVariant(THETA, never))


@compiling
@pytest.mark.parametrize("generation", GENERATIONS, ids=str)
def test_proposals_in_every_generation(generation: tuple[int, int]) -> None:
    tile = types.float32[:, ::1]
    check(COMPACT, (tile, I, I, N, N, F, D, D, D, N, N, N, I, I), generation)


@compiling
def test_what_proposes_vectors_hands_to_its_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    make_up_device(monkeypatch)
    device = CompilingDevice()
    row = np.random.default_rng(1).standard_normal((30, 9)).astype(np.float32)
    bounds = Bounds(least=0.5, sure=0.7, margin=0.1, multiplied=True, exchanged=True)
    made = DeviceProposals(device, row, np.ones(30), bounds)
    none = made.pairs(range(3), range(10, 30), np.zeros(3, np.int64), np.full(3, 20))
    assert none.size == 0
    assert device.compiled == ["compact"]


def batch_of_all(streams: Any) -> ProbeBatch:
    n = streams.ts.size
    place = np.argsort(streams.ts, kind="stable")
    stream = np.repeat(np.arange(streams.number), np.diff(streams.first))[place]
    shred = np.where(np.arange(n) % 3 == 0, 0.5, WHOLE)
    return ProbeBatch(place, stream, shred)


def two_outputs_each(*arguments: Any) -> None:
    arguments[-2][:, -1] = 2


@compiling
@pytest.mark.parametrize("kind", list(PREDICATES))
def test_what_the_driver_hands_to_the_kernels(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make_up_device(monkeypatch)
    device = CompilingDevice()
    device.instead = {"count": two_outputs_each}
    monkeypatch.setattr("gpu_kernels.multiway.on_device.CHUNK", 50)
    streams = random_streams(1, (30, 0, 25), kind)
    windows = windows_of([9, 9, 9])
    plan = whole_plan([[1, 2], [0, 2], [0, 1]], windows)
    rules = HarvestRules(clique=True, combine=0, window=windows.size)
    prober = GpuProber.alone(streams, rules, PREDICATES[kind], plan, device)
    admitted = admitted_none(streams)
    admitted.number[:] = np.diff(streams.first)
    admitted.place[:] = np.arange(streams.ts.size)
    admitted.ts[:] = streams.ts
    batch = batch_of_all(streams)
    assert prober.count(admitted, plan, batch).outputs.tolist() == [2] * 55
    parts = list(prober.outputs(admitted, plan, batch, np.arange(55)))
    assert [part.members.shape for part in parts] == [(50, 3), (50, 3), (10, 3)]
    assert device.compiled == ["find", "count", "find", "write", "write", "write"]


def test_a_bound_needs_no_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    make_up_device(monkeypatch)
    device = CompilingDevice()
    streams = random_streams(1, (5, 6), "distance")
    windows = windows_of([9, 9])
    plan = whole_plan([[1], [0]], windows)
    rules = HarvestRules(clique=True, combine=0, window=windows.size)
    compiled = []
    for radius in (0.5, 2.25):
        predicate = Predicate("distance", ("x", "y"), radius)
        prober = GpuProber.alone(streams, rules, predicate, plan, device)
        prober.count(admitted_none(streams), plan, batch_of_all(streams))
        kernel = count_kernel(WalkVariant(predicate.code, never))
        compiled.append(len(kernel._checked))  # noqa: SLF001 - signatures compiled for
    assert compiled[0] == compiled[1]
