"""Joins as the flat arrays that the kernels read."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gpu_kernels.harvest.formulas import add_comparisons, passed_on, tuples_used

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class JoinTerms(NamedTuple):
    """The numbers of one m-way join that its cost and output rate are made of."""

    rates: Floats
    """(m,) float64. lambda_i, in tuples a second."""
    sizes: Floats
    """(m, m - 1) float64. S_ij = lambda * w of the window r_ij, in tuples."""
    selectivities: Floats
    """(m, m - 1) float64. sigma between stream i and stream r_ij."""
    yields: Sequence[Sequence[Floats]]
    """m lists of m - 1 arrays (n + 1,) float64. P_ij by the count of logical basic windows taken,
    in the order of their ranks; n is that of window r_ij."""
    used: Sequence[Sequence[Floats]] | None = None
    """m lists of m - 1 arrays (n + 1,) float64. Comparisons of a partial result by the same count.
    None: a scan's, z_ij * S_ij."""


class Layout(NamedTuple):
    """Many joins, one after the other; hops in the order of joins, directions and join orders."""

    joins: Ints
    """(joins + 1,) int64. First direction of each join."""
    hops: Ints
    """(directions + 1,) int64. First hop of each direction."""
    entries: Ints
    """(hops + 1,) int64. First entry of each hop, which has n + 1 of them."""
    rates: Floats
    """(directions,) float64. lambda_i, in tuples a second."""
    used: Floats
    """(entries,) float64. Comparisons of a partial result by count: of a scan z_ij * S_ij."""
    passed: Floats
    """(entries,) float64. P_ij * sigma * S_ij by count."""
    full_cost: Floats
    full_output: Floats
    """`full_cost`, `full_output`: (joins,) float64. C(1) and O(1), in comparisons and tuples a
    second."""


def starts_of(sizes: Sequence[int] | Ints) -> Ints:
    """Return where each part begins, and the end of the last."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _full(terms: JoinTerms) -> tuple[float, float]:
    """Return C(1) and O(1)."""
    total_cost = total_output = 0.0
    for i, rate in enumerate(terms.rates.tolist()):
        cost, partials = 0.0, 1.0
        for j, factors in enumerate(terms.yields[i]):
            n, size = factors.size - 1, float(terms.sizes[i, j])
            used = tuples_used(n, n, size) if terms.used is None else float(terms.used[i][j][n])
            cost = add_comparisons(cost, used, partials)
            partials = partials * passed_on(
                float(factors[n]), float(terms.selectivities[i, j]), size
            )
        total_cost = total_cost + rate * cost
        total_output = total_output + rate * partials
    return total_cost, total_output


def flatten(joins: Sequence[JoinTerms]) -> Layout:
    """Return joins as arrays.

    Parameters
    ----------
    joins : sequence of JoinTerms
        Of 2 streams or more each; m may differ.

    Returns
    -------
    Layout
        O(joins * m^2 * n) bytes.

    Examples
    --------
    >>> import numpy as np
    >>> flat = np.array([0.0, 0.5, 1.0])
    >>> join = JoinTerms(np.array([10.0, 20.0]), np.array([[200.0], [100.0]]),
    ...                  np.array([[0.01], [0.01]]), [[flat], [flat]])
    >>> layout = flatten([join])
    >>> layout.used.tolist()
    [0.0, 100.0, 200.0, 0.0, 50.0, 100.0]
    >>> layout.full_cost.tolist(), layout.full_output.tolist()
    ([4000.0], [40.0])
    """
    hops = [
        (factors, float(join.sizes[i, j]), float(join.selectivities[i, j]))
        for join in joins
        for i, direction in enumerate(join.yields)
        for j, factors in enumerate(direction)
    ]
    used = [
        tuples_used(np.arange(factors.size), factors.size - 1, float(join.sizes[i, j]))
        if join.used is None
        else join.used[i][j]
        for join in joins
        for i, direction in enumerate(join.yields)
        for j, factors in enumerate(direction)
    ]
    passed = [passed_on(y, sigma, size) for y, size, sigma in hops]
    directions = list(chain.from_iterable(join.yields for join in joins))
    full = np.array([_full(join) for join in joins]).reshape(-1, 2)
    return Layout(
        starts_of([join.rates.size for join in joins]),
        starts_of([len(direction) for direction in directions]),
        starts_of([factors.size for factors, _, _ in hops]),
        _joined([join.rates for join in joins]),
        _joined(used),
        _joined(passed),
        np.ascontiguousarray(full[:, 0]),
        np.ascontiguousarray(full[:, 1]),
    )


def _joined(parts: Sequence[Any]) -> Floats:
    return np.concatenate([np.empty(0), *parts]).astype(np.float64)
