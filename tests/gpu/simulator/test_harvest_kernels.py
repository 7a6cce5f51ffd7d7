"""Harvest kernels in the simulator against the CPU twin: equal bit for bit."""

from __future__ import annotations

from typing import Any

import lockstep
import numpy as np
import pytest
from harvest_cases import drawn_join, exact_join, profile

from engine.multiway.fractions.exhaustive import CpuHarvest, best_settings, settings_of
from engine.multiway.fractions.profile import JoinProfile
from gpu_kernels.devices import SimulatedDevice, TooLargeError
from gpu_kernels.harvest import on_device, search, staging
from gpu_kernels.harvest.layout import flatten
from gpu_kernels.harvest.on_device import DeviceHarvest
from gpu_kernels.harvest.space import Search, ranges_of, space_of

DEVICE = SimulatedDevice()
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


def same_best(joins: list[JoinProfile], searches: list[Search], **how: int) -> Any:
    layout = flatten([join.terms for join in joins])
    space = space_of(layout)
    ranges = ranges_of(layout, space, searches)
    cpu = CpuHarvest(layout).best(space, ranges)
    gpu = DeviceHarvest(DEVICE, layout).best(space, ranges, **how)
    assert gpu.setting.tolist() == cpu.setting.tolist()
    assert bits(gpu.cost) == bits(cpu.cost)
    assert bits(gpu.output) == bits(cpu.output)
    return cpu


def test_no_searches_give_nothing() -> None:
    assert best_settings(SMALL, [], device=DEVICE) == []
    assert best_settings(SMALL, [Search(0, 9e9, begin=3, end=3)], device=DEVICE) == [None]


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
def test_ranges_of_directions_are_counted_through_alike() -> None:
    searches = [
        Search(0, 0.0, direction=0),
        Search(1, 0.0, direction=2, begin=1),
        Search(2, 0.0, direction=0, begin=0, end=1),
        Search(2, 0.0, direction=2),
        Search(0, 0.0, direction=1, begin=1, end=2),
    ]
    layout = flatten([join.terms for join in SMALL])
    space = space_of(layout)
    ranges = ranges_of(layout, space, searches)
    gpu = DeviceHarvest(DEVICE, layout).tabulate(space, ranges)
    for ours, theirs in zip(gpu, CpuHarvest(layout).tabulate(space, ranges), strict=True):
        assert bits(ours) == bits(theirs)


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
@pytest.mark.parametrize("joins", [SMALL, TIES], ids=["drawn", "with ties"])
def test_the_best_settings_of_many_joins_are_the_same(joins: Any) -> None:
    searches = [
        Search(number, join.limit(throttle))
        for throttle in (1e-4, 0.3, 1.0)
        for number, join in enumerate(joins)
    ]
    searches.append(Search(0, joins[0].limit(0.9), begin=settings_of(joins[0]) - 1))
    cpu = same_best(joins, searches, run=3)
    assert (cpu.setting >= 0).any()
    assert (cpu.setting < 0).any()


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
        same_best(SMALL, searches, run=run)


@pytest.mark.usefixtures("_order_of_threads", "_small_blocks")
def test_no_setting_is_passed_over() -> None:
    # a count more of direction 0 is worth more than all of direction 1: O grows with the index
    growing = JoinProfile((1, 1), (1, 100), (40, 40), ((1,), (0,)), ((1, 1), (1, 1)))
    ends = [*range(1, 200, 4), 1056, 1057, 1600]
    searches = [Search(0, float("inf"), end=end) for end in ends]
    cpu = same_best([growing], searches, run=5)
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
    cpu = same_best([no_output], [Search(0, 1.0), Search(0, 1.0, begin=77)], run=5)
    assert cpu.setting.tolist() == [0, 77]


def test_settings_at_the_real_size_of_a_block_are_searched_alike() -> None:
    join = profile(drawn_join(9, 3, 3) | {"basic": [3] * 3, "scores": None})
    cpu = same_best([join], [Search(0, join.limit(0.5))])
    assert cpu.setting[0] > 0


def test_tables_that_do_not_fit_are_refused_before_anything_is_allocated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SimulatedDevice, "free_bytes", lambda _: 100)
    with pytest.raises(TooLargeError, match=r"need 384 bytes .* give longer basic windows"):
        best_settings(TIES[:1] + SMALL[:1], [Search(0, 1.0)], device=DEVICE)
