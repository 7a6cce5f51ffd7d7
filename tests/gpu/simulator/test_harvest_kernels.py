"""Harvest kernels in the simulator against the CPU twin: equal bit for bit."""

from __future__ import annotations

from typing import Any

import lockstep
import numpy as np
import pytest
from harvest_cases import drawn_join, exact_join, profile

from engine.multiway.fractions.evaluate import evaluate
from engine.multiway.fractions.exhaustive import best_settings, enumerate_settings
from engine.multiway.fractions.on_cpu import CpuHarvest
from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import DeviceError, SpecError
from gpu_kernels.devices import SimulatedDevice
from gpu_kernels.harvest import on_device, search, staging
from gpu_kernels.harvest.layout import flatten
from gpu_kernels.harvest.on_device import DeviceHarvest
from gpu_kernels.harvest.space import Search, ranges_of, space_of

DEVICE = SimulatedDevice()
RAGGED = [profile(drawn_join(seed, m, 5)) for seed, m in enumerate([3, 2, 4, 3, 8])]
"""Joins of 2 to 8 streams whose windows have 1 to 5 logical basic windows."""
SMALL = [profile(drawn_join(seed, m, n)) for seed, m, n in [(1, 2, 7), (2, 3, 2), (4, 3, 2)]]
TIES = [profile(exact_join(seed, m, n)) for seed, m, n in [(1, 2, 8), (2, 3, 2), (6, 3, 2)]]


def bits(array: Any) -> list[int]:
    return np.asarray(array, np.float64).view(np.int64).tolist()


@pytest.fixture(params=[0, 1], ids=lambda seed: f"order {seed}")
def _order_of_threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "SEED", request.param)


