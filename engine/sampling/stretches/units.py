"""Units in which very large and very small values are squared without loss.

A unit is a power of two, so that no digits of what is divided by it are lost.
"""

from __future__ import annotations

import numpy as np

from engine.runtime.jit import Floats

_LEAST, _MOST = 2.0**-100, 2.0**100
"""The fourth powers of what is between are far from the bounds of float64."""


def units_of(largest: Floats) -> Floats:
    """Return units of values by how large they are at most; 1 where they are ordinary.

    Parameters
    ----------
    largest : (n,) float64
        Greatest magnitudes; 0 where there is none that is finite.

    Returns
    -------
    (n,) float64

    Examples
    --------
    >>> units_of(np.array([0.0, 7.5, 2.0**900 * 1.5])).tolist() == [1.0, 1.0, 2.0**900]
    True
    """
    ordinary = (largest == 0) | ((largest > _LEAST) & (largest < _MOST))
    powers = np.ldexp(1.0, np.frexp(np.where(ordinary, 1.0, largest))[1] - 1)
    found: Floats = np.where(ordinary, 1.0, powers)
    return found


def unit_of(values: Floats) -> float:
    """Return the unit of some values, of which those that are not finite do not matter.

    Examples
    --------
    >>> unit_of(np.array([0.25, np.inf, -3.0]))
    1.0
    """
    finite = np.abs(values[np.isfinite(values)])
    return float(units_of(np.array([finite.max(initial=0.0)]))[0])
