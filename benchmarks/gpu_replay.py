"""Replays of many lanes on a device: parity with the CPU at real size, then tuples a second.

The lanes are of P1 figure 9's size: N = 5600 a stream, w = 400, K = 100 + 100, keys Zipf 1 x 1.
benchmarks/gpu_suite.py calls `parity` and `measure_replay`.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from gpu_timing import UnequalError

from engine.device.batches import plans_on_device
from engine.device.columns import LaneColumns, paired
from engine.device.replay import DeviceLanes, Outcome, Setting, load_lanes, replay_on_device
from engine.device.sampled import lane_sizes
from engine.generate import ImportanceModel, ZipfSpec, in_memory, zipf_sources
from engine.lanes.profile import LaneProfile, profile_side
from engine.policies import POLICIES, SAMPLING, Structure
from engine.replay.allocate import Ready
from engine.replay.lane import LaneReplay
from engine.replay.ranks import RetentionPlan
from engine.replay.settings import ReplaySettings
from engine.runtime.executors import ThreadExecutor
from engine.runtime.randomness import uniforms
from engine.runtime.streams import StreamBatch
from engine.sampling.sizes import Sampling, Sizing, priorities
from gpu_kernels.devices import Device
from gpu_kernels.replay.plan import Variant

ROWS, LIFETIME, DOMAIN, BUDGET = 5600, 400, 500, (100, 100)
LANES = 4096
ESTIMATORS = ("memory", "window", "history")
PROBES = ("before_admission", "after_admission")
VARIANTS = (
    Variant("block", 1, 128, in_shared=True),
    Variant("block", 1, 256, in_shared=False),
    Variant("block", 1, 512, in_shared=False),
)
"""Of the kernel, for larger join memories than these lanes have."""
COMPARED_ROWS = 20
"""Lanes whose output rows are compared, not only counted."""


def custom(
    imp: float,
    m: float,
    age: float,
    lifetime: float,
    previous: float,
    produced: float,
) -> float:
    """Rank by what is still to be had, and by what was (a user's function)."""
    return imp * m * (lifetime - age) / lifetime + 0.5 * previous + produced


class Workload(NamedTuple):
    """Lanes of two streams each."""

    streams: list[tuple[StreamBatch, StreamBatch]]
    columns: list[LaneColumns]
    profile: LaneProfile


def workload(lanes: int, rows: int = ROWS, seed: int = 9) -> Workload:
    """Return lanes of random keys, one tuple a tick and side, each lane its own."""
    spec = ZipfSpec(
        rows=rows * lanes,
        domain=DOMAIN,
        skew_left=1.0,
        skew_right=1.0,
        correlation="none",
        importance=ImportanceModel("rare-high"),
        seed=seed,
    )
    keys, importances = [], []
    for table in in_memory(zipf_sources(spec)):
        keys.append(table.column("key").to_numpy().reshape(lanes, rows))
        importances.append(table.column("importance").to_numpy().reshape(lanes, rows))
    ts = np.arange(rows)
    streams, columns = [], []
    for lane in range(lanes):
        left, right = (
            StreamBatch(ts, ts + lane * rows, keys[side][lane], importances[side][lane])
            for side in (0, 1)
        )
        _, ids = np.unique(np.concatenate([left.key, right.key]), return_inverse=True)
        dense = ids.astype(np.int32)
        streams.append((left, right))
        columns.append(paired(left, dense[:rows], right, dense[rows:], int(dense.max()) + 1))
    profile = LaneProfile(*(profile_side([side], LIFETIME - 1) for side in streams[0]))
    return Workload(streams, columns, profile)


def settings_of(policy: str, estimator: str = "memory", probe: str = PROBES[0]) -> ReplaySettings:
    """Return a policy's settings on the lanes."""
    given: dict[str, dict[str, Any]] = {"custom": {"function": custom}}
    return ReplaySettings(
        LIFETIME - 1,
        LIFETIME - 1,
        policy=policy,
        parameters=given.get(policy, {}),
        estimator=estimator,
        probe=probe,
    )


def replays(work: Workload, settings: ReplaySettings, budget: tuple[int, int]) -> list[Setting]:
    """Return one replay a lane."""
    curve = np.arange(1.0, 21.0) if settings.structure is Structure.AGED else None
    return [
        Setting(settings, work.profile, budget, (curve, curve), lane)
        for lane in range(len(work.columns))
    ]


def on_cpu(work: Workload, replay: Setting, *, plan: RetentionPlan | None = None) -> LaneReplay:
    """Replay one lane on this thread, counting only."""
    left, right = work.streams[replay.lane]
    columns = work.columns[replay.lane]
    lane = LaneReplay(
        replay.settings, replay.profile, replay.budget, curves=replay.curves, emit=False, plan=plan,
        key_links=columns.key_links,
    )  # fmt: skip
    ready = Ready(drawn(work, replay)) if replay.settings.samples else None
    for _ in lane.push(left, columns.left.key, right, columns.right.key, columns.keys, ready):
        raise AssertionError
    return lane


def drawn(work: Workload, replay: Setting) -> tuple[Any, Any]:
    """Return the priorities by which a lane is sampled."""
    settings, sampling = replay.settings, replay.sampling
    sizes = lane_sizes(work.columns[replay.lane], sampling.sizing)
    left, right = (
        priorities(
            settings.the_policy, sizes[side], sampling.scales[side],
            uniforms(settings.seed, settings.purpose, side, stream.row),
        )
        for side, stream in enumerate(work.streams[replay.lane])
    )  # fmt: skip
    return left, right


def hold_equal(ref: LaneReplay, comp: Outcome, what: str) -> None:
    """Raise `UnequalError` unless a device's outcome is the CPU's."""
    found = comp.outputs, comp.peaks
    wanted = ref.outputs, ref.peaks
    close = abs(comp.importance - ref.importance) <= 1e-12 * max(1.0, abs(ref.importance))
    if found != wanted or not close:
        raise UnequalError(f"{what}: {found}, {comp.importance} on the device, {wanted} here")


def parity(device: Device, lanes: int = 64, rows: int = ROWS) -> dict[str, Any]:
    """Compare every policy, estimator, probe and kind of team with the CPU.

    Outputs, peaks and importance of every lane; of `COMPARED_ROWS` lanes a policy also who left
    when, by following it.
    """
    work = workload(lanes, rows)
    budgets = (BUDGET, (200, 190), (300, 320), (250, 0))
    every = [
        (settings_of(policy, estimator, probe), budgets[(i + j) % len(budgets)])
        for i, policy in enumerate(POLICIES)
        for j, (estimator, probe) in enumerate((e, p) for e in ESTIMATORS for p in PROBES)
    ]
    loaded = load_lanes(device, work.columns)
    compared = 0
    for number, (settings, budget) in enumerate(every):
        what = f"{settings.policy} {settings.estimator} {settings.probe} {budget}"
        chosen = replays(work, settings, budget)[number % 4 :: 4]
        for replay, outcome in zip(chosen, replay_on_device(device, loaded, chosen), strict=True):
            hold_equal(on_cpu(work, replay), outcome, what)
            compared += 1
    for variant in VARIANTS:
        for settings, _ in every[::3]:
            some = replays(work, settings, BUDGET)[:8]
            found = replay_on_device(device, loaded, some, choose=lambda _, v=variant: v)
            for replay, outcome in zip(some, found, strict=True):
                hold_equal(on_cpu(work, replay), outcome, f"{settings.policy} {variant}")
                compared += 1
    followed = 0
    for policy in POLICIES:
        some = replays(work, settings_of(policy), BUDGET)[:COMPARED_ROWS]
        plans = plans_on_device(device, [work.columns[one.lane] for one in some], some)
        for replay, plan in zip(some, plans, strict=True):
            ref, comp = on_cpu(work, replay), on_cpu(work, replay, plan=plan)
            same = np.array_equal(ref.by_key, comp.by_key)
            kept = all(map(np.array_equal, ref.retained(), comp.retained()))
            if not same or not kept or ref.peaks != comp.peaks:
                raise UnequalError(f"{policy}: lane {replay.lane} of the plan is not the CPU's")
            followed += 1
    return {
        "replays_compared": compared,
        "samples_compared": samples_compared(device, loaded, work),
        "plans_followed": followed,
        "lanes": lanes,
        "rows": rows,
    }


def samples_compared(device: Device, loaded: DeviceLanes, work: Workload) -> int:
    """Compare every sampling policy with the CPU: sizes, probes, seeds and kinds of team."""
    compared = 0
    for policy in SAMPLING:
        for number, probe in enumerate(PROBES):
            kind = "equal" if policy == "eq-cluster" else ("matches", "weighted")[number]
            settings = replace(settings_of(policy, probe=probe), seed=number - 1)
            if policy != "eq-cluster":
                settings = replace(settings, parameters={"size": kind})
            scales = (0.25, 0.1) if policy == "eq-cluster" else (0.02, 0.005)
            sampling = Sampling(Sizing(kind, (1e-9, 1e-9)), scales)
            every = [one._replace(sampling=sampling) for one in replays(work, settings, BUDGET)]
            variant = VARIANTS[number % len(VARIANTS)]
            for some, choose in ((every[number::2], None), (every[:8:2], lambda _, v=variant: v)):
                found = replay_on_device(device, loaded, some, choose=choose)
                for replay, outcome in zip(some, found, strict=True):
                    hold_equal(on_cpu(work, replay), outcome, f"{policy} {kind} {probe}")
                    compared += 1
    return compared


def _cpu_seconds(work: Workload, chosen: Sequence[Setting], threads: int) -> float:
    """Return the time in which all cores replay the lanes, compiled."""
    on_cpu(work, chosen[0])
    with ThreadPoolExecutor(threads) as pool:
        begun = time.perf_counter()
        for _ in pool.map(lambda replay: on_cpu(work, replay), chosen):
            pass
        return time.perf_counter() - begun


def measure_replay(
    device: Device, lanes: int = LANES, rows: int = ROWS, cpu_lanes: int = 1024
) -> dict[str, Any]:
    """Measure every policy on a device and on all CPU cores, results compared first.

    Parameters
    ----------
    lanes, rows : int
        Lanes, and tuples of each side of one.
    cpu_lanes : int
        Lanes that the CPU replays; its time is given for all, in proportion.

    Returns
    -------
    dict
        By policy: ``gpu_seconds`` (median of 3: numbers up, kernels, results down; the streams
        are on the device already), ``gpu_tuples_per_second``, ``cpu_seconds`` and ``times_cpu``.
    """
    work = workload(lanes, rows)
    threads = ThreadExecutor().threads
    loaded = load_lanes(device, work.columns)
    tuples = 2 * rows * lanes
    found: dict[str, Any] = {"lanes": lanes, "rows": rows, "budget": BUDGET, "cpu_cores": threads}
    for policy in POLICIES:
        chosen = replays(work, settings_of(policy), BUDGET)
        outcomes = replay_on_device(device, loaded, chosen)
        some = list(range(0, lanes, max(1, lanes // cpu_lanes)))
        for lane in some[:: max(1, len(some) // 64)]:
            hold_equal(on_cpu(work, chosen[lane]), outcomes[lane], policy)
        spent = []
        for _ in range(3):
            outcomes = replay_on_device(device, loaded, chosen)
            spent.append(sum(outcome.seconds for outcome in outcomes))
        gpu = statistics.median(spent)
        cpu = _cpu_seconds(work, [chosen[lane] for lane in some], threads) * lanes / len(some)
        found[policy] = {
            "gpu_seconds": gpu,
            "gpu_tuples_per_second": tuples / gpu,
            "cpu_seconds": cpu,
            "cpu_tuples_per_second": tuples / cpu,
            "times_cpu": cpu / gpu,
        }
    return found
