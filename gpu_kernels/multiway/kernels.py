"""The kernels of multi-way joins: find the runs, count the outputs, write them."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, int64

from gpu_kernels.compiler import Kernel, device_function
from gpu_kernels.multiway.predicates import Array, Theta
from gpu_kernels.multiway.together import (
    ALL,
    COMPARED,
    PASSED,
    ROWS,
    Join,
    Walk,
    lowest,
    make_walk,
    prepare,
    restore,
    save,
)
from gpu_kernels.multiway.walk import (
    POSITION,
    STACK_COLUMNS,
    find_runs,
    importance_of,
    write_members,
)
from gpu_kernels.portable import Integer
from gpu_kernels.teams import Team, warp_team

_REGISTERS = 96
"""A thread's: 20 warps of 4 a block run on one multiprocessor of 65,536."""


def find(
    place: Array, direction: Array, ts: Array, order: Array, runs: Array, starts: Array,
    youngest: Array, oldest: Array, size: Array, first: Array, gone: Array, number: Array,
    times: Array, bounds: Array,
) -> None:  # fmt: skip
    """Write where the runs of every tuple begin and end.

    Launch: any number of blocks, a thread a hop of a tuple; shared: none; writes: `bounds`.

    Parameters
    ----------
    place, direction : (tuples,) int64
        Directions are numbered join by join: those of its streams, then those of whole windows.
    ts : (n,) int64
        Of all tuples.
    order : (directions, hops) int64
    runs : (directions, hops + 1) int64
    starts : (directions + 1,) int64
        Where each direction's runs begin in `youngest` and `oldest`.
    youngest, oldest : (runs,) int64
        Ages in ticks.
    size, first, gone, number : (joins * m,), `first` one more, int64
        Windows in ticks, and the admitted tuples; see `gpu_kernels.multiway.walk.find_runs`.
    times : (n,) int64
        Ticks of the admitted tuples.
    bounds : (tuples, most runs, 2) int64
        Written: first position of each run and the one after its last.
    """
    hops = order.shape[1]
    step = cuda.gridDim.x * cuda.blockDim.x
    for i in range(cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x, place.size * hops, step):
        k = i // hops
        hop = i - k * hops
        own = direction[k]
        begin, end = starts[own], starts[own + 1]
        m = hops + 1
        join = own // (2 * m) * m
        find_runs(
            ts[place[k]], own % m, order[own, hop : hop + 1], runs[own, hop : hop + 2],
            youngest[begin:end], oldest[begin:end], size[join:], first[join:], gone[join:],
            number[join:], times, bounds[k, runs[own, hop] :],
        )  # fmt: skip


FIND = Kernel(find)


def never(a: Any, b: Any) -> bool:  # noqa: ANN401 - vectors
    """Return False: stands in for the function where the predicate has none."""
    return False


class WalkVariant(NamedTuple):
    """What kernels are compiled for."""

    kind: int
    """Index among `gpu_kernels.multiway.predicates.KINDS`."""
    theta: Theta
    """The function of theta; `never` for other kinds."""
    per_block: int = 4
    """Tuples a block."""
    width: int = 32
    """Threads a tuple: 32; fewer only in the simulator, with one tuple a block."""


class Functions(NamedTuple):
    """Device functions that both kernels of a variant use."""

    team: Team
    walk: Walk
    write_output: Any
    """Write the members of this thread's output of the group found; return its importance,
    float64."""


@cache
def _functions(variant: WalkVariant) -> Functions:
    team = warp_team(variant.per_block, variant.width, False)
    walk = make_walk(team, variant.kind, device_function(variant.theta))
    rank, width = team.rank, team.width

    @device_function
    def write_output(
        join: Join, combine: Integer, importance: Array, order: Array, stack: Array,
        stream: Integer, place: Integer, members: Array,
    ) -> Integer:  # fmt: skip
        last = join.places[stack[POSITION, order.size - 1] - width + rank()]
        write_members(order, stack, stream, place, last, members)
        return importance_of(combine, importance, members, order.size + 1)

    return Functions(team, walk, write_output)


