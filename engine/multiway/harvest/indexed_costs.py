"""What the indexes of a join's basic windows make of the cost of its hops (P4 7)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.multiway.fractions.indexed import IndexCosts, search_steps
from engine.multiway.harvest.indexes import entries_of
from engine.multiway.measure import measure
from engine.multiway.predicate import Predicate
from engine.multiway.streams import Floats, MultiStreams, Windows


def index_costs(
    candidates: Floats, entries: Floats, sizes: Floats, basic: Sequence[int],
    orders: Sequence[Sequence[int]],
) -> IndexCosts:  # fmt: skip
    """Return what indexes make of the cost of hops.

    Parameters
    ----------
    candidates : (m, m - 1) float64
        By direction and hop, as a part of the tuples read.
    entries : (m,) float64
        Of a tuple of each stream.
    sizes : (m,) float64
        Tuples of each window.
    basic : m ints
        Logical basic windows of each.
    orders : m sequences of m - 1 ints

    Examples
    --------
    >>> found = index_costs(np.full((2, 1), 0.1), np.array([1.0, 3.0]), np.array([32.0, 64.0]),
    ...                     [2, 4], [[1], [0]])
    >>> found.search
    [[6.5], [15.0]]
    """
    search = [
        # a tuple looks once for each entry that it would have itself
        [float(entries[i]) * search_steps(sizes[s] * entries[s] / basic[s]) for s in order]
        for i, order in enumerate(orders)
    ]
    return IndexCosts(search, candidates.tolist())


def _given_by(streams: MultiStreams, predicate: Predicate) -> tuple[MultiStreams, Predicate]:
    """Return streams and a predicate that holds for candidates.

    A tuple that shares several items is one here, though it is looked at for each.
    """
    own = streams.attributes
    if predicate.kind == "distance":
        first = np.ascontiguousarray(own.value[:, :1])
        attributes = own._replace(value=first)
        return streams._replace(attributes=attributes), Predicate(
            "distance", predicate.columns[:1], predicate.bound
        )
    if predicate.kind == "inner":
        attributes = own._replace(weight=np.ones(own.weight.size))
        return streams._replace(attributes=attributes), Predicate("inner", predicate.columns, 1.0)
    return streams, predicate


def measured_costs(
    streams: MultiStreams, windows: Windows, predicate: Predicate, orders: Sequence[Sequence[int]],
    basic_window: int,
) -> IndexCosts | None:  # fmt: skip
    """Return what indexes make of the cost of hops, measured before the join; None if they cannot.

    Parameters
    ----------
    streams : MultiStreams
    windows : Windows
    predicate : Predicate
    orders : m sequences of m - 1 ints
    basic_window : int
        b, in ticks.

    Examples
    --------
    >>> from engine.multiway.streams import no_attributes, windows_of
    >>> ts, codes = np.array([0, 4, 1, 3]), np.array([7, 8, 7, 9])
    >>> streams = MultiStreams(np.array([0, 2, 4]), ts, ts, np.ones(4),
    ...                        no_attributes(4)._replace(code=codes))
    >>> found = measured_costs(streams, windows_of([7, 7]), Predicate("equi", ("k",)),
    ...                        [[1], [0]], 4)
    >>> found.search, found.candidates
    ([[2.0], [2.0]], [[0.0], [0.5]])
    """
    entries = entries_of(streams, predicate)
    if entries is None:
        return None
    given = _given_by(streams, predicate)
    found = measure(given[0], windows, given[1])
    parts = np.array([[found.selectivities[i, s] for s in order] for i, order in enumerate(orders)])
    basic = [max(1, -(-size // basic_window)) for size in windows.size.tolist()]
    return index_costs(parts, entries, found.rates * (windows.size + 1.0), basic, orders)
