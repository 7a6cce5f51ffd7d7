"""The multi-way probe on a device: parity with the CPU for every predicate, then times of batches.

The join is 3-way, and each stream has one window of tuples before every probing one; a tuple probes
both other windows in full. benchmarks/gpu_suite.py calls `measure_multiway`.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from gpu_timing import UnequalError, median_time

from engine.device.walks import DeviceJoins, GpuProber, Probe
from engine.multiway.harvest.layout import (
    WHOLE,
    Admitted,
    HarvestRules,
    ProbeBatch,
    ReadPlan,
    admitted_none,
    whole_plan,
)
from engine.multiway.harvest.probing.cpu_prober import CpuProber
from engine.multiway.harvest.probing.prober import OutputBatch, Prober
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Attributes, MultiStreams, Windows, windows_of
from engine.runtime.jit import Floats
from gpu_kernels.combine import COMBINES
from gpu_kernels.devices import Device

ORDERS = ((1, 2), (2, 0), (1, 0))
GAP = 10
"""Ticks between two tuples of a stream, on average."""
PARTNERS = 8
"""Tuples of a window that agree with a tuple, on average."""
SHREDDED = 0.3
"""Of a batch, the part that is shredded where results are compared."""
KINDS = ("equi", "band", "distance", "inner", "theta")


def near(a: Any, b: Any) -> bool:  # noqa: ANN401 - vectors
    """Tell whether two values differ by 1 at most, as the band predicate does."""
    return bool(a[0] - b[0] <= 1.0 and b[0] - a[0] <= 1.0)


class Work(NamedTuple):
    """Streams that are all admitted, and how they are joined."""

    streams: MultiStreams
    windows: Windows
    predicate: Predicate
    rules: HarvestRules
    plan: ReadPlan
    admitted: Admitted


def _attributes(rng: np.random.Generator, kind: str, n: int, held: int) -> Attributes:
    """Return attributes of which a window of `held` tuples has about `PARTNERS` for each."""
    parts = max(1, held // PARTNERS)
    none, ends = np.zeros(0, np.int64), np.zeros(n + 1, np.int64)
    code, value = none, np.zeros((0, 1))
    if kind == "equi":
        code = rng.integers(0, parts, n)
    elif kind == "distance":
        # a disc of radius 1
        value = rng.uniform(0, (np.pi * parts) ** 0.5, (n, 2))
    elif kind == "inner":
        # 4 items of a topic's 8, all of one weight: 2 in common reach the bound half the time
        topic = rng.integers(0, max(1, parts // 2), n)
        order = np.argsort(rng.random((n, 8)), axis=1)[:, :4]
        items = (np.sort(order, axis=1) + 8 * topic[:, None]).ravel()
        return Attributes(code, value, 4 * np.arange(n + 1), items, np.ones(items.size))
    else:
        value = rng.uniform(0, 2 * parts, (n, 1))
    return Attributes(code, value, ends, none, np.zeros(0))


_PREDICATES = {
    "equi": Predicate("equi", ("k",)),
    "band": Predicate("band", ("v",), 1.0),
    "distance": Predicate("distance", ("x", "y"), 1.0),
    "inner": Predicate("inner", ("words",), 2.0),
    "theta": Predicate("theta", ("v",), 0.0, near, "near"),
}


def drawn(kind: str, batch: int, held: int, seed: int = 6) -> Work:
    """Return three streams of `batch` tuples in all behind windows of `held` each."""
    rng = np.random.default_rng(seed)
    each = held + -(-batch // 3)
    n = 3 * each
    ts = np.concatenate([np.sort(rng.integers(0, GAP * each, each)) for _ in range(3)])
    streams = MultiStreams(
        each * np.arange(4), ts, np.arange(n), rng.random(n), _attributes(rng, kind, n, held)
    )
    windows = windows_of([GAP * held] * 3)
    rules = HarvestRules(clique=kind != "equi", combine=COMBINES.index("min"), window=windows.size)
    admitted = admitted_none(streams)
    admitted.number[:] = each
    admitted.place[:], admitted.ts[:] = np.arange(n), ts
    return Work(streams, windows, _PREDICATES[kind], rules, whole_plan(ORDERS, windows), admitted)


def batch_of(work: Work, size: int, shredded: float) -> ProbeBatch:
    """Return the latest tuples of the streams, some of them shredded to a half."""
    place = np.sort(np.argsort(work.streams.ts, kind="stable")[-size:])
    place = place[np.argsort(work.streams.ts[place], kind="stable")]
    stream = np.searchsorted(work.streams.first, place, "right") - 1
    draws: Floats = np.random.default_rng(1).random(size)
    return ProbeBatch(place, stream, np.where(draws < shredded, 0.5, WHOLE))


def _probers(work: Work, device: Device) -> tuple[CpuProber, GpuProber]:
    join = _join_of(work)
    return CpuProber(*join, os.cpu_count() or 1), GpuProber.alone(*join, device)


def _join_of(work: Work) -> tuple[MultiStreams, HarvestRules, Predicate, ReadPlan]:
    return work.streams, work.rules, work.predicate, work.plan


def _all_outputs(prober: Prober, work: Work, batch: ProbeBatch, wanted: Any) -> OutputBatch:  # noqa: ANN401
    parts = [
        OutputBatch(np.zeros((0, 3), np.int64), np.zeros(0)),
        *prober.outputs(work.admitted, work.plan, batch, wanted),
    ]
    return OutputBatch._make(map(np.concatenate, zip(*parts, strict=True)))


def held_equal(found: tuple[Any, ...], wanted: tuple[Any, ...], what: str) -> None:
    """Raise `UnequalError` unless arrays are equal bit for bit."""
    for ours, theirs in zip(found, wanted, strict=True):
        if not np.array_equal(ours.view(np.int64), theirs.view(np.int64)):
            raise UnequalError(f"{what}: {ours.size} numbers are not all the CPU's")


def compare(device: Device, kind: str, batch: int, held: int) -> dict[str, int]:
    """Hold counts and outputs of a batch equal to the CPU's, a part of it shredded."""
    work = drawn(kind, batch, held)
    own = batch_of(work, batch, SHREDDED)
    cpu, gpu = _probers(work, device)
    wanted = cpu.count(work.admitted, work.plan, own)
    held_equal(gpu.count(work.admitted, work.plan, own), wanted, f"counts of {kind}")
    some = np.flatnonzero(wanted.outputs)
    rows = [_all_outputs(prober, work, own, some) for prober in (gpu, cpu)]
    held_equal(rows[0], rows[1], f"outputs of {kind}")
    return {"comparisons": int(wanted.comparisons.sum()), "outputs": int(wanted.outputs.sum())}


