"""Streams sampled by policies, the brute force that says what is held, and the engine's replay."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import naive
import numpy as np
from hypothesis import strategies as st
from naive_sampling import (
    CLUSTER_PURPOSE,
    naive_eq_fraction,
    naive_inclusion,
    naive_pps_scale,
    naive_sizes,
    naive_span,
    naive_uniform,
)
from replay_cases import PROBES, Rows, Run, batch_of, cut, long_stream, rows

from engine.device.columns import LaneColumns, paired
from engine.device.replay import Setting
from engine.device.sampled import lane_sizes
from engine.lanes.profile import LaneProfile, profile_side
from engine.policies import SAMPLING
from engine.replay.allocate import Ready
from engine.replay.lane import LaneReplay
from engine.replay.settings import ReplaySettings
from engine.runtime.randomness import uniforms
from engine.sampling.inclusion import pps_scale, size_table, ticks_held
from engine.sampling.sizes import Sampling, Sizing, floor_of, priorities
from gpu_kernels.philox import PURPOSE_CLUSTER

NAMES = sorted(SAMPLING)
KINDS = ("matches", "weighted", "equal")
Tuple = tuple[int, Any, float, int]


class Sampled(NamedTuple):
    """One replay under a sampling policy."""

    left: Rows
    right: Rows
    windows: tuple[int, int]
    budgets: tuple[int, int]
    policy: str
    size: str = "matches"
    probe: str = "before_admission"
    combine: str = "min"
    start_ts: int | None = None
    seed: int = 0

    @property
    def kind(self) -> str:
        """What the size of a tuple is."""
        return "equal" if self.policy == "eq-cluster" else self.size

    @property
    def tuples(self) -> tuple[list[Tuple], list[Tuple]]:
        """Both streams as the oracle takes them, null keys left out."""
        left, right = (
            [(ts, key, imp, row) for row, (ts, key, imp) in enumerate(side) if key is not None]
            for side in (self.left, self.right)
        )
        return left, right


# --- Brute force --------------------------------------------------------------------------------


class Held(NamedTuple):
    """A tuple and the priority that it was given."""

    priority: float
    ts: int
    row: int
    key: Any
    imp: float


def measures(case: Sampled) -> tuple[list[float], list[float]]:
    """Return what the definitions ask of each tuple: its inclusion probability, or its size."""
    streams = case.tuples
    if not (streams[0] or streams[1]):
        return [], []
    span = naive_span(*streams)
    found = []
    for side, own in enumerate(streams):
        sizes = naive_sizes(case.kind, own, streams[1 - side])
        memory, window = case.budgets[side], case.windows[side]
        if case.policy == "eq-cluster":
            sizes = [naive_eq_fraction(own, window, span, memory)] * len(own)
        elif case.policy == "pps-cluster" and own:
            sizes = naive_inclusion(sizes, naive_pps_scale(own, sizes, window, span, memory))
        found.append(sizes)
    return found[0], found[1]


def ranked(case: Sampled, sizes: tuple[list[float], list[float]]) -> tuple[list[Held], ...]:
    """Return the tuples that may be held at all, by arrival."""
    sides = []
    for side, (own, own_sizes) in enumerate(zip(case.tuples, sizes, strict=True)):
        held = []
        for (ts, key, imp, row), measure in zip(own, own_sizes, strict=True):
            u = naive_uniform(case.seed, CLUSTER_PURPOSE, side, row, 0)
            if case.policy == "bottom-k" and measure > 0:
                held.append(Held(measure / (1 - u), ts, row, key, imp))
            elif case.policy != "bottom-k" and u < measure:
                held.append(Held(0.0, ts, row, key, imp))
        sides.append(sorted(held, key=lambda item: (item.ts, item.row)))
    return tuple(sides)


def brute(case: Sampled, given: tuple[list[float], list[float]] | None = None) -> Run:
    """Return what is held after every instant, the outputs and the peaks, by the definitions."""
    streams = case.tuples
    able = ranked(case, measures(case) if given is None else given)
    held: list[list[Held]] = [[], []]
    outputs: list[tuple[Any, ...]] = []
    retained, peaks = [], [0, 0]

    def output(now: int, a: tuple[int, float], b: tuple[int, float]) -> None:
        if case.start_ts is None or now >= case.start_ts:
            outputs.append((a[0], b[0], now, naive.combine(case.combine, a[1], b[1])))

    for now in sorted({ts for side in streams for ts, *_ in side}):
        arrived = [[one for one in side if one[0] == now] for side in streams]
        for _, key, imp, row in arrived[0]:
            for _, theirs, other, their_row in arrived[1]:
                if key == theirs:
                    output(now, (row, imp), (their_row, other))
        for side in (0, 1):
            held[side] = [one for one in held[side] if now - one.ts <= case.windows[side]]
        for late in (False, True):
            if late:
                for side in (0, 1):
                    held[side] += [one for one in able[side] if one.ts == now]
                    if case.policy == "bottom-k":
                        held[side].sort(reverse=True)  # by (priority, ts, row)
                        del held[side][case.budgets[side] :]
                    peaks[side] = max(peaks[side], len(held[side]))
            if late == (case.probe == "after_admission"):
                for one in held[1]:
                    for _, key, imp, row in arrived[0]:
                        if one.key == key and one.ts < now:
                            output(now, (row, imp), (one.row, one.imp))
                for one in held[0]:
                    for _, key, imp, row in arrived[1]:
                        if one.key == key and one.ts < now:
                            output(now, (one.row, one.imp), (row, imp))
        left, right = (sorted(one.row for one in side) for side in held)
        retained.append((now, left, right))
    outputs.sort(key=lambda o: (o[2], o[0], o[1]))
    importance = float(np.sum([o[3] for o in outputs], dtype=np.longdouble))
    return Run(outputs, retained, (peaks[0], peaks[1]), importance, len(outputs), sum(peaks))


# --- The engine ---------------------------------------------------------------------------------


def columns_of(case: Sampled) -> LaneColumns:
    """Return the lane as columns with dense keys."""
    left, right = batch_of(case.left), batch_of(case.right)
    names = np.unique(np.r_[left.key, right.key])
    ids = [np.searchsorted(names, side.key).astype(np.int32) for side in (left, right)]
    return paired(left, ids[0], right, ids[1], names.size)


def sample_setting(case: Sampled, columns: LaneColumns | None = None) -> Setting:
    """Return what a replay is given for a case, as a sweep of this one lane would settle it."""
    sides = batch_of(case.left), batch_of(case.right)
    settings = ReplaySettings(
        *case.windows,
        policy=case.policy,
        parameters={} if case.policy == "eq-cluster" else {"size": case.size},
        probe=case.probe,
        combine=case.combine,
        start_ts=case.start_ts,
        seed=case.seed,
    )
    profile = LaneProfile(
        *(profile_side([side], window) for side, window in zip(sides, case.windows, strict=True))
    )
    floors = (0.0, 0.0)
    if case.kind == "weighted":
        left, right = (floor_of([side.rows], [side.mean_importance]) for side in profile)
        floors = left, right
    sizing = Sizing(case.kind, floors)
    scales = (1.0, 1.0)
    if case.policy != "bottom-k":
        sizes = lane_sizes(columns or columns_of(case), sizing)
        last = max(side.last_ts for side in profile)
        span = last - profile.t0 + 1
        left, right = (
            _scale(own, side.ts, window, last, float(budget * span))
            for own, side, window, budget in zip(
                sizes, sides, case.windows, case.budgets, strict=True
            )
        )
        scales = left, right
    return Setting(settings, profile, case.budgets, sampling=Sampling(sizing, scales))


def _scale(sizes: Any, ts: Any, window: int, last: int, target: float) -> float:
    table = size_table(sizes, ticks_held(ts, window, last))
    return pps_scale(table.size, table.held, target)


def drawn(case: Sampled, setting: Setting, columns: LaneColumns) -> list[Any]:
    """Return the priorities of both sides' tuples."""
    sizes = lane_sizes(columns, setting.sampling.sizing)
    return [
        priorities(
            setting.settings.the_policy,
            sizes[side],
            setting.sampling.scales[side],
            uniforms(case.seed, PURPOSE_CLUSTER, side, batch_of(rows).row),
        )
        for side, rows in enumerate((case.left, case.right))
    ]


