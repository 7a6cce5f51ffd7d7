"""The kernel that evaluates settings given as arrays."""

from __future__ import annotations

from numba import cuda, float64, int32

from gpu_kernels.compiler import Kernel, device_function
from gpu_kernels.harvest.formulas import Array, setting_terms
from gpu_kernels.harvest.staging import stage


@device_function
def join_terms(
    settings: Array,
    row: int,
    join: int,
    joins: Array,
    hops: Array,
    entries: Array,
    rates: Array,
    shift: int,
    used: Array,
    passed: Array,
) -> tuple[float, float]:
    """Return C and O of one setting."""
    total_cost = 0.0
    total_output = 0.0
    start = hops[joins[join]]
    for direction in range(joins[join], joins[join + 1]):
        first = hops[direction]
        cost, partials = setting_terms(
            settings, row, first - start, first, hops[direction + 1], entries, shift, used, passed
        )
        total_cost = total_cost + rates[direction] * cost
        total_output = total_output + rates[direction] * partials
    return total_cost, total_output


def evaluate(
    settings: Array,
    which: Array,
    joins: Array,
    hops: Array,
    entries: Array,
    rates: Array,
    used: Array,
    passed: Array,
    tile: int,
    room: int,
    costs: Array,
    outputs: Array,
) -> None:
    """Write C and O of settings, each of its own join.

    Launch: a block for every `tile` settings, of `THREADS` threads; shared: `room` table entries of
    `ENTRY` bytes, taken where all settings of the block are of one join whose tables fit; writes:
    `costs` and `outputs`, NaN where a count is greater than its window's n.

    Parameters
    ----------
    settings : (settings, columns) uint8 or uint16
        Counts of logical basic windows, hop after hop in the order of the layout.
    which : (settings,) int32
        The join of each.
    joins, hops, entries, rates, used, passed
        As `Layout` has them.
    tile, room : int64
    costs, outputs : (settings,) float64
        In comparisons and tuples a second.
    """
    staged = cuda.shared.array(0, float64)
    begin = cuda.blockIdx.x * tile
    end = min(begin + tile, which.size)
    join = which[begin]
    row = begin + cuda.threadIdx.x
    alone = True
    while row < end:
        alone = alone and which[row] == join
        row += cuda.blockDim.x
    first = entries[hops[joins[join]]]
    last = entries[hops[joins[join + 1]]]
    staging = cuda.syncthreads_and(int32(alone and last - first <= room))
    row = begin + cuda.threadIdx.x
    if staging:
        width = last - first
        stage(used, first, last, staged, 0)
        stage(passed, first, last, staged, width)
        cuda.syncthreads()
        used_here = staged[:width]
        passed_here = staged[width : 2 * width]
        while row < end:
            costs[row], outputs[row] = join_terms(
                settings, row, join, joins, hops, entries, rates, first, used_here, passed_here
            )
            row += cuda.blockDim.x
    else:
        while row < end:
            costs[row], outputs[row] = join_terms(
                settings, row, which[row], joins, hops, entries, rates, 0, used, passed
            )
            row += cuda.blockDim.x


EVALUATE = Kernel(evaluate)
