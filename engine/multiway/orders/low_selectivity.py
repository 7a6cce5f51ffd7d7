"""Join orders by low selectivity first (P4 5.3), as MJoin sets them."""

from __future__ import annotations

from collections.abc import Sequence


def low_selectivity_orders(selectivities: Sequence[Sequence[float]]) -> tuple[tuple[int, ...], ...]:
    """Return R_i of every direction: the other streams by ascending sigma_ij.

    Of equal sigma the lesser stream comes first. Clique and star join graphs allow every order, so
    that none need be pruned.

    Parameters
    ----------
    selectivities : m sequences of m floats
        sigma_ij; the diagonal is not read.

    Returns
    -------
    m tuples of m - 1 ints
        r_ij, from 0. O(m^2 log m).

    Examples
    --------
    >>> low_selectivity_orders([[1, 0.3, 0.1], [0.3, 1, 0.3], [0.1, 0.3, 1]])
    ((2, 1), (0, 2), (0, 1))
    """
    streams = range(len(selectivities))
    return tuple(
        tuple(sorted((j for j in streams if j != i), key=lambda j: (selectivities[i][j], j)))
        for i in streams
    )
