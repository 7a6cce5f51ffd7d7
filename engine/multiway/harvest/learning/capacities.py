"""One capacity for several joins: all of them pay one price for a comparison.

Their directions share nothing but the capacity, as those of one join do, so that the dual of the
harvest problem (`engine.multiway.fractions.dual`) takes them together: at its price no comparison
would yield more in another join.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engine.multiway.fractions.dual import best_price
from engine.multiway.fractions.greedy import direction_terms
from engine.multiway.fractions.profile import JoinProfile
from engine.multiway.harvest.settings import LEAST_THROTTLE
from gpu_kernels.harvest.layout import Floats, Ints, Layout, flatten


def capacities_of(joins: Sequence[JoinProfile], capacity: float) -> tuple[float, ...]:
    """Divide a capacity over joins so that their expected output together is greatest.

    A join that would get next to nothing gets a thousandth of its full cost, so that it can learn
    that it yields more than was expected of it.

    Parameters
    ----------
    joins : sequence of JoinProfile
        Of equally many streams.
    capacity : float
        Comparisons a second, more than 0.

    Returns
    -------
    tuple of float
        Of each join, more than 0; they add up to the capacity. O(joins * m^2 * n) for each of
        about 10 prices.

    Examples
    --------
    >>> few = JoinProfile((10, 10), (10, 10), (5, 5), ((1,), (0,)), ((1, 0.1), (0.1, 1)))
    >>> many = JoinProfile((10, 10), (10, 10), (5, 5), ((1,), (0,)), ((1, 0.2), (0.2, 1)))
    >>> few.full_cost, [round(own) for own in capacities_of([few, many], 2400.0)]
    (2000.0, [400, 2000])
    >>> capacities_of([few, many], 8000.0)
    (4000.0, 4000.0)
    """
    full = np.array([join.full_cost for join in joins])
    least = np.maximum(LEAST_THROTTLE * full, LEAST_THROTTLE * capacity / len(joins))
    found = np.maximum(full, least)
    if full.sum() > capacity:
        layout = flatten([join.terms for join in joins])
        _, _, *settings = best_price(capacity, layout)
        within, beyond = (_costs(counts, layout) for counts in settings)
        more = beyond.sum() - within.sum()
        part = (capacity - within.sum()) / more if more > 0 else 0.0
        found = np.maximum(within + part * (beyond - within), least)
    return tuple((found * (capacity / found.sum())).tolist())


def _costs(counts: Ints, layout: Layout) -> Floats:
    """Return what each join's part of a setting costs."""
    each = [direction_terms(at, counts, layout)[0] for at in range(len(counts))]
    return np.add.reduceat(np.array(each), layout.joins[:-1])