def time_batch(device: Device, kind: str, size: int, held: int, repeats: int) -> dict[str, Any]:
    """Time the counts and the outputs of a batch, from host arrays to host arrays."""
    work = drawn(kind, size, held)
    own = batch_of(work, size, 0.0)
    cpu, gpu = _probers(work, device)

    def counted(prober: Prober) -> Any:  # noqa: ANN401 - Probed
        return prober.count(work.admitted, work.plan, own)

    wanted = counted(cpu)
    held_equal(counted(gpu), wanted, f"counts of {kind}")
    some = np.flatnonzero(wanted.outputs)
    on_device = median_time(lambda: counted(gpu), repeats)
    on_cpu = median_time(lambda: counted(cpu), 1)
    written = median_time(lambda: _all_outputs(gpu, work, own, some), repeats)
    comparisons = int(wanted.comparisons.sum())
    return {
        "comparisons": comparisons,
        "outputs": int(wanted.outputs.sum()),
        "count_s": on_device,
        "count_cpu_s": on_cpu,
        "times_cpu": on_cpu / on_device,
        "comparisons_a_second": comparisons / on_device,
        "tuples_a_second": size / on_device,
        "write_s": written,
    }


def time_lanes(device: Device, lanes: int, size: int, held: int, repeats: int) -> dict[str, Any]:
    """Time a batch of each of several band joins, in one launch and in one for each."""
    works = [drawn("band", size, held, seed) for seed in range(lanes)]
    batches = [batch_of(work, size, 0.0) for work in works]
    first = works[0]
    both = DeviceJoins(device, [work.streams for work in works], first.rules, first.predicate)
    alone = [GpuProber.alone(*_join_of(work), device) for work in works]
    probes = [
        Probe(i, work.plan, work.admitted, work.plan, batch)
        for i, (work, batch) in enumerate(zip(works, batches, strict=True))
    ]

    def apart() -> list[Any]:
        return [
            own.count(work.admitted, work.plan, batch)
            for own, work, batch in zip(alone, works, batches, strict=True)
        ]

    for ours, theirs in zip(both.count(probes), apart(), strict=True):
        held_equal(ours[:4], theirs[:4], "lanes in one launch")
    together_s = median_time(lambda: both.count(probes), repeats)
    apart_s = median_time(apart, repeats)
    return {"together_s": together_s, "apart_s": apart_s, "times": apart_s / together_s}


def measure_multiway(
    device: Device, *, sizes: tuple[int, ...] = (64, 1024, 16_384, 65_536),
    windows: tuple[int, ...] = (200, 2000), compared: int = 3000, repeats: int = 5,
    lanes: int = 64,
) -> dict[str, Any]:  # fmt: skip
    """Measure, after holding every result equal to the CPU's.

    Parameters
    ----------
    sizes : tuple of int
        Tuples of a batch.
    windows : tuple of int
        Tuples that a window holds: what rates come to.
    compared : int
        Tuples of the batch that every predicate is compared on.
    repeats : int
        Timed calls, after one that compiles; the median counts.
    lanes : int
        Joins whose smallest batches are probed in one launch, and one by one.

    Returns
    -------
    dict
        ``parity`` by predicate; ``band`` by window and batch; ``predicates`` for the second
        largest batch in the smallest window; ``lanes``. The CPU's times are those of all its cores.

    Raises
    ------
    UnequalError
        If a number of the device is not the CPU's.
    """
    parity = {kind: compare(device, kind, compared, windows[0]) for kind in KINDS}
    band = {
        f"window of {held}": {
            f"batch of {size}": time_batch(device, "band", size, held, repeats) for size in sizes
        }
        for held in windows
    }
    usual = sorted(sizes)[-2:][0]
    others = {kind: time_batch(device, kind, usual, windows[0], repeats) for kind in KINDS}
    side_by_side = time_lanes(device, lanes, min(sizes), windows[0], repeats)
    return {"parity": parity, "band": band, "predicates": others, "lanes": side_by_side}
