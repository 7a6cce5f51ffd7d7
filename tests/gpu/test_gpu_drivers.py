"""What the drivers hand to the kernels, on a made-up GPU: types, counts, sizes of a launch.

The simulator takes any arguments; a real GPU compiles for the ones it is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from gpu_cases import CompilingDevice, make_up_device
from replay_cases import batch_of, busy, busy_facts, case_arguments, keys_of, pooled
from thorough import guards, repeats

from engine.device.columns import paired
from engine.device.replay import Setting, load_lanes, replay_on_device
from engine.multiway.fractions.profile import JoinProfile
from gpu_kernels.harvest.layout import flatten
from gpu_kernels.harvest.on_device import DeviceHarvest
from gpu_kernels.harvest.space import Search, ranges_of, space_of
from gpu_kernels.optimum.on_device import Choices, DeviceDual
from gpu_kernels.optimum.steps import DevicePrices
from gpu_kernels.pool import CLASSES, COUNTERS, NUMBERS, SUMS
from gpu_kernels.probe import Stream, count_pairs, emit_pairs, match_arrivals
from gpu_kernels.replay.layout import PEAK
from gpu_kernels.replay.plan import choose_variant


@pytest.fixture(name="device")
def made_up_device(monkeypatch: pytest.MonkeyPatch) -> CompilingDevice:
    make_up_device(monkeypatch)
    return CompilingDevice()


of_replays = guards("gpu_kernels", "engine/device", "tests/gpu/test_gpu_drivers.py")
"""Replay kernels take longest to compile."""
SIZES = [("dgl", 1_800), ("rand", 500), ("dgl", 100_000)]
OTHERS = [("dgl", 500), ("rand", 1_800), ("rand", 9_000), ("dgl", 9_000), ("rand", 100_000)]


@of_replays
@pytest.mark.parametrize(("policy", "slots"), [*SIZES, *repeats(OTHERS)])
def test_replays(device: CompilingDevice, policy: str, slots: int) -> None:
    case = busy(policy, 1)
    left, right = batch_of(case.left), batch_of(case.right)
    names = np.unique(np.r_[left.key, right.key])
    ids = [np.searchsorted(names, side.key).astype(np.int32) for side in (left, right)]
    lanes = load_lanes(device, [paired(left, ids[0], right, ids[1], names.size)] * 3)
    settings = [Setting(*case_arguments(case))._replace(lane=i) for i in range(3)]
    replay_on_device(device, lanes, settings, record=True, choose=lambda _: choose_variant(slots))
    assert device.compiled == ["replay"]


@of_replays
def test_replays_of_a_tabulated_policy_and_ages(device: CompilingDevice) -> None:
    for policy in ("multiplicative", "age"):
        case = busy(policy, 2)
        left, right = batch_of(case.left), batch_of(case.right)
        columns = paired(left, left.key.astype(np.int32), right, right.key.astype(np.int32), 9)
        replay_on_device(device, load_lanes(device, [columns]), [Setting(*case_arguments(case))])
    assert len(device.compiled) == 2


@of_replays
@pytest.mark.parametrize("policy", ["multiplicative", *repeats(["dgl"])])
def test_replays_through_facts(device: CompilingDevice, policy: str) -> None:
    case = busy_facts(policy, 1)
    left, right = batch_of(case.left), batch_of(case.right)
    keys = keys_of(case, left, right)
    columns = paired(left, keys.ids(0, left), right, keys.ids(1, right), keys.size, keys.key_links)
    lanes = load_lanes(device, [columns] * 2)
    settings = [Setting(*case_arguments(case))._replace(lane=i) for i in range(2)]
    replay_on_device(device, lanes, settings, record=True)
    assert device.compiled == ["replay"]


@of_replays
@pytest.mark.parametrize(
    ("policy", "slots"),
    [("yield", 1_800), ("dimpprob", 500), ("dgl", 100_000)],
)
def test_replays_of_one_memory(device: CompilingDevice, policy: str, slots: int) -> None:
    case = pooled(busy(policy, 1))
    left, right = batch_of(case.left), batch_of(case.right)
    keys = keys_of(case, left, right)
    columns = paired(left, keys.ids(0, left), right, keys.ids(1, right), keys.size)
    lanes = load_lanes(device, [columns] * 3)
    settings = [Setting(*case_arguments(case))._replace(lane=i) for i in range(3)]
    memory = sum(case.budgets[side] or 0 for side in (0, 1))
    pools: list[Any] = []

    def fill(*arguments: Any) -> None:
        pools.append(arguments[_POOLS : _POOLS + 2])
        arguments[-2][:, PEAK] = 7

    device.instead = {"replay": fill}
    found = replay_on_device(
        device, lanes, settings, record=True, choose=lambda _: choose_variant(slots)
    )
    assert device.compiled == ["replay"]
    ((floats, integers),) = pools
    assert (floats.shape, integers.shape) == ((3, SUMS[0] + 1, CLASSES), (3, *COUNTERS))
    assert integers[:, NUMBERS, -4].tolist() == [memory] * 3
    assert [one.peak for one in found] == [7] * 3


_POOLS = 22
"""Where the kernel gets them."""


def stream(rows: int) -> Stream:
    draw = np.random.default_rng(rows)
    ts = np.sort(draw.integers(0, 50, rows))
    return Stream(ts, draw.integers(0, 4, rows), draw.integers(0, 2, rows), draw.random(rows))


def measure(lane: Any, key: Any, ts: Any, both: Any) -> None:
    both[:] = [edge(column) for column in (lane, key, ts) for edge in (np.min, np.max)]


def list_one_partner(*arguments: Any) -> None:
    arguments[-1][:] = 1


def test_probes(device: CompilingDevice) -> None:
    device.instead = {"_measure": measure, "_list": list_one_partner}
    left, right = stream(60), stream(70)
    windows = np.array([5, 6]), np.array([7, 8])
    count_pairs(device, left, right, *windows)
    found = match_arrivals(device, left, right, *windows)
    assert [own.matches.tolist() for own in found] == [[1] * 60, [1] * 70]
    assert len(list(emit_pairs(device, left, right, *windows, chunk=7))) > 1
    kernels = {"_measure", "_encode", "_count", "_list", "_emit", "_gain"}
    assert kernels <= set(device.compiled), set(device.compiled)


def test_harvest_settings(device: CompilingDevice) -> None:
    join = JoinProfile(
        (3, 1, 2), (10, 10, 10), (4, 4, 4), ((1, 2), (2, 0), (1, 0)), np.full((3, 3), 0.1).tolist()
    )
    layout = flatten([join.terms])
    harvest = DeviceHarvest(device, layout)
    space = space_of(layout)
    ranges = ranges_of(layout, space, [Search(0, 50.0)])
    harvest.best(space, ranges)
    assert device.compiled


def test_duals(device: CompilingDevice) -> None:
    ends, worth = np.arange(1, 5, dtype=np.int32), np.ones(4)
    choices = Choices(5, np.arange(4, dtype=np.int32), np.arange(5), ends, worth)
    dual = DeviceDual(device, choices)
    profit, load, chosen = dual.evaluate(np.arange(6.0))
    assert (profit, load.size, chosen.size) == (0.0, 5, 4)
    assert [found.size for found in dual.slope(np.arange(6.0), 0.5)[1:]] == [5, 5]
    prices = DevicePrices(dual, 2, np.ones(5), np.ones(5), 4.0)
    assert prices.slope(0.5) == prices.move(0.5) == prices.last == 0.0
    assert prices.sums().tolist() == [0.0] * 6
    assert device.compiled == ["_choose", "_share", "_carry", "_count", "_share", "_move"]
