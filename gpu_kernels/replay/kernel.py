"""The replay kernel: one team of threads replays one lane, instant by instant."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from numba import cuda, float64, int32, int64

from gpu_kernels.compiler import Kernel
from gpu_kernels.pool_rates import find_values, values_due
from gpu_kernels.portable import Integer, portable
from gpu_kernels.replay import layout
from gpu_kernels.replay.decisions import make_decisions
from gpu_kernels.replay.layout import (
    FOREVER,
    Array,
    Lane,
    LaneSide,
    LaneStreams,
    PolicyFunctions,
    Pooling,
    Ranking,
    Slots,
)
from gpu_kernels.replay.pool_values import AnyPool, make_count_residents, pool_at
from gpu_kernels.replay.priorities import part_at, table_of
from gpu_kernels.replay.steps import end_of_instant, make_steps
from gpu_kernels.teams import Scratch, Team, block_team, warp_team


@portable
def lane_of(integers: Array, floats: Array, number: Integer) -> Lane:
    """Return what both sides of a lane share."""
    return Lane(
        integers[number, layout.T0],
        integers[number, layout.START_TS],
        integers[number, layout.SEED],
        integers[number, layout.ESTIMATOR],
        integers[number, layout.AFTER_ADMISSION],
        integers[number, layout.COMBINES],
        integers[number, layout.INITIAL_BY_IMPORTANCE],
        integers[number, layout.KEYS],
        integers[number, layout.COUNTERS_AT],
        floats[number, layout.A],
        floats[number, layout.B],
        floats[number, layout.D],
    )


@portable
def side_of(
    integers: Array, floats: Array, number: Integer, side: Integer, slots: Integer
) -> LaneSide:
    """Return a side of a lane, whose slots begin at `slots`."""
    return LaneSide(
        side,
        integers[number, layout.BEGIN + side],
        integers[number, layout.END + side],
        integers[number, layout.WINDOW + side],
        integers[number, layout.BUDGET + side],
        integers[number, layout.FIRST + side],
        slots + integers[number, layout.SLOTS + side],
        integers[number, layout.PENDING + side],
        integers[number, layout.TABLE + side],
        integers[number, layout.BUCKETS + side],
        integers[number, layout.UNTIL + side],
        integers[number, layout.PARTNERS + side],
        floats[number, layout.ALPHA + side],
        floats[number, layout.BETA + side],
        floats[number, layout.SCALE + side],
    )


@cache
def replay_kernel(
    policy: PolicyFunctions,
    kind: str,
    per_block: int,
    width: int,
    in_shared: bool,
    facts: bool = False,
) -> Kernel:
    """Return the kernel that replays lanes under a policy.

    Parameters
    ----------
    policy : PolicyFunctions
    kind : {"warp", "block"}
        The team of a lane.
    per_block, width : int
        Teams in a block, and threads in a team.
    in_shared : bool
        Whether the join memories lie in shared memory.
    facts : bool
        Whether the sides are joined through facts, and not by equal keys.

    Notes
    -----
    Compiled once a process for each policy. Launch: ``ceil(lanes / per_block)`` blocks of
    ``per_block * width`` threads; shared: ``SLOT_BYTES * per_block * slots_a_lane`` where the join
    memories lie there; writes: `counters`, the slots, the pools, `found`, `importance` and `until`.
    """
    team = (
        warp_team(per_block, width, policy.by_importance) if kind == "warp" else block_team(width)
    )
    return Kernel(_replay(team, policy, in_shared, facts), _REGISTERS[kind])


_REGISTERS = {"warp": 96, "block": 128}
"""A thread's: 20 warps of 4 a block run on one multiprocessor of 65,536; a block may have 512."""


