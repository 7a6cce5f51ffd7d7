"""C and O of P4 4.3, written once for the CPU, the GPU and the simulator.

The order of the float64 operations, each of which rounds by itself, is part of the contract:

- a hop's tables, by the count k of logical basic windows taken from its window, 0 to n:
  ``used = (k / n) * S`` and ``passed = (P[k] * sigma) * S``;
- along a direction, hop by hop from cost 0.0 and partials 1.0:
  ``cost = cost + used * partials``, then ``partials = partials * passed``;
- over the directions in their order, from 0.0: ``C = C + rate * cost`` and
  ``O = O + rate * partials``.

A setting's index counts in mixed radix, the first hop of the first direction most significant, as
`itertools.product` goes through the hops; a digit is the hop's count.
"""

from __future__ import annotations

from typing import Any

from gpu_kernels.portable import portable

Array = Any
"""An array in the memory of whatever runs the function."""

NONE_OUTPUT = -1.0
"""Output rate of "no setting is feasible": less than any."""


@portable
def tuples_used(count: Any, n: int, size: float) -> Any:  # noqa: ANN401 - a scalar or an array
    """Return z_ij * S_ij: the tuples that a partial result is compared with (P4 4.3).

    Parameters
    ----------
    count : int or (k,) int64
        Logical basic windows taken, 0 to n.
    n : int
        Those that the window has.
    size : float
        S_ij, in tuples.

    Returns
    -------
    float or (k,) float64
        In tuples.
    """
    return (count / n) * size


@portable
def passed_on(yield_factor: Any, selectivity: float, size: float) -> Any:  # noqa: ANN401 - the same
    """Return P_ij * sigma * S_ij: the partial results that one of the hop before becomes (P4 4.3).

    Parameters
    ----------
    yield_factor : float or (k,) float64
        P_ij, the part of the matches that the harvested segments hold.
    selectivity : float
        sigma.
    size : float
        S_ij, in tuples.

    Returns
    -------
    float or (k,) float64
    """
    return (yield_factor * selectivity) * size


@portable
def add_comparisons(cost: float, used: float, partials: float) -> float:
    """Return C_i so far with one hop's comparisons, ``used * partials`` (P4 4.3).

    Parameters
    ----------
    cost : float
        C_i of the hops before, in comparisons a tuple.
    used : float
        Tuples that a partial result is compared with.
    partials : float
        Partial results that reach the hop.
    """
    return cost + used * partials


@portable
def indexed_terms(
    index: int,
    first: int,
    last: int,
    strides: Array,
    entries: Array,
    used: Array,
    passed: Array,
) -> tuple[float, float]:
    """Return a direction's C_i and N_{i,m} for the setting of an index.

    Parameters
    ----------
    index : int
        Of the setting among the direction's own.
    first, last : int
        The direction's hops, ``first <= hop < last``.
    strides : (hops,) int64
        What a step of each hop's digit adds to the index.
    entries : (hops + 1,) int64
        Where each hop's tables begin.
    used, passed : (entries,) float64
        The hops' tables, `tuples_used` and `passed_on` by count.

    Returns
    -------
    float64
        C_i, in comparisons a tuple.
    float64
        N_{i,m}, in outputs a tuple. O(hops).
    """
    cost = 0.0
    partials = 1.0
    rest = index
    for hop in range(first, last):
        digit = rest // strides[hop]
        rest = rest - digit * strides[hop]
        entry = entries[hop] + digit
        cost = add_comparisons(cost, used[entry], partials)
        partials = partials * passed[entry]
    return cost, partials


@portable
def leading_sums(
    index: int,
    first: int,
    last: int,
    weights: Array,
    offsets: Array,
    shift: int,
    costs: Array,
    outputs: Array,
) -> tuple[float, float, int]:
    """Return C and O summed over the directions but the last, and the last one's own index.

    Parameters
    ----------
    index : int
        Of the setting among those of the directions ``first <= direction < last``.
    weights : (directions,) int64
        What a step of each direction's own index adds to the index.
    offsets : (directions + 1,) int64
        Where each direction's table begins.
    shift : int
        Taken from every offset: where `costs` and `outputs` begin.
    costs, outputs : (entries,) float64
        Tables of the directions: rate * C_i and rate * N_{i,m} by the direction's own index.

    Returns
    -------
    float64
        C of these directions, in comparisons a second.
    float64
        O of these directions, in tuples a second.
    int64
        The last direction's own index. O(directions).
    """
    cost = 0.0
    output = 0.0
    rest = index
    for direction in range(first, last - 1):
        digit = rest // weights[direction]
        rest = rest - digit * weights[direction]
        entry = offsets[direction] - shift + digit
        cost = cost + costs[entry]
        output = output + outputs[entry]
    return cost, output, rest


@portable
def better(
    output: float, cost: float, index: int, best_output: float, best_cost: float, best_index: int
) -> bool:
    """Return whether a setting goes before another: greater O, then less C, then lesser index.

    Parameters
    ----------
    output, best_output : float
        O, in tuples a second.
    cost, best_cost : float
        C, in comparisons a second.
    index, best_index : int
    """
    if output != best_output:
        return output > best_output
    if cost != best_cost:
        return cost < best_cost
    return index < best_index


@portable
def scan(
    begin: int,
    end: int,
    limit: float,
    best: tuple[float, float, int],
    first: int,
    last: int,
    weights: Array,
    offsets: Array,
    shift: int,
    costs: Array,
    outputs: Array,
) -> tuple[float, float, int]:
    """Return the best of `best` and the settings ``begin <= index < end`` of cost `limit` or less.

    Parameters
    ----------
    begin, end : int
    limit : float
        In comparisons a second.
    best : tuple
        Output rate, cost and index of the best before; `NONE_OUTPUT`, 0.0 and -1 if none.
    first, last, weights, offsets, shift, costs, outputs
        As `leading_sums` takes them.

    Returns
    -------
    (float64, float64, int64)
        As `best`. O(end - begin).
    """
    best_output, best_cost, best_index = best
    size = offsets[last] - offsets[last - 1]
    table = offsets[last - 1] - shift
    index = begin
    while index < end:
        lead_cost, lead_output, own = leading_sums(
            index, first, last, weights, offsets, shift, costs, outputs
        )
        count = min(size - own, end - index)
        for step in range(count):
            cost = lead_cost + costs[table + own + step]
            output = lead_output + outputs[table + own + step]
            if (
                cost <= limit
                and output >= best_output
                and better(output, cost, index + step, best_output, best_cost, best_index)
            ):
                best_output = output
                best_cost = cost
                best_index = index + step
        index = index + count
    return best_output, best_cost, best_index
