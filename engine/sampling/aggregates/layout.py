"""The sums of a lane by window and group, as columns that add up over lanes.

A cluster x is the sampled outputs of one stored tuple within a window and group. With y the value,
p the inclusion probabilities, S_y and S_1 are its weighted sums of y and of 1, and V_yy, V_y1 and
V_11 the unbiased estimates of what it adds to their variances and covariance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints
from engine.sampling.aggregates.spec import AggregateSpec

SUMS = (
    "s_y", "s_1",  # sums over clusters of S_y and S_1
    "v_yy", "v_y1", "v_11",  # of V_yy, V_y1 and V_11
    "yy_yy", "yy_y1", "yy_11", "y1_y1", "y1_11", "11_11",  # of their products
    "random_v", "random_size", "random_y",  # of q V_yy, q |S_y| and q S_y, q = V_11 / S_1^2 = 1 - p
    "random_1",  # of S_1^2, where V_11 is not 0
    "rows", "clusters",
)  # fmt: skip
"""Columns of a lane's table after its window and its groups: (n, 17) float64 in compiled code."""

S_Y, S_1, V_YY, V_Y1, V_11 = range(5)
YY_YY, YY_Y1, YY_11, Y1_Y1, Y1_11, C11_11 = range(5, 11)
RANDOM_V, RANDOM_SIZE, RANDOM_Y, RANDOM_1, ROWS, CLUSTERS = range(11, 17)

SHIFT = "shift"
"""The last column of a lane's table: an average's values stand there less this number of the lane,
for the spread of what is far from 0 would be lost in the squares."""

C_SY, C_S1, C_AY, C_A1, C_VYY, C_VY1, C_V11, C_ROWS = range(8)
"""Columns of one cluster in one pane: 64 bytes, a cache line."""


def lane_schema(spec: AggregateSpec, groups: list[pa.DataType]) -> pa.Schema:
    """Return the columns of a lane's table: the window's number, the groups' values, the sums."""
    named = [(column.name, kind) for column, kind in zip(spec.by, groups, strict=True)]
    sums = ((name, pa.float64()) for name in (*SUMS, SHIFT))
    return pa.schema([("window", pa.int64()), *named, *sums])


def moved(sums: Floats, by: Floats) -> Floats:
    """Return the sums as if `by` had been added to every value: (n, 17) float64.

    All but those of `random_`, which no average needs.

    Parameters
    ----------
    sums : (n, 17) float64
    by : (n,) float64
    """
    s, d = sums, by
    out = sums.copy()
    out[:, S_Y] += d * s[:, S_1]
    out[:, V_YY] += 2 * d * s[:, V_Y1] + d**2 * s[:, V_11]
    out[:, V_Y1] += d * s[:, V_11]
    mixed = s[:, YY_11] + 2 * s[:, Y1_Y1]
    out[:, YY_YY] += (
        4 * d * s[:, YY_Y1] + 2 * d**2 * mixed + 4 * d**3 * s[:, Y1_11] + d**4 * s[:, C11_11]
    )
    out[:, YY_Y1] += d * mixed + 3 * d**2 * s[:, Y1_11] + d**3 * s[:, C11_11]
    out[:, YY_11] += 2 * d * s[:, Y1_11] + d**2 * s[:, C11_11]
    out[:, Y1_Y1] += 2 * d * s[:, Y1_11] + d**2 * s[:, C11_11]
    out[:, Y1_11] += d * s[:, C11_11]
    return out


class SampledRows(NamedTuple):
    """Sampled outputs in order of time: all (n,).

    `pane` and `slot` int64, `value` float64, `valid` bool, `weight` float64.
    """

    pane: Ints
    slot: Ints
    value: Floats
    valid: NDArray[np.bool_]
    weight: Floats


class ClusterSlots(NamedTuple):
    """Clusters within groups, by dense id."""

    group: Ints
    """(slots,) int64."""
    counted: NDArray[np.bool_]
    """(slots,) bool. Whether it is a cluster: outputs of one instant, which are all found, are
    none."""
    pane: Ints
    partial: Ints
    """`pane`, `partial`: (slots,) int64. Its last pane, and where its sums in it stand."""
    touched: Ints
    """(slots,) int64. Scratch: where its sums stand while a window is closed, -1 otherwise."""


class Partials(NamedTuple):
    """Sums of slots in panes, in order of time."""

    pane: Ints
    slot: Ints
    """`pane`, `slot`: (capacity,) int64."""
    sums: Floats
    """(capacity, width) float64. One cluster's, or with independent outputs a group's."""
    merged: Floats
    """(capacity, width) float64."""
    order: Ints
    """(capacity,) int64. Scratch: whole clusters of the window being closed, and their slots."""


class Results(NamedTuple):
    """Closed windows: `window` and `group` (capacity,) int64, `sums` (capacity, 17) float64.

    `of_group` is scratch: (groups,) int64, the row of each group in the window being closed, or -1.
    """

    window: Ints
    group: Ints
    sums: Floats
    of_group: Ints
