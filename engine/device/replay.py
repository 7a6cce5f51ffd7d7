"""Replays of lanes of an archive under many settings at once, on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from engine.device.columns import LaneColumns, SideColumns, simultaneous
from engine.device.policies import place_values, policy_functions, tabulate
from engine.device.sampled import Sampled, place_sizes
from engine.device.through_facts import place_key_links
from engine.lanes.profile import LaneProfile
from engine.policies import Structure, age
from engine.replay.layout import ReplayRules
from engine.replay.settings import ReplaySettings
from engine.runtime.jit import Floats, Ints
from engine.sampling.sizes import Sampling
from gpu_kernels.devices import Device
from gpu_kernels.replay.layout import LANE_FLOATS, LANE_INTEGERS
from gpu_kernels.replay.plan import Need, Variant, choose_variant, simulated_variant
from gpu_kernels.replay.run import (
    NOT_TABULATED,
    DeviceStreams,
    Lanes,
    Replayed,
    Tabulated,
    replay_lanes,
)

Curves = tuple[Floats | None, Floats | None]


class DeviceLanes(NamedTuple):
    """Lanes whose columns lie on a device.

    Attributes
    ----------
    columns : tuple of LaneColumns
    begins : tuple of int
        Where each lane's left rows begin in the streams; its right rows follow.
    streams : DeviceStreams
    link_begins : tuple of (int, int)
        Where the links of each lane's left and right keys begin, through facts.
    """

    columns: tuple[LaneColumns, ...]
    begins: tuple[int, ...]
    streams: DeviceStreams
    link_begins: tuple[tuple[int, int], ...]


class Setting(NamedTuple):
    """One replay of a lane.

    Attributes
    ----------
    settings : ReplaySettings
    profile : LaneProfile
        For its windows.
    budget : tuple of int
        K of left and right.
    curves : tuple of (n,) float64 or None
        For AGE.
    lane : int
        Which of the lanes.
    sampling : Sampling
        For a sampling policy.
    """

    settings: ReplaySettings
    profile: LaneProfile
    budget: tuple[int, int]
    curves: Curves = (None, None)
    lane: int = 0
    sampling: Sampling = Sampling()


class Outcome(NamedTuple):
    """What a replay came to.

    Attributes
    ----------
    outputs : int
    importance : float
    peaks : tuple of int
        Most tuples held at once, left and right.
    peak : int
        Most of both sides; of two memories, the sum of their peaks.
    until : tuple of (n,) int64
        When each tuple was dropped, left and right, where that was asked for (see
        `gpu_kernels.replay.run.Replayed`).
    seconds : float
        Its share of the launch that it was in.
    """

    outputs: int
    importance: float
    peaks: tuple[int, int]
    peak: int
    until: tuple[Ints, Ints]
    seconds: float


def load_lanes(device: Device, lanes: Sequence[LaneColumns]) -> DeviceLanes:
    """Copy the columns of lanes to a device, and what joins them through facts.

    Raises
    ------
    TooLargeError
        If they do not fit.
    """
    sides = [side for lane in lanes for side in (lane.left, lane.right)]
    together = {
        name: np.concatenate([getattr(side, name) for side in sides])
        for name in SideColumns._fields
    }
    ends = np.cumsum([lane.rows for lane in lanes])
    begins = tuple(int(end) - lane.rows for end, lane in zip(ends, lanes, strict=True))
    placed = place_key_links(lanes)
    streams = DeviceStreams(device, together, placed.columns)
    return DeviceLanes(tuple(lanes), begins, streams, placed.begins)


def replay_on_device(
    device: Device,
    lanes: DeviceLanes,
    replays: Sequence[Setting],
    *,
    record: bool = False,
    choose: Callable[[int], Variant] | None = None,
) -> list[Outcome]:
    """Replay lanes under every setting, those of one policy together.

    Parameters
    ----------
    device : Device
    lanes : DeviceLanes
    replays : sequence of Setting
    record : bool
        Also return until when each tuple stayed.
    choose : callable, optional
        The kernel's variant for a number of slots; by default the device's.

    Returns
    -------
    list of Outcome
        In the order of `replays`.

    Raises
    ------
    TooLargeError
        If a replay does not fit in device memory.
    """
    every = [r.settings.rules(r.profile, r.budget, emit=False) for r in replays]
    groups: dict[tuple[object, ...], list[int]] = {}
    for i, (replay, rules) in enumerate(zip(replays, every, strict=True)):
        groups.setdefault(_launched_together(replay, rules), []).append(i)
    chosen = choose or (simulated_variant if device.simulated else choose_variant)
    outcomes: dict[int, Outcome] = {}
    at_once: dict[tuple[int, int, int], tuple[int, float]] = {}
    for numbers in groups.values():
        group = _Group([replays[i] for i in numbers], [every[i] for i in numbers])
        found = _replay_group(device, lanes, group, chosen, record=record)
        for place, i in enumerate(numbers):
            which = replays[i].lane, every[i].start_ts, every[i].combine
            if which not in at_once:
                at_once[which] = simultaneous(lanes.columns[which[0]], *which[1:])
            left_rows = lanes.columns[replays[i].lane].left.ts.size
            outcomes[i] = _outcome(found, place, at_once[which], left_rows)
    return [outcomes[i] for i in range(len(replays))]


class _Group(NamedTuple):
    """Replays that share a kernel and its columns."""

    replays: list[Setting]
    rules: list[ReplayRules]


def _launched_together(replay: Setting, rules: ReplayRules) -> tuple[object, ...]:
    """Return what settings must share to be replayed by one kernel with one set of columns."""
    policy = replay.settings.the_policy
    if policy.product is None:
        return policy_functions(replay.settings), replay.settings.terms, replay.sampling.sizing
    windows = (rules.window_left, rules.window_right)
    exponents = rules.a, rules.b, rules.d
    estimator = replay.settings.estimator
    columns = (*exponents, estimator, *(windows if estimator == "history" else ()))
    return policy_functions(replay.settings), *columns


def _outcome(found: Replayed, place: int, at_once: tuple[int, float], left_rows: int) -> Outcome:
    outputs, left_peak, right_peak, peak = (int(n) for n in found.found[place])
    until = found.until[place]
    return Outcome(
        outputs + at_once[0],
        float(found.importance[place]) + at_once[1],
        (left_peak, right_peak),
        peak,
        (until[:left_rows], until[left_rows:]),
        float(found.seconds[place]),
    )


def _replay_group(
    device: Device,
    lanes: DeviceLanes,
    group: _Group,
    choose: Callable[[int], Variant],
    *,
    record: bool,
) -> Replayed:
    first = group.replays[0].settings
    tabulated = _tabulated(first, lanes, group)
    if first.samples:
        both = zip(group.replays, group.rules, strict=True)
        sampled = [Sampled(one.settings, rules, one.sampling, one.lane) for one, rules in both]
        sizes, settled = place_sizes(lanes.columns, sampled)
        tabulated, group = tabulated._replace(x=sizes), group._replace(rules=settled)
    integers = np.array([_integers(*one, lanes) for one in zip(*group, strict=True)])
    floats = np.array([_floats(*one) for one in zip(*group, strict=True)])
    tables = np.zeros(0)
    if group.rules[0].structure == Structure.AGED:
        tables = _place_tables(integers, [replay.curves for replay in group.replays])
    if first.terms is not None:
        numbers = [replay.lane for replay in group.replays]
        values, tables = place_values(lanes.columns, first.terms, numbers, integers)
        tabulated = tabulated._replace(x=values)
    columns = [lanes.columns[replay.lane] for replay in group.replays]
    needs = [
        Need(
            slots=rules.budget_left + rules.budget_right,
            keys=lane.keys,
            pending=sum(lane.largest),
            kept=lane.rows if record else 0,
            pooled=first.pooled,
        )
        for lane, rules in zip(columns, group.rules, strict=True)
    ]
    pools = [one.settings.pool(one.profile, one.budget) for one in group.replays]
    return replay_lanes(
        device, policy_functions(first), lanes.streams,
        Lanes(integers, floats, needs, tables, [pool for pool in pools if pool is not None]),
        tabulated, choose,
    )  # fmt: skip


_FLOATS = {
    "a": "a", "b": "b", "d": "d", "left_alpha": "alpha_left", "right_alpha": "alpha_right",
    "left_beta": "beta_left", "right_beta": "beta_right",
}  # fmt: skip


def _floats(replay: Setting, rules: ReplayRules) -> list[float]:
    scales = dict(zip(("left_scale", "right_scale"), replay.sampling.scales, strict=True))
    return [
        scales[name] if name in scales else getattr(rules, _FLOATS[name]) for name in LANE_FLOATS
    ]


def _tabulated(settings: ReplaySettings, lanes: DeviceLanes, group: _Group) -> Tabulated:
    """Return the columns of a tabulated policy for all lanes, one behind the other."""
    if settings.the_policy.product is None:
        return NOT_TABULATED
    rules_of = {
        replay.lane: rules for replay, rules in zip(group.replays, group.rules, strict=True)
    }
    some = next(iter(rules_of.values()))
    parts = [
        tabulate(settings, rules_of.get(i, some), lane) for i, lane in enumerate(lanes.columns)
    ]
    longest = max(parts, key=lambda part: part.m_table.size)
    x, y, column = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y", "m_column")
    )
    return Tabulated(x, y, column, longest.m_table)


def _integers(replay: Setting, rules: ReplayRules, lanes: DeviceLanes) -> list[int]:
    columns, begin = lanes.columns[replay.lane], lanes.begins[replay.lane]
    middle = begin + columns.left.ts.size
    seed = replay.settings.seed & (2**64 - 1)
    values = {
        "left_begin": begin, "left_end": middle,
        "right_begin": middle, "right_end": begin + columns.rows,
        "left_window": rules.window_left, "right_window": rules.window_right,
        "left_budget": rules.budget_left, "right_budget": rules.budget_right,
        "left_first": rules.first_left, "right_first": rules.first_right,
        "t0": rules.t0, "start_ts": rules.start_ts,
        "seed": seed - 2**64 if seed >= 2**63 else seed,
        "estimator": rules.estimator, "after_admission": int(rules.after_admission),
        "combine": rules.combine, "initial_by_importance": int(rules.initial_by_importance),
        "keys": columns.keys, "right_pending": columns.largest[0],
        "left_partners": lanes.link_begins[replay.lane][0],
        "right_partners": lanes.link_begins[replay.lane][1],
    }  # fmt: skip
    return [values.get(name, 0) for name in LANE_INTEGERS]


def _place_tables(integers: Ints, curves: Sequence[Curves]) -> Floats:
    """Put the age tables of all curves behind each other; note where those of each lane begin."""
    places: dict[bytes, int] = {}
    tables: list[Floats] = []
    size = 0
    for lane, sides in enumerate(curves):
        for side, curve in zip(("left", "right"), sides, strict=True):
            table = age.priorities(np.zeros(1) if curve is None else curve)
            name = table.tobytes()
            if name not in places:
                places[name] = size
                tables.append(table)
                size += table.size
            integers[lane, LANE_INTEGERS.index(f"{side}_table")] = places[name]
            integers[lane, LANE_INTEGERS.index(f"{side}_buckets")] = table.size - 1
    return np.concatenate(tables)
