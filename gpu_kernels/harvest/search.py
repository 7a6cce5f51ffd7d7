"""The kernels that choose the best of the settings counted through.

Sums are made by one thread in the order of `gpu_kernels.harvest.formulas`; what threads combine is
only which setting goes before which, a total order.
"""

from __future__ import annotations

from numba import cuda, float64, int64

from gpu_kernels.compiler import Kernel, device_function
from gpu_kernels.harvest.formulas import NONE_OUTPUT, Array, better, scan
from gpu_kernels.harvest.staging import THREADS, stage


@device_function
def best_of_block(output: float, cost: float, index: int) -> tuple[float, float, int]:
    """Return the best of what the block's `THREADS` threads give, to all of them.

    All threads of the block call it together; shared: 24 bytes a thread.

    Parameters
    ----------
    output, cost : float64
        O and C, in tuples and comparisons a second.
    index : int64
        -1 with `NONE_OUTPUT` where the thread has none.
    """
    outputs = cuda.shared.array(THREADS, float64)
    costs = cuda.shared.array(THREADS, float64)
    indexes = cuda.shared.array(THREADS, int64)
    thread = cuda.threadIdx.x
    outputs[thread] = output
    costs[thread] = cost
    indexes[thread] = index
    cuda.syncthreads()
    half = THREADS // 2
    while half > 0:
        other = thread + half
        if thread < half and better(
            outputs[other],
            costs[other],
            indexes[other],
            outputs[thread],
            costs[thread],
            indexes[thread],
        ):
            outputs[thread] = outputs[other]
            costs[thread] = costs[other]
            indexes[thread] = indexes[other]
        cuda.syncthreads()
        half //= 2
    return outputs[0], costs[0], indexes[0]


@device_function
def scan_runs(
    begin: int,
    end: int,
    run: int,
    limit: float,
    first: int,
    last: int,
    weights: Array,
    offsets: Array,
    shift: int,
    costs: Array,
    outputs: Array,
) -> tuple[float, float, int]:
    """Return the best of this thread's runs of the piece: every `THREADS`-th of `run` settings.

    Parameters
    ----------
    begin, end : int64
        The piece: indexes ``begin <= index < end``.
    run : int64
        Settings in a row.
    limit, first, last, weights, offsets, shift, costs, outputs
        As `gpu_kernels.harvest.formulas.scan` takes them.

    Returns
    -------
    (float64, float64, int64)
        Output rate, cost and index.
    """
    best_output = NONE_OUTPUT
    best_cost = 0.0
    best_index = -1
    at = begin + cuda.threadIdx.x * run
    while at < end:
        best_output, best_cost, best_index = scan(
            at,
            min(at + run, end),
            limit,
            (best_output, best_cost, best_index),
            first,
            last,
            weights,
            offsets,
            shift,
            costs,
            outputs,
        )
        at += cuda.blockDim.x * run
    return best_output, best_cost, best_index


def search(
    owner: Array,
    begins: Array,
    ends: Array,
    run: int,
    room: int,
    firsts: Array,
    lasts: Array,
    limits: Array,
    weights: Array,
    offsets: Array,
    table_costs: Array,
    table_outputs: Array,
    best_outputs: Array,
    best_costs: Array,
    best_indexes: Array,
) -> None:
    """Write the best setting of every piece: most output within the limit, then least cost, index.

    Launch: a block a piece, of `THREADS` threads; shared: `room` table entries of `ENTRY` bytes,
    taken where the directions' tables fit, and 24 bytes a thread; writes: `best_outputs`,
    `best_costs` and `best_indexes`, index -1 where no setting keeps within the limit.

    Parameters
    ----------
    owner, begins, ends : (blocks,) int64
        As `Blocks` has them.
    run : int64
        Settings that a thread goes through in a row; odd, so that the threads of a warp read from
        different banks.
    room : int64
        Table entries that shared memory holds.
    firsts, lasts : (ranges,) int64
    limits : (ranges,) float64
        As `Ranges` has them.
    weights : (directions,) int64
    offsets : (directions + 1,) int64
        As `Space` has them.
    table_costs, table_outputs : (entries,) float64
        What `tabulate` wrote.
    best_outputs, best_costs : (blocks,) float64
        In tuples and comparisons a second.
    best_indexes : (blocks,) int64
    """
    staged = cuda.shared.array(0, float64)
    block = cuda.blockIdx.x
    begin = begins[block]
    end = ends[block]
    limit = limits[owner[block]]
    first = firsts[owner[block]]
    last = lasts[owner[block]]
    low = offsets[first]
    width = offsets[last] - low
    if width <= room:
        stage(table_costs, low, low + width, staged, 0)
        stage(table_outputs, low, low + width, staged, width)
        cuda.syncthreads()
        output, cost, index = scan_runs(
            begin,
            end,
            run,
            limit,
            first,
            last,
            weights,
            offsets,
            low,
            staged[:width],
            staged[width : 2 * width],
        )
    else:
        output, cost, index = scan_runs(
            begin, end, run, limit, first, last, weights, offsets, 0, table_costs, table_outputs
        )
    output, cost, index = best_of_block(output, cost, index)
    if cuda.threadIdx.x == 0:
        best_outputs[block] = output
        best_costs[block] = cost
        best_indexes[block] = index


def choose(
    firsts: Array,
    block_outputs: Array,
    block_costs: Array,
    block_indexes: Array,
    best_outputs: Array,
    best_costs: Array,
    best_indexes: Array,
) -> None:
    """Write the best setting of every range from those of its pieces.

    Launch: a block a range, of `THREADS` threads; shared: 24 bytes a thread; writes:
    `best_outputs`, `best_costs` and `best_indexes`, index -1 where no piece has one.

    Parameters
    ----------
    firsts : (ranges + 1,) int64
        First piece of each range.
    block_outputs, block_costs : (blocks,) float64
    block_indexes : (blocks,) int64
        What `search` wrote.
    best_outputs, best_costs : (ranges,) float64
    best_indexes : (ranges,) int64
    """
    which = cuda.blockIdx.x
    best_output = NONE_OUTPUT
    best_cost = 0.0
    best_index = -1
    block = firsts[which] + cuda.threadIdx.x
    while block < firsts[which + 1]:
        if better(
            block_outputs[block],
            block_costs[block],
            block_indexes[block],
            best_output,
            best_cost,
            best_index,
        ):
            best_output = block_outputs[block]
            best_cost = block_costs[block]
            best_index = block_indexes[block]
        block += cuda.blockDim.x
    best_output, best_cost, best_index = best_of_block(best_output, best_cost, best_index)
    if cuda.threadIdx.x == 0:
        best_outputs[which] = best_output
        best_costs[which] = best_cost
        best_indexes[which] = best_index


SEARCH = Kernel(search)
CHOOSE = Kernel(choose)
