"""What sampling policies take of lanes on a device: the tuples' sizes, and room for the sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from engine.device.columns import LaneColumns
from engine.lanes.profile import Peak
from engine.models.frequency import KeyCounts
from engine.replay.layout import ReplayRules
from engine.replay.settings import ReplaySettings
from engine.runtime.jit import Floats
from engine.runtime.randomness import uniforms
from engine.sampling.sizes import Sampling, Sizing, priorities, tuple_sizes

Pair = tuple[Floats, Floats]


class Sampled(NamedTuple):
    """One replay under a sampling policy."""

    settings: ReplaySettings
    rules: ReplayRules
    sampling: Sampling
    lane: int


def place_sizes(
    lanes: Sequence[LaneColumns], replays: Sequence[Sampled]
) -> tuple[Floats, list[ReplayRules]]:
    """Put the sizes of all lanes' tuples behind each other, and settle the memory of the replays.

    Parameters
    ----------
    lanes : sequence of LaneColumns
    replays : sequence of Sampled
        Of one `Sizing`.

    Returns
    -------
    sizes : (rows,) float64
        By row of the streams; 0 on lanes that no replay is of.
    rules : list of ReplayRules
        Where a policy has no cap, the budgets are the most that it holds at once: who is admitted
        does not depend on the join. O(rows) a replay.
    """
    numbers = {replay.lane for replay in replays}
    sizing = replays[0].sampling.sizing
    sizes = {number: lane_sizes(lanes[number], sizing) for number in numbers}
    column = np.concatenate(
        [
            np.concatenate(sizes[number]) if number in numbers else np.zeros(lane.rows)
            for number, lane in enumerate(lanes)
        ]
    )
    draws: dict[tuple[int, int], Pair] = {}
    rules = []
    for replay in replays:
        settled = replay.rules
        if replay.settings.the_policy.unlimited:
            lane, seed = lanes[replay.lane], replay.settings.seed
            if (replay.lane, seed) not in draws:
                draws[replay.lane, seed] = _draws(lane, replay.settings)
            left, right = _most_held(lane, replay, sizes[replay.lane], draws[replay.lane, seed])
            settled = settled._replace(budget_left=left, budget_right=right)
        rules.append(settled)
    return column, rules


def lane_sizes(lane: LaneColumns, sizing: Sizing) -> Pair:
    """Return the sizes of a lane's left and right tuples, matches counted by dense keys."""
    left, right = (np.bincount(side.key, minlength=lane.keys) for side in (lane.left, lane.right))
    rule = sizing.rule(KeyCounts(np.arange(lane.keys), left, right))
    return (
        tuple_sizes(rule, 0, lane.left.key.astype(np.int64), lane.left.importance),
        tuple_sizes(rule, 1, lane.right.key.astype(np.int64), lane.right.importance),
    )


def _draws(lane: LaneColumns, settings: ReplaySettings) -> Pair:
    left, right = (
        uniforms(settings.seed, settings.purpose, side, columns.row)
        for side, columns in enumerate((lane.left, lane.right))
    )
    return left, right


def _most_held(lane: LaneColumns, replay: Sampled, sizes: Pair, draws: Pair) -> tuple[int, int]:
    settings, scales = replay.settings, replay.sampling.scales
    windows = settings.window_left, settings.window_right
    found = []
    for side, columns in enumerate((lane.left, lane.right)):
        value = priorities(settings.the_policy, sizes[side], scales[side], draws[side])
        peak = Peak(windows[side])
        peak.add(columns.ts[value >= 0])
        found.append(peak.most)
    return found[0], found[1]
