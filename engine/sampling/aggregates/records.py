"""What the compiled sums work on: arrays that travel together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Rows(NamedTuple):
    """Sampled outputs in order of time: all (n,).

    `pane` and `slot` int64, `value` float64, `valid` bool, `weight` float64.
    """

    pane: NDArray[np.int64]
    slot: NDArray[np.int64]
    value: NDArray[np.float64]
    valid: NDArray[np.bool_]
    weight: NDArray[np.float64]


class Slots(NamedTuple):
    """Clusters within groups, by dense id.

    Attributes
    ----------
    group : (slots,) int64
    counted : (slots,) bool
        Whether it is a cluster: outputs of one instant, which are all found, are none.
    pane, partial : (slots,) int64
        Its last pane, and where its sums in it stand.
    touched : (slots,) int64
        Scratch: where its sums stand while a window is closed, -1 otherwise.
    """

    group: NDArray[np.int64]
    counted: NDArray[np.bool_]
    pane: NDArray[np.int64]
    partial: NDArray[np.int64]
    touched: NDArray[np.int64]


class Partials(NamedTuple):
    """Sums of slots in panes, in order of time.

    Attributes
    ----------
    pane, slot : (capacity,) int64
    sums : (capacity, width) float64
        One cluster's, or with independent outputs a group's.
    merged : (capacity, width) float64
    order : (capacity,) int64
        Scratch: whole clusters of the window being closed, and their slots.
    """

    pane: NDArray[np.int64]
    slot: NDArray[np.int64]
    sums: NDArray[np.float64]
    merged: NDArray[np.float64]
    order: NDArray[np.int64]


class Results(NamedTuple):
    """Closed windows: `window` and `group` (capacity,) int64, `sums` (capacity, 17) float64.

    `of_group` is scratch: (groups,) int64, the row of each group in the window being closed, or -1.
    """

    window: NDArray[np.int64]
    group: NDArray[np.int64]
    sums: NDArray[np.float64]
    of_group: NDArray[np.int64]
