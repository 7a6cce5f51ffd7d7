"""The dual of one side in the simulator against the CPU's, which a certificate is made with."""

from __future__ import annotations

import math
from typing import Any

import lockstep
import numpy as np
import pytest

from engine.errors import DeviceError
from engine.optimum.certificate import certify
from engine.optimum.dual import CpuDual
from engine.optimum.intervals import Intervals, intervals_of
from engine.optimum.matches import Matches
from engine.optimum.on_gpu import GpuDual, dual_on
from gpu_kernels.devices import SimulatedDevice
from gpu_kernels.optimum import blocks, on_device
from gpu_kernels.optimum.formulas import exponential

DEVICE = SimulatedDevice()


@pytest.fixture(params=[0, 1], ids=lambda seed: f"order {seed}")
def _order_of_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "SEED", request.param)


@pytest.fixture(name="bits", params=[0, 2, 5], ids=lambda bits: f"{1 << bits} threads a tuple")
def _threads_a_tuple(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Two blocks of two warps each, so that all go through several tuples."""
    monkeypatch.setattr(on_device, "THREADS", 64)
    monkeypatch.setattr(on_device, "launch_of", lambda *_: (2, request.param))
    return int(request.param)


def drawn(seed: int, tuples: int = 60, most: int = 12, kinds: int = 12) -> Intervals:
    """Return choices of up to `most` matches a tuple, some of none; `kinds` of worths make ties."""
    draw = np.random.default_rng(seed)
    ts = np.sort(draw.integers(0, tuples // 2, tuples))
    sizes = draw.integers(0, most + 1, tuples)
    start = np.concatenate([[0], np.cumsum(sizes)])
    steps = draw.integers(1, 4, start[-1])
    at = np.concatenate([ts[i] + np.cumsum(steps[start[i] : start[i + 1]]) for i in range(tuples)])
    gain = draw.integers(-2, kinds, start[-1]) / 4
    return intervals_of(Matches(ts, start, at.astype(np.int64), gain), after_admission=False)


def prices_of(seed: int, nodes: int, highest: float, kinds: int = 1000) -> Any:
    draw = np.random.default_rng(seed + 100)
    return np.concatenate([[0.0], np.cumsum(draw.integers(0, kinds, nodes) * highest / kinds)])


@pytest.mark.usefixtures("_order_of_threads", "bits")
@pytest.mark.parametrize(("highest", "kinds"), [(0.0, 1), (1.0, 4), (0.7, 1000), (1e9, 9)])
def test_choices_and_loads_are_equal(highest: float, kinds: int) -> None:
    for seed in range(2):
        intervals = drawn(seed, kinds=4 + 16 * seed)
        prices = prices_of(seed, intervals.nodes, highest, kinds)
        cpu = CpuDual(intervals, 3, 1).evaluate(prices)
        gpu = GpuDual(intervals, 3, DEVICE, 1).evaluate(prices)
        assert gpu.chosen.tolist() == cpu.chosen.tolist()
        assert gpu.load.tolist() == cpu.load.tolist()
        assert (gpu.chosen.dtype, gpu.load.dtype) == (np.int64, np.int64)
        assert math.isclose(gpu.value, cpu.value, rel_tol=1e-12)


@pytest.mark.usefixtures("_order_of_threads", "bits")
@pytest.mark.parametrize(
    ("highest", "temperature"), [(0.7, 1e-6), (0.7, 0.01), (0.0, 0.01), (0.7, 0.3), (0.7, 100.0)]
)
def test_shares_are_equal(highest: float, temperature: float) -> None:
    intervals = drawn(7, most=40 if temperature == 0.3 else 12)
    prices = prices_of(7, intervals.nodes, highest)
    cpu = CpuDual(intervals, 3, 1).slope(prices, temperature)
    gpu = GpuDual(intervals, 3, DEVICE, 1).slope(prices, temperature)
    assert math.isclose(gpu.value, cpu.value, rel_tol=1e-12)
    np.testing.assert_allclose(gpu.load, cpu.load, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gpu.curve, cpu.curve, rtol=1e-9, atol=1e-9)
    assert (gpu.curve >= cpu.curve - 1e-11).all()


@pytest.mark.usefixtures("_order_of_threads")
def test_of_equal_choices_the_shortest_is_taken(bits: int) -> None:
    del bits
    size = 40
    end = np.arange(1, size + 1, dtype=np.int32)
    worth = np.minimum(1.0 + np.arange(size), 5.0 + np.arange(size) / 2)  # grows by its price
    both = Intervals(
        size, np.zeros(1, np.int32), np.array([0, size]), end, worth, end.astype(np.int64)
    )
    prices = np.arange(size + 1) / 2
    found = GpuDual(both, 1, DEVICE, 1).evaluate(prices)
    profits = worth - prices[1:]
    assert found.chosen.tolist() == [int(np.argmax(profits))] == [8]
    assert np.count_nonzero(profits == profits.max()) == 32


@pytest.mark.parametrize("choices", [1, 2, 9, 63, 1000])
def test_what_a_launch_is_made_of_goes_by_the_input(choices: int) -> None:
    count, bits = blocks.launch_of(1000, 1000 * choices)
    assert count * blocks.THREADS >> bits >= 1000
    assert bits == min(5, max(0, int(math.log2(choices)) - 1))
    assert blocks.launch_of(10**9, 10**9 * choices) == (4096, bits)


def test_the_real_launch_gives_the_same() -> None:
    intervals = drawn(4, tuples=100, most=9)
    prices = prices_of(4, intervals.nodes, 0.5)
    cpu, gpu = (make.evaluate(prices) for make in both_duals(intervals, 2))
    assert gpu.chosen.tolist() == cpu.chosen.tolist()
    assert gpu.load.tolist() == cpu.load.tolist()


def both_duals(intervals: Intervals, budget: int) -> tuple[CpuDual, GpuDual]:
    return CpuDual(intervals, budget, 1), GpuDual(intervals, budget, DEVICE, 1)


def test_no_tuples_and_tuples_without_choices() -> None:
    for tuples in (0, 3):
        none = Intervals(
            tuples, np.arange(tuples, dtype=np.int32), np.zeros(tuples + 1, np.int64),
            np.empty(0, np.int32), np.empty(0), np.empty(0, np.int64),
        )  # fmt: skip
        dual = GpuDual(none, 2, DEVICE, 1)
        prices = np.arange(tuples + 1.0)
        found, slope = dual.evaluate(prices), dual.slope(prices, 0.5)
        assert found.value == slope.value == 2.0 * tuples
        assert found.load.tolist() == slope.load.tolist() == slope.curve.tolist() == [0] * tuples
        assert found.chosen.tolist() == [-1] * tuples


def test_a_certificate_is_the_cpus_but_for_last_digits() -> None:
    intervals = drawn(5, tuples=60, most=6)
    cpu = certify(intervals, 2, rounds=12, threads=1, seconds=1e6)
    gpu = certify(intervals, 2, rounds=12, threads=1, seconds=1e6, backend=dual_on(DEVICE))
    assert gpu.upper == pytest.approx(cpu.upper, rel=1e-9)
    assert gpu.rounds == cpu.rounds > 3
    assert gpu.lower <= gpu.upper


def test_choices_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 1000)
    with pytest.raises(DeviceError, match=r"choices of 60 tuples need .* use --device cpu"):
        GpuDual(drawn(1), 2, DEVICE, 1)


def test_the_exponential_of_every_device() -> None:
    for x in np.linspace(-32.0, 0.0, 3001):
        assert exponential(float(x)) == pytest.approx(math.exp(x), rel=1e-12)
    assert exponential(0.0) == 1.0
