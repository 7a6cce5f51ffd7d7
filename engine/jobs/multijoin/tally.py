"""What a join comes to, in all and by time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from engine.jobs.exact.counting import Tally
from engine.runtime.jit import Floats, Ints
from gpu_kernels.combine import neumaier

NOTHING = Tally(0, 0.0, np.zeros(0, np.int64), np.zeros(0))


def tallied(parts: Iterable[tuple[Ints, Ints, Floats]], edges: Sequence[int]) -> Tally:
    """Count outputs as they pass.

    Parameters
    ----------
    parts : iterable of (members, ts, importance)
    edges : sequence of int
        Of the time bins, the last one's end included.

    Examples
    --------
    >>> import numpy as np
    >>> some = (np.zeros((3, 2), np.int64), np.array([0, 5, 9]), np.array([1.0, 2.0, 4.0]))
    >>> found = tallied([some], [0, 6, 12])
    >>> found.outputs, found.importance, found.by_bin.tolist()
    (3, 7.0, [2, 1])
    """
    bounds = np.asarray(edges, np.int64)
    bins = max(0, bounds.size - 1)
    by_bin, importance_by_bin = np.zeros(bins, np.int64), np.zeros(bins)
    outputs, high, rest = 0, 0.0, 0.0
    for _, ts, importance in parts:
        outputs += ts.size
        high, rest = neumaier(high, rest, float(importance.sum()))
        which = np.searchsorted(bounds, ts, side="right") - 1
        by_bin += np.bincount(which, minlength=bins)
        importance_by_bin += np.bincount(which, importance, bins)
    return Tally(outputs, high + rest, by_bin, importance_by_bin)


def added(tallies: Sequence[Tally]) -> Tally:
    """Return the tally of parts of a join together."""
    high = rest = 0.0
    for own in tallies:
        high, rest = neumaier(high, rest, own.importance)
    return Tally(
        sum(own.outputs for own in tallies),
        high + rest,
        np.sum([own.by_bin for own in tallies], axis=0),
        np.sum([own.importance_by_bin for own in tallies], axis=0),
    )