def _replay(
    team: Team, policy: PolicyFunctions, in_shared: bool, facts: bool
) -> Callable[..., None]:
    steps = make_steps(team, policy, facts)
    decisions = make_decisions(team, policy, facts)
    slide, expire, register, forget, probe = steps
    score_arrivals, update, admit = decisions
    number_of, rank, sync, total, total_float = (
        team.number, team.rank, team.sync, team.total, team.total_float
    )  # fmt: skip
    per_block = team.per_block
    valued = policy.ranking == Ranking.VALUED
    pooled, by_value = policy.pooling != Pooling.NONE, policy.pooling.learns
    count_residents = make_count_residents(team, policy)
    floats_shared, integers_shared = team.scratch

    def replay(
        integers: Array, floats: Array, ts: Array, key: Array, importance: Array, row: Array,
        peers: Array, twins: Array, partner_first: Array, partner: Array, partner_end: Array,
        x: Array, y: Array, m_column: Array, m_table: Array, tables: Array, counters: Array,
        slot_value: Array, slot_m: Array, slot_index: Array, slot_key: Array,
        slots_a_lane: Integer, pool_floats: Array, pool_integers: Array, priorities: Array,
        matches: Array, until: Array, found: Array, found_importance: Array,
    ) -> None:  # fmt: skip
        lane_number = number_of()
        if lane_number >= integers.shape[0]:
            return
        scratch_floats = cuda.shared.array(floats_shared, float64)
        scratch_integers = cuda.shared.array(integers_shared, int64)
        scratch = Scratch(scratch_floats, scratch_integers)
        streams = LaneStreams(
            ts, key, importance, row, peers, twins, x, y, m_column, m_table, partner_first,
            partner, partner_end,
        )  # fmt: skip
        if in_shared:
            shared_floats = cuda.shared.array(0, float64)
            shared_integers = cuda.shared.array(0, int32)
            slots_of_block = per_block * slots_a_lane
            slots = Slots(
                shared_floats[:slots_of_block],
                shared_floats[slots_of_block : 2 * slots_of_block],
                shared_integers[4 * slots_of_block : 5 * slots_of_block],
                shared_integers[5 * slots_of_block : 6 * slots_of_block],
            )
            first_slot = (lane_number % per_block) * slots_a_lane
        else:
            slots = Slots(slot_value, slot_m, slot_index, slot_key)
            first_slot = integers[lane_number, layout.SLOTS_AT]
        lane = lane_of(integers, floats, lane_number)
        left = side_of(integers, floats, lane_number, 0, first_slot)
        right = side_of(integers, floats, lane_number, 1, first_slot)
        i, j = left.begin, right.begin
        left_low, right_low = left.begin, right.begin
        left_used, left_held, left_oldest, left_peak = 0, 0, FOREVER, 0
        right_used, right_held, right_oldest, right_peak = 0, 0, FOREVER, 0
        left_soonest, right_soonest = FOREVER, FOREVER
        outputs, high, rest = 0, 0.0, 0.0
        if pooled:
            pool: AnyPool = pool_at(pool_floats, pool_integers, lane_number)
            most = 0
        else:
            pool = None
        part = 0
        left_tables, right_tables = tables, tables
        while i < left.end or j < right.end:
            if j >= right.end or (i < left.end and ts[i] <= ts[j]):
                now = ts[i]
            else:
                now = ts[j]
            stop_i = end_of_instant(ts, i, left.end, now)
            stop_j = end_of_instant(ts, j, right.end, now)
            left_low = slide(streams, lane, left, counters, left_low, i, now - left.window)
            right_low = slide(streams, lane, right, counters, right_low, j, now - right.window)
            left_held, left_oldest, left_soonest = expire(
                scratch, streams, slots, lane, left, counters, until, left_used, left_held,
                left_oldest, left_soonest, left_low, now,
            )  # fmt: skip
            right_held, right_oldest, right_soonest = expire(
                scratch, streams, slots, lane, right, counters, until, right_used, right_held,
                right_oldest, right_soonest, right_low, now,
            )  # fmt: skip
            sync()
            register(streams, lane, left, counters, i, stop_i)
            register(streams, lane, right, counters, j, stop_j)
            sync()
            score_arrivals(
                streams, lane, left, right, counters, priorities, matches, tables, i, stop_i, now
            )
            score_arrivals(
                streams, lane, right, left, counters, priorities, matches, tables, j, stop_j, now
            )
            if valued:
                part = part_at(tables, left, part, i - left.begin + j - right.begin)
                left_tables = tables[table_of(tables, left, part) :]
                right_tables = tables[table_of(tables, right, part) :]
            counted = now >= lane.start_ts
            if (by_value or counted) and lane.after_admission == 0:
                outputs, high, rest = probe(
                    streams, slots, lane, left, right, counters, i, stop_i, right_used, FOREVER,
                    outputs, high, rest, pool, right_tables, now, counted,
                )  # fmt: skip
                outputs, high, rest = probe(
                    streams, slots, lane, right, left, counters, j, stop_j, left_used, FOREVER,
                    outputs, high, rest, pool, left_tables, now, counted,
                )  # fmt: skip
            left_decides = left_held + (stop_i - i) > left.budget
            right_decides = right_held + (stop_j - j) > right.budget
            if pooled:
                all_here = left_held + right_held + (stop_i - i) + (stop_j - j)
                left_decides = right_decides = all_here > pool.memory
            if not valued or lane.after_admission == 0:
                update(
                    streams, slots, lane, left, right, counters, left_used, j, stop_j, now,
                    left_decides,
                )  # fmt: skip
                update(
                    streams, slots, lane, right, left, counters, right_used, i, stop_i, now,
                    right_decides,
                )  # fmt: skip
            if by_value:
                sync()
                if values_due(pool, now):
                    count_residents(streams, slots, lane, left, pool, left_tables, left_used, now)
                    count_residents(
                        streams, slots, lane, right, pool, right_tables, right_used, now
                    )
                    sync()
                    if rank() == 0:
                        find_values(pool, now)
            sync()
            if pooled:
                left_used, left_held, left_oldest, left_soonest, right_held = admit(
                    scratch, streams, slots, lane, left, right, pool, counters, priorities,
                    matches, left_tables, right_tables, until, left_used, left_held, left_oldest,
                    left_soonest, right_used, right_held, i, stop_i, now,
                )  # fmt: skip
                right_used, right_held, right_oldest, right_soonest, left_held = admit(
                    scratch, streams, slots, lane, right, left, pool, counters, priorities,
                    matches, right_tables, left_tables, until, right_used, right_held,
                    right_oldest, right_soonest, left_used, left_held, j, stop_j, now,
                )  # fmt: skip
                most = max(most, left_held + right_held)
            else:
                left_used, left_held, left_oldest, left_soonest = admit(
                    scratch, streams, slots, lane, left, counters, priorities, matches,
                    left_tables, until, left_used, left_held, left_oldest, left_soonest, i,
                    stop_i, now,
                )  # fmt: skip
                right_used, right_held, right_oldest, right_soonest = admit(
                    scratch, streams, slots, lane, right, counters, priorities, matches,
                    right_tables, until, right_used, right_held, right_oldest, right_soonest, j,
                    stop_j, now,
                )  # fmt: skip
            left_peak = max(left_peak, left_held)
            right_peak = max(right_peak, right_held)
            if (by_value or counted) and lane.after_admission != 0:
                outputs, high, rest = probe(
                    streams, slots, lane, left, right, counters, i, stop_i, right_used, j,
                    outputs, high, rest, pool, right_tables, now, counted,
                )  # fmt: skip
                outputs, high, rest = probe(
                    streams, slots, lane, right, left, counters, j, stop_j, left_used, i,
                    outputs, high, rest, pool, left_tables, now, counted,
                )  # fmt: skip
            if valued and lane.after_admission != 0:
                update(
                    streams, slots, lane, left, right, counters, left_used, j, stop_j, now, False
                )
                update(
                    streams, slots, lane, right, left, counters, right_used, i, stop_i, now, False
                )
                sync()
            if facts and lane.after_admission != 0:
                sync()  # the probe reads what is forgotten now
            forget(streams, lane, left, counters, i, stop_i)
            forget(streams, lane, right, counters, j, stop_j)
            sync()
            i, j = stop_i, stop_j
        outputs = total(scratch, outputs)
        high = total_float(scratch, high)
        rest = total_float(scratch, rest)
        if rank() == 0:
            found[lane_number, layout.OUTPUTS] = outputs
            found[lane_number, layout.LEFT_PEAK] = left_peak
            found[lane_number, layout.RIGHT_PEAK] = right_peak
            if pooled:
                found[lane_number, layout.PEAK] = most
            found_importance[lane_number] = high + rest

    return replay