@cache
def count_kernel(variant: WalkVariant) -> Kernel:
    """Return the kernel that counts outputs.

    Notes
    -----
    Compiled once a process for each variant. Launch: any number of blocks of ``per_block * width``
    threads; shared: none; writes: `counts` and `total`.
    """
    made, per_block = _functions(variant), variant.per_block
    number_of, rank = made.team.number, made.team.rank
    next_group, write_output = made.walk.next_group, made.write_output

    def count(
        place: Array, direction: Array, shred: Array, bounds: Array, order: Array, runs: Array,
        clique: Integer, combine: Integer, bound: float, places: Array, code: Array,
        value: Array, first: Array, item: Array, weight: Array, importance: Array, counts: Array,
        total: Array,
    ) -> None:  # fmt: skip
        """Write the results of the walks of tuples.

        Parameters
        ----------
        place, direction, bounds, order, runs
            As `find` has them.
        shred : (tuples,) float64
            The throttle fraction of those that are shredded; more than 1 for the others.
        clique, bound, places, code, value, first, item, weight
            See `Join`.
        combine : int64
            Index among `gpu_kernels.combine.COMBINES`.
        importance : (n,) float64
            Of all tuples.
        counts : (tuples, 2 * hops + 1) int64
            Comparisons by hop, passes by hop, outputs.
        total : (tuples,) float64
            Importance of the outputs.
        """
        stack = cuda.local.array((ROWS, STACK_COLUMNS), int64)
        tally = cuda.local.array((2, STACK_COLUMNS), int64)
        members = cuda.local.array(STACK_COLUMNS, int64)
        join = Join(clique, bound, places, code, value, first, item, weight)
        hops = np.int64(order.shape[1])
        k = np.int64(number_of())
        while k < place.size:
            own = direction[k]
            prepare(stack, tally, bounds[k], runs[own], hops)
            outputs = np.int64(0)
            gained = 0.0
            while True:
                who = next_group(join, place[k], stack, bounds[k], runs[own], hops, shred[k], tally)
                if who == 0:
                    break
                own_importance = 0.0
                if (who >> rank()) & 1 != 0:
                    own_importance = write_output(
                        join, combine, importance, order[own], stack, own % (hops + 1), place[k],
                        members,
                    )  # fmt: skip
                # one after the other, as one thread would: the sum depends on the order
                while who != 0:
                    gained = gained + cuda.shfl_sync(ALL, own_importance, lowest(who))
                    outputs += 1
                    who &= who - 1
            if rank() == 0:
                for hop in range(hops):
                    counts[k, hop] = tally[COMPARED, hop]
                    counts[k, hops + hop] = tally[PASSED, hop]
                counts[k, 2 * hops] = outputs
                total[k] = gained
            k += cuda.gridDim.x * per_block

    return Kernel(count, _REGISTERS)


@cache
def write_kernel(variant: WalkVariant) -> Kernel:
    """Return the kernel that writes outputs, in their order.

    A tuple whose outputs do not end with the chunk saves its walk, from which the launch for the
    next chunk goes on.

    Notes
    -----
    Compiled once a process for each variant. Launch: any number of blocks of ``per_block * width``
    threads; shared: none; writes: `written`, `importances` and `after`.
    """
    made, per_block = _functions(variant), variant.per_block
    number_of, rank, back = made.team.number, made.team.rank, made.walk.back
    next_group, write_output = made.walk.next_group, made.write_output

    def write(
        place: Array, direction: Array, shred: Array, bounds: Array, order: Array, runs: Array,
        clique: Integer, combine: Integer, bound: float, places: Array, code: Array,
        value: Array, first: Array, item: Array, weight: Array, importance: Array,
        offsets: Array, tuples_begin: Integer, tuples_end: Integer, begin: Integer, end: Integer,
        before: Array, after: Array, written: Array, importances: Array,
    ) -> None:  # fmt: skip
        """Write the outputs of a chunk.

        Parameters
        ----------
        place, ..., importance
            As `count` has them.
        offsets : (tuples + 1,) int64
            Number of each tuple's first output; the last is that of all outputs.
        tuples_begin, tuples_end : int64
            Those that have outputs in the chunk.
        begin, end : int64
            Outputs ``begin <= number < end`` are in the chunk.
        before, after : (SAVED,) int64
            Walk of the tuple that the last chunk has cut, and of the one that this one cuts.
        written : (end - begin or more, m) int64
            Members, by stream.
        importances : (end - begin or more,) float64
            Of the outputs.
        """
        stack = cuda.local.array((ROWS, STACK_COLUMNS), int64)
        tally = cuda.local.array((2, STACK_COLUMNS), int64)
        members = cuda.local.array(STACK_COLUMNS, int64)
        join = Join(clique, bound, places, code, value, first, item, weight)
        hops = np.int64(order.shape[1])
        k = tuples_begin + np.int64(number_of())
        while k < tuples_end:
            own = direction[k]
            number = offsets[k]
            stop = min(offsets[k + 1], end)
            prepare(stack, tally, bounds[k], runs[own], hops)
            if number < begin:
                number = restore(before, stack)
            found = np.int64(0)
            while number < stop:
                who = next_group(join, place[k], stack, bounds[k], runs[own], hops, shred[k], tally)
                if who == 0:
                    break
                at = number + cuda.popc(who & ((np.int64(1) << rank()) - 1))
                if (who >> rank()) & 1 != 0 and begin <= at < end:
                    importances[at - begin] = write_output(
                        join, combine, importance, order[own], stack, own % (hops + 1), place[k],
                        members,
                    )  # fmt: skip
                    for stream in range(hops + 1):
                        written[at - begin, stream] = members[stream]
                found = np.int64(cuda.popc(who))
                number += found
            if offsets[k + 1] > end:
                if number > end:
                    # the next chunk compares the group that is cut again, for the rest of it
                    back(stack, hops)
                    number -= found
                if rank() == 0:
                    save(stack, number, after)
            k += cuda.gridDim.x * per_block

    return Kernel(write, _REGISTERS)
