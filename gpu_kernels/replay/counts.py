"""Match counts from a lane's counters, one a key and side (contract, section 2, step 2).

A lane has six counters a key, kind by kind: residents of left and right; with the estimators window
and history, tuples seen; and, for rankings that look at residents anew, arrivals of this instant.
"""

from __future__ import annotations

import numpy as np

from gpu_kernels.portable import portable
from gpu_kernels.replay.layout import BY_HISTORY, BY_MEMORY, Array, Integer, Lane, Side

HELD, SEEN, ARRIVED = range(3)
KINDS = 3


@portable
def counter(lane: Lane, kind: Integer, side: Integer, key: Integer) -> Integer:
    """Return where a counter lies."""
    return lane.counters + (2 * kind + side) * lane.keys + key


@portable
def match_count(
    lane: Lane, opposite: Side, counters: Array, key: Integer, arrivals: Integer, now: Integer
) -> float:
    """Return m of a tuple whose matches are of the side `opposite`.

    `arrivals` is the number of opposite arrivals of this instant and key; the counters of tuples
    seen have them already.
    """
    if lane.estimator == BY_MEMORY:
        return np.float64(counters[counter(lane, HELD, opposite.number, key)] + arrivals)
    seen = counters[counter(lane, SEEN, opposite.number, key)]
    if lane.estimator == BY_HISTORY:
        if seen == 0:
            return 0.0
        lifetime = np.float64(opposite.window + 1)
        return np.float64(seen) * (lifetime / np.float64(now - opposite.first + 1))
    return np.float64(seen)
