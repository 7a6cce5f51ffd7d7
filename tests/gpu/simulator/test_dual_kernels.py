"""The dual of one side in the simulator against the CPU's, which a certificate is made with."""

from __future__ import annotations

import math
from typing import Any

import lockstep
import numpy as np
import pytest
from places import BENCHMARKS

from engine.device.optimum import GpuDual, dual_on
from engine.optimum import samples
from engine.optimum.certificate import certify
from engine.optimum.dual import CpuDual
from engine.optimum.intervals import Intervals, Matches, intervals_of, woven
from gpu_kernels.devices import SimulatedDevice, TooLargeError
from gpu_kernels.optimum import kernels, on_device, steps
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


def of_both(seed: int) -> Intervals:
    """Return choices of both sides' tuples on the line of one memory."""
    sides = []
    for side in range(2):
        draw = np.random.default_rng(2 * seed + side)
        ts = np.sort(draw.integers(0, 30, 20 + 15 * side))
        start = np.concatenate([[0], np.cumsum(draw.integers(0, 7, ts.size))])
        steps = draw.integers(1, 4, start[-1])
        ends = [ts[i] + np.cumsum(steps[start[i] : start[i + 1]]) for i in range(ts.size)]
        gain = draw.integers(1, 9, start[-1]) / 4
        sides.append(Matches(ts, start, np.concatenate(ends).astype(np.int64), gain))
    return intervals_of(woven(sides), after_admission=bool(seed % 2))


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
@pytest.mark.parametrize("seed", range(2))
def test_one_memory_for_both_sides_is_the_cpus(seed: int) -> None:
    intervals = of_both(seed)
    prices = prices_of(seed, intervals.nodes, 0.5)
    cpu, gpu = (make.evaluate(prices) for make in both_duals(intervals, 4))
    assert gpu.chosen.tolist() == cpu.chosen.tolist()
    assert gpu.load.tolist() == cpu.load.tolist()
    assert math.isclose(gpu.value, cpu.value, rel_tol=1e-12)
    cpu_slope, gpu_slope = (make.slope(prices, 0.3) for make in both_duals(intervals, 4))
    np.testing.assert_allclose(gpu_slope.load, cpu_slope.load, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(gpu_slope.curve, cpu_slope.curve, rtol=1e-9, atol=1e-9)


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
    count, bits = kernels.launch_of(1000, 1000 * choices)
    assert count * kernels.THREADS >> bits >= 1000
    assert bits == min(5, max(0, int(math.log2(choices)) - 1))
    assert kernels.launch_of(10**9, 10**9 * choices) == (4096, bits)


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


@pytest.mark.parametrize("bits", [0, 2], indirect=True)
def test_the_sum_of_profits_is_that_of_exact_arithmetic(bits: int) -> None:
    del bits
    size = 400  # a thread's sum is far from exact without what rounding left out of it
    worth = np.where(np.arange(size) < 128, 2.0**53, 3.0)
    ends = np.arange(1, size + 1)
    each = Intervals(
        size, np.arange(size, dtype=np.int32), np.arange(size + 1), ends.astype(np.int32), worth,
        ends,
    )  # fmt: skip
    free = np.zeros(size + 1)
    assert GpuDual(each, 1, DEVICE, 1).evaluate(free).value == math.fsum(worth)
    assert GpuDual(each, 1, DEVICE, 1).slope(free, 1.0).value == math.fsum(worth)


@pytest.mark.parametrize("bits", [0, 2], indirect=True)
def test_the_curvature_is_rounded_up_and_ends_with_the_choices(
    bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    del bits
    monkeypatch.setattr(on_device, "_WIDEST", 12)
    some = drawn(3, most=5)
    later = 7  # arrivals without choices
    alone = some._replace(
        nodes=some.nodes + later,
        begin=np.append(some.begin, np.arange(later, dtype=np.int32) + some.nodes),
        start=np.append(some.start, np.full(later, some.start[-1])),
    )
    prices = prices_of(3, alone.nodes, 0.7)
    cpu, gpu = (dual.slope(prices, 0.2) for dual in both_duals(alone, 3))
    tuples = CpuDual(alone, 3, 1).cover().tuples
    unit = 2.0 ** (int(tuples.max()) * 99).bit_length() / 2**12
    assert (gpu.curve >= cpu.curve - 1e-9).all()
    assert (gpu.curve <= cpu.curve + tuples * unit).all()
    assert (gpu.curve != cpu.curve).any()
    assert gpu.curve[-later:].tolist() == gpu.load[-later:].tolist() == [0.0] * later


@pytest.mark.parametrize(("first", "hot"), [(0.5, 0.3), (0.001, 1e-6)])
def test_prices_climb_as_on_the_cpu(
    first: float, hot: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "THREADS", 32)
    monkeypatch.setattr(steps, "launch_of", lambda *_: (2, 0))
    intervals = drawn(6, tuples=70, most=5)
    cover = CpuDual(intervals, 6, 1).cover()
    length = np.where(cover.tuples > 6, cover.length, 0.0)
    price = np.where(length > 0.0, 0.01, first)
    cpu, gpu = (dual.start(length, price) for dual in both_duals(intervals, 6))
    for turn, by in enumerate((0.3, 0.0, 0.9, 1.5)):
        temperature = hot / (1 + turn)
        assert gpu.slope(temperature) == pytest.approx(cpu.slope(temperature), rel=1e-9)
        against = cpu.move(temperature)
        assert gpu.move(temperature) == pytest.approx(against, rel=1e-6, abs=1e-9)
        for point in (cpu, gpu):
            point.carry(by)
            sums = point.sums()
            assert sums[0] == 0.0
            assert (np.diff(sums) >= 0.0).all()
            assert point.ends().tolist() == [sums[0], sums[-1]]
        np.testing.assert_allclose(gpu.sums(), cpu.sums(), rtol=1e-8, atol=1e-12)
    assert (np.diff(gpu.sums())[length == 0.0] == 0.0).all()
    assert 0 < np.count_nonzero(length) < intervals.nodes


def test_prices_of_any_size_keep_their_digits() -> None:
    intervals = drawn(6, tuples=30)
    length = np.ones(intervals.nodes)
    for scale in (0.0, 1e-250, 1.0, 1e300):
        price = scale * np.random.default_rng(2).random(intervals.nodes)
        point = GpuDual(intervals, 2, DEVICE, 1).start(length, price)
        exact = np.concatenate([[0.0], np.cumsum(price)])
        np.testing.assert_allclose(point.sums(), exact, rtol=1e-14)


@pytest.mark.parametrize("sampled", [False, True], ids=["", "from samples"])
@pytest.mark.parametrize("both", [False, True], ids=["a side", "both sides"])
def test_a_certificate_is_the_cpus_but_for_last_digits(
    monkeypatch: pytest.MonkeyPatch, both: bool, sampled: bool
) -> None:
    if sampled:
        for least in ("SLOTS", "TUPLES", "STRETCHES"):
            monkeypatch.setattr(samples, least, 0.2)
    for module in (on_device, steps):
        monkeypatch.setattr(module, "THREADS", 32)
        monkeypatch.setattr(module, "launch_of", lambda *_: (1, 0))
    intervals = of_both(1) if both else drawn(5, tuples=24, most=6)
    made = [
        certify(intervals, 1, rounds=22, gap=0.0, threads=1, seconds=1e6, backend=backend)
        for backend in (CpuDual, dual_on(DEVICE))
    ]
    cpu, gpu = made
    assert gpu.rounds == cpu.rounds == 22
    if sampled:  # cold from the first round on, where last digits move prices
        assert gpu.upper == pytest.approx(cpu.upper, rel=0.01)
    else:
        assert gpu.upper == pytest.approx(cpu.upper, rel=1e-6)
        np.testing.assert_allclose(gpu.prices, cpu.prices, rtol=1e-4)
    assert 0.0 < gpu.lower <= gpu.upper


def test_choices_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 1000)
    with pytest.raises(TooLargeError, match=r"choices of 60 tuples need .* use --device cpu"):
        GpuDual(drawn(1), 2, DEVICE, 1)


def test_the_exponential_of_every_device() -> None:
    for x in np.linspace(-32.0, 0.0, 3001):
        assert exponential(float(x)) == pytest.approx(math.exp(x), rel=1e-12)
    assert exponential(0.0) == 1.0


def test_the_suite_s_section_compares_and_times_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import gpu_optimum  # noqa: PLC0415 - found through the path just given

    for module in (on_device, steps):
        monkeypatch.setattr(module, "THREADS", 32)
    found = gpu_optimum.measure_optimum(DEVICE, tuples=30, choices=3, repeats=1)
    assert found["evaluate"]["times_cpu"] > 0
    assert found["step"]["choices_a_second"] > 0
    intervals = gpu_optimum.drawn(30, 3)
    prices, cpu = np.zeros(31), CpuDual(intervals, 2, 1)
    gpu_optimum.held_equal(intervals, cpu, GpuDual(intervals, 2, DEVICE, 1), prices)
    with pytest.raises(gpu_optimum.UnequalError, match="value"):
        gpu_optimum.held_equal(intervals, cpu, CpuDual(intervals, 3, 1), np.arange(31.0) / 99)
    other = intervals._replace(value=intervals.value / 2)
    with pytest.raises(gpu_optimum.UnequalError, match="of chosen are not"):
        gpu_optimum.held_equal(intervals, cpu, CpuDual(other, 2, 1), np.arange(31.0) / 9)