def run(case: Sampled, *, step: int | None = None, emit: bool = True) -> Run:
    """Replay a case on the CPU in batches of `step` ticks (None: one batch)."""
    left, right = batch_of(case.left), batch_of(case.right)
    columns = columns_of(case)
    setting = sample_setting(case, columns)
    ranks = drawn(case, setting, columns)
    lane = LaneReplay(setting.settings, setting.profile, setting.budget, emit=emit, chunk=4)
    instants = np.unique(np.r_[left.ts, right.ts])
    edges = [] if instants.size == 0 else [int(instants[0]), int(instants[-1]) + 1]
    if step and edges:
        edges = [*range(edges[0], edges[1], step), edges[1]]
    outputs, retained = [], []
    for begin, end in pairwise(edges):
        a, b = cut(left, begin, end), cut(right, begin, end)
        i, j = (np.searchsorted(side.ts, [begin, end]) for side in (left, right))
        ready = Ready((ranks[0][i[0] : i[1]], ranks[1][j[0] : j[1]]))
        ids = columns.left.key[i[0] : i[1]], columns.right.key[j[0] : j[1]]
        for out in lane.push(a, ids[0], b, ids[1], columns.keys, ready):
            every = out.left_row, out.right_row, out.ts, out.importance
            outputs += list(zip(*(x.tolist() for x in every), strict=True))
        if step == 1 and a.ts.size + b.ts.size:
            kept = lane.retained()
            retained.append((begin, kept[0].tolist(), kept[1].tolist()))
    outputs.sort(key=lambda o: (o[2], o[0], o[1]))
    return Run(outputs, retained, lane.peaks, lane.importance, lane.outputs, lane.peak)


