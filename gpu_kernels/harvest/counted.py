"""The kernel that evaluates the settings of directions, counted through."""

from __future__ import annotations

from numba import cuda

from gpu_kernels.compiler import Kernel
from gpu_kernels.harvest.formulas import Array, indexed_terms


def tabulate(
    owner: Array,
    begins: Array,
    ends: Array,
    starts: Array,
    directions: Array,
    strides: Array,
    hops: Array,
    entries: Array,
    rates: Array,
    used: Array,
    passed: Array,
    costs: Array,
    outputs: Array,
) -> None:
    """Write rate * C_i and rate * N_{i,m} of ranges of directions' settings, by their indexes.

    Launch: a block a piece, of `THREADS` threads; shared: none; writes: `costs` and `outputs`.

    Parameters
    ----------
    owner, begins, ends : (blocks,) int64
        As `Blocks` has them.
    starts : (ranges,) int64
        Where index 0 of each range's direction would be written.
    directions : (ranges,) int64
    strides : (hops,) int64
        As `Space` has them.
    hops, entries, rates, used, passed
        As `Layout` has them.
    costs, outputs : (entries,) float64
        In comparisons and tuples a second.
    """
    block = cuda.blockIdx.x
    direction = directions[owner[block]]
    start = starts[owner[block]]
    index = begins[block] + cuda.threadIdx.x
    while index < ends[block]:
        cost, partials = indexed_terms(
            index,
            hops[direction],
            hops[direction + 1],
            strides,
            entries,
            used,
            passed,
        )
        costs[start + index] = rates[direction] * cost
        outputs[start + index] = rates[direction] * partials
        index += cuda.blockDim.x


TABULATE = Kernel(tabulate)