@pytest.fixture(params=[4, 1000], ids=lambda blocks: f"{blocks} blocks")
def _small_blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make work that is small here fill many blocks, some with too little shared memory.

    With 4 blocks at most, a thread goes through many runs.
    """
    monkeypatch.setattr(on_device, "_BLOCKS", request.param)
    monkeypatch.setattr(staging, "THREADS", 32)
    monkeypatch.setattr(search, "THREADS", 32)
    monkeypatch.setattr(staging, "SHARED", 16 * staging.ENTRY)


def drawn_settings(joins: list[JoinProfile], rows: int, kind: Any) -> tuple[Any, Any]:
    draw = np.random.default_rng(7)
    widest = max(join.hop_windows.size for join in joins)
    which = np.sort(draw.integers(0, len(joins), rows)).astype(np.int32)
    settings = np.full((rows, widest), np.iinfo(kind).max, kind)
    for row, join in enumerate(which):
        most = joins[join].hop_windows.ravel()
        settings[row, : most.size] = draw.integers(0, most + 1)
    return settings, which


def same_best(joins: list[JoinProfile], searches: list[Search], least: int, **how: int) -> Any:
    layout = flatten([join.terms for join in joins])
    space = space_of(layout, least)
    ranges = ranges_of(layout, space, searches)
    cpu = CpuHarvest(layout).best(space, ranges)
    gpu = DeviceHarvest(DEVICE, layout).best(space, ranges, **how)
    assert gpu.setting.tolist() == cpu.setting.tolist()
    assert bits(gpu.cost) == bits(cpu.cost)
    assert bits(gpu.output) == bits(cpu.output)
    return cpu


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
@pytest.mark.parametrize("kind", [np.uint8, np.uint16])
def test_settings_of_many_joins_are_evaluated_alike(kind: Any) -> None:
    settings, which = drawn_settings(RAGGED, 150, kind)
    cpu = evaluate(RAGGED, settings, which)
    gpu = evaluate(RAGGED, settings, which, device=DEVICE)
    assert bits(gpu.cost) == bits(cpu.cost)
    assert bits(gpu.output) == bits(cpu.output)


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
@pytest.mark.parametrize("entries", [40, 2], ids=["shared memory", "device memory"])
@pytest.mark.parametrize("join", [0, 1])
def test_settings_of_one_join_are_evaluated_from_either_memory(
    join: int, entries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "SHARED", entries * staging.ENTRY)
    assert flatten([RAGGED[join].terms]).used.size <= 40
    settings, which = drawn_settings(RAGGED[join : join + 1], 300, np.uint8)
    cpu = evaluate(RAGGED[join : join + 1], settings, which)
    gpu = evaluate(RAGGED[join : join + 1], settings, which, device=DEVICE)
    assert bits(gpu.cost) == bits(cpu.cost)
    assert bits(gpu.output) == bits(cpu.output)


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
def test_settings_in_a_shuffled_order_of_joins_are_evaluated_alike() -> None:
    settings, which = drawn_settings(RAGGED, 150, np.uint8)
    order = np.random.default_rng(1).permutation(which.size)
    cpu = evaluate(RAGGED, settings[order], which[order])
    gpu = evaluate(RAGGED, settings[order], which[order], device=DEVICE)
    assert bits(gpu.cost) == bits(cpu.cost)


@pytest.mark.usefixtures("_order_of_threads")
def test_one_row_of_another_join_is_seen_wherever_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_device, "_BLOCKS", 1)
    monkeypatch.setattr(staging, "THREADS", 32)
    monkeypatch.setattr(search, "THREADS", 32)
    joins = [RAGGED[0], RAGGED[3]]
    settings, which = drawn_settings(joins, 96, np.uint8)
    for place in (1, 40, 95):
        which[:] = 0
        settings[:, :] = 1
        which[place] = 1
        cpu = evaluate(joins, settings, which)
        gpu = evaluate(joins, settings, which, device=DEVICE)
        assert bits(gpu.cost) == bits(cpu.cost)


def test_settings_go_in_parts_where_memory_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, which = drawn_settings(RAGGED, 40, np.uint8)
    cpu = evaluate(RAGGED, settings, which)
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 1000)
    gpu = evaluate(RAGGED, settings, which, device=DEVICE)
    assert bits(gpu.output) == bits(cpu.output)


def test_a_count_beyond_its_window_is_refused() -> None:
    settings, which = drawn_settings(RAGGED, 40, np.uint8)
    settings[33, 1] = 200
    with pytest.raises(SpecError, match="setting 33 reads"):
        evaluate(RAGGED, settings, which, device=DEVICE)


def test_no_settings_and_no_searches_give_nothing() -> None:
    assert evaluate(SMALL[:1], np.empty((0, 2), np.uint8), device=DEVICE).cost.size == 0
    assert best_settings(SMALL, [], device=DEVICE) == []
    assert best_settings(SMALL, [Search(0, 9e9, begin=3, end=3)], device=DEVICE) == [None]


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
@pytest.mark.parametrize("least", [0, 1])
def test_ranges_of_joins_and_directions_are_counted_through_alike(least: int) -> None:
    searches = [
        Search(0, 0.0),
        Search(1, 0.0, begin=1),
        Search(2, 0.0, begin=0, end=1),
        Search(2, 0.0, direction=2),
        Search(0, 0.0, direction=1, begin=1, end=2),
    ]
    cpu = enumerate_settings(SMALL, searches, least=least)
    gpu = enumerate_settings(SMALL, searches, least=least, device=DEVICE)
    for ours, theirs in zip(gpu, cpu, strict=True):
        assert bits(ours.cost) == bits(theirs.cost)
        assert bits(ours.output) == bits(theirs.output)


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
@pytest.mark.parametrize("least", [0, 1])
@pytest.mark.parametrize("joins", [SMALL, TIES], ids=["drawn", "with ties"])
def test_the_best_settings_of_many_joins_are_the_same(joins: Any, least: int) -> None:
    searches = [
        Search(number, join.limit(throttle))
        for throttle in (1e-4, 0.3, 1.0)
        for number, join in enumerate(joins)
    ]
    cpu = same_best(joins, searches, least, run=3)
    assert (cpu.setting >= 0).any()
    assert ((cpu.setting < 0).any()) == (least == 1)


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
def test_ranges_and_directions_are_searched_alike() -> None:
    limits = [join.limit(0.6) for join in SMALL]
    searches = [
        Search(1, limits[1], begin=5, end=50),
        Search(1, limits[1], begin=9, end=9),
        Search(0, limits[0], begin=3),
        Search(2, limits[2], direction=0),
        Search(0, float("inf"), direction=1, begin=1, end=4),
    ]
    for run in (1, 2, 127):
        same_best(SMALL, searches, 0, run=run)


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
def test_no_setting_is_passed_over() -> None:
    # a count more of direction 0 is worth more than all of direction 1: O grows with the index
    growing = JoinProfile((1, 1), (1, 100), (40, 40), ((1,), (0,)), ((1, 1), (1, 1)))
    ends = [*range(1, 200, 4), 1056, 1057, 1600]
    searches = [Search(0, float("inf"), end=end) for end in ends]
    cpu = same_best([growing], searches, 1, run=5)
    assert cpu.setting.tolist() == [end - 1 for end in ends]


@pytest.mark.usefixtures("_order_of_threads")
def test_of_equal_settings_the_first_is_chosen_across_threads_and_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(on_device, "_BLOCKS", 4)
    monkeypatch.setattr(staging, "THREADS", 32)
    monkeypatch.setattr(search, "THREADS", 32)
    no_output = JoinProfile((0, 1), (1, 1), (30, 30), ((1,), (0,)), ((1, 0), (0, 1)))
    # stream 0 is silent and nothing matches: every setting costs and gives 0
    cpu = same_best([no_output], [Search(0, 1.0), Search(0, 1.0, begin=77)], 1, run=5)
    assert cpu.setting.tolist() == [0, 77]


def test_settings_at_the_real_size_of_a_block_are_searched_alike() -> None:
    join = profile(drawn_join(9, 3, 3) | {"basic": [3] * 3, "scores": None})
    cpu = same_best([join], [Search(0, join.limit(0.5))], 1)
    assert cpu.setting[0] > 0


def test_tables_that_do_not_fit_are_refused_before_anything_is_allocated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 100)
    with pytest.raises(DeviceError, match=r"need 320 bytes .* give fewer joins"):
        best_settings(TIES[:1] + SMALL[:1], [Search(0, 1.0)], device=DEVICE)
