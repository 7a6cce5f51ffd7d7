"""The orders that preparing lanes sorts by: on the CPU by numpy, on a GPU by cuDF."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from engine.lanes.placing import Lanes, Order, by_lane, lane_counts
from engine.runtime.device_choice import ASKED_FOR_CPU, ON_CPU, ON_GPU, Wanted, attempt
from engine.runtime.jit import Ints
from gpu_kernels.devices import Choice

_AT = "at"


def sorting_device(wanted: Wanted) -> Wanted:
    """Return where to sort: on the GPU wanted if cuDF is installed, which not every GPU user has.

    Without it a GPU that was demanded is used for what comes after.
    """
    if wanted.choice.device != ON_GPU:
        return wanted
    if find_spec("cudf") is None:
        return Wanted(Choice(ON_CPU, "cuDF is not installed"))
    return wanted


def lane_order(
    lane: Lanes, values: Ints, wanted: Wanted = ASKED_FOR_CPU, *, stable: bool = True
) -> Order:
    """Return the order by lane and, within a lane, by values.

    Parameters
    ----------
    lane : (n,) uint16
    values : (n,) int64
    wanted : Wanted
    stable : bool
        Whether rows equal in both keep their order; it is faster on the CPU if they need not.

    Returns
    -------
    (n,) int64
        A stable one is the same on every device. O(n log n).

    Raises
    ------
    DeviceError
        If a GPU was demanded and could not.
    """
    order, _ = attempt(
        wanted,
        lambda _: sorted_by_cudf(lane, values),
        lambda: _by_numpy(lane, values, stable=stable),
    )
    return order


def _by_numpy(lane: Lanes, values: Ints, *, stable: bool) -> Order:
    by_value = np.argsort(values, kind="stable" if stable else None)
    small = lane[by_value]
    return np.asarray(by_value[by_lane(small, lane_counts(small, int(small.max(initial=0)) + 1))])


def sorted_by_cudf(lane: Lanes, values: Ints) -> Order:
    """Return the stable order by lane and values, sorted on the current GPU.

    By the place as well: cuDF promises no stable sort, and a total order needs none. What comes
    back is looked through, O(n): an order that is none must never reach a file.

    Raises
    ------
    RuntimeError
        If the rows are not in order.
    """
    import cudf  # noqa: PLC0415 - optional, and slow to import

    frame = cudf.DataFrame({"lane": lane, "value": values, _AT: np.arange(len(lane))})
    order = np.asarray(frame.sort_values(["lane", "value", _AT])[_AT].to_numpy(), np.int64)
    if not _sorted(lane[order], values[order], order) or len(order) != len(lane):
        raise RuntimeError("cuDF returned rows out of order")
    return order


def _sorted(lane: Lanes, values: Ints, at: Order) -> bool:
    """Tell whether rows rise by (lane, value, place): then no place is there twice."""
    rises = at[1:] > at[:-1]
    for column in (values, lane):
        rises = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & rises)
    return bool(rises.all())
