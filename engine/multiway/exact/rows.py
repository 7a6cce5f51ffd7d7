"""Outputs written down: their members, time and importance."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.multiway.streams import Floats, Ints, MultiStreams
from engine.runtime.jit import jit
from gpu_kernels.multiway.members import importance_of


class OutputChunk(NamedTuple):
    """Outputs of a multi-way join.

    Attributes
    ----------
    members : (n, m) int64
        Places of their tuples, by stream.
    ts : (n,) int64
        Of the latest member.
    importance : (n,) float64
    """

    members: Ints
    ts: Ints
    importance: Floats


def _weigh(
    ts: Ints, importance: Floats, combine: int, members: Ints, out_ts: Ints, out: Floats
) -> None:
    """Write time and importance of outputs, in the streams' order."""
    sides = members.shape[1]
    for row in range(members.shape[0]):
        latest = ts[members[row, 0]]
        for side in range(1, sides):
            latest = max(latest, ts[members[row, side]])
        out_ts[row] = latest
        out[row] = importance_of(combine, importance, members[row], sides)


weigh = jit(_weigh)


def weighed_chunk(streams: MultiStreams, combine: int, members: Ints) -> OutputChunk:
    """Return outputs with their time and importance. O(their members)."""
    out_ts, out = np.empty(len(members), np.int64), np.empty(len(members))
    weigh(streams.ts, streams.importance, combine, members, out_ts, out)
    return OutputChunk(members, out_ts, out)