# --- Streams ------------------------------------------------------------------------------------


@st.composite
def cases(draw: Any, policy: str, max_rows: int = 40) -> Sampled:
    """Draw a whole case: ties, gaps, few keys, null keys, windows of 0, memories of 0."""
    return Sampled(
        draw(rows(max_rows)),
        draw(rows(max_rows)),
        (draw(st.sampled_from([0, 1, 3, 7, 40])), draw(st.sampled_from([0, 2, 5, 40]))),
        (draw(st.integers(0, 12)), draw(st.integers(0, 12))),
        policy,
        draw(st.sampled_from(KINDS)),
        draw(st.sampled_from(PROBES)),
        draw(st.sampled_from(["min", "sum", "product", "max", "mean"])),
        draw(st.one_of(st.none(), st.integers(0, 25))),
        draw(st.integers(-2, 3)),
    )


def adversarial(policy: str, seed: int, n: int = 120) -> Sampled:
    """Return 2 x n rows made to be hard on a sample: one instant, one key, bursts, few sizes."""
    rng = np.random.default_rng([seed, 4])
    shape = seed % 4
    if shape == 0:  # everything in a few crowded instants
        ts = [np.sort(rng.integers(0, 4, n)) * 5 for _ in range(2)]
    elif shape == 1:  # bursts after silence: memories fill and empty at once
        ts = [np.repeat(np.arange(6) * 40, n // 6) + rng.integers(0, 3, n) for _ in range(2)]
    else:
        ts = [rng.integers(0, 90, n) for _ in range(2)]
    keys = [
        np.zeros(n, int) if shape == 2 else np.minimum(rng.geometric(0.5, n) - 1, 6)
        for _ in range(2)
    ]
    levels = [[1.0], [0.0, 1.0], [0.5, 0.5, 3.0]][seed % 3]
    sides: list[Rows] = [
        [(int(t), int(k), float(rng.choice(levels))) for t, k in zip(*side, strict=True)]
        for side in zip(ts, keys, strict=True)
    ]
    budgets = [(1, 7), (5, 5), (0, 9), (30, 2)][seed // 4 % 4]
    return Sampled(
        sides[0], sides[1], (int(rng.choice([3, 12, 60])), 9), budgets, policy, KINDS[seed % 3],
        PROBES[seed // 2 % 2], seed=seed,
    )  # fmt: skip


def lengthy(policy: str, seed: int) -> Sampled:
    """Return 2 x 700 rows."""
    rng = np.random.default_rng(seed)
    return Sampled(
        long_stream(rng, tied=True), long_stream(rng, tied=False), (40, 25), (17, 9), policy,
        KINDS[seed % 3], PROBES[seed % 2], seed=seed,
    )  # fmt: skip
