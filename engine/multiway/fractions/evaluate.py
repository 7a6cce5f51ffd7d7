"""Cost C and output rate O of harvest settings (P4 4.3).

A setting says for every direction and hop how many logical basic windows are read, in the order of
their ranks; the harvest fraction is that count over the window's n. Everything here runs on one
core of the CPU, or on a device; the numbers are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from engine.multiway.fractions.on_cpu import CpuHarvest
from engine.multiway.fractions.profile import MOST_BASIC_WINDOWS, JoinProfile
from engine.runtime.errors import SpecError
from gpu_kernels.devices import Device
from gpu_kernels.harvest.layout import Floats, Layout, flatten
from gpu_kernels.harvest.space import Best, Ranges, Space


class Evaluation(NamedTuple):
    """C and O of settings.

    Attributes
    ----------
    cost : (settings,) float64
        Comparisons a second.
    output : (settings,) float64
        Tuples a second.
    """

    cost: Floats
    output: Floats


class Harvest(Protocol):
    """The joins of a layout, wherever they are evaluated."""

    def evaluate(self, settings: NDArray[Any], which: NDArray[np.int32]) -> tuple[Floats, Floats]:
        """Return C and O of settings, each of its own join."""
        ...

    def tabulate(self, space: Space, ranges: Ranges) -> tuple[Any, Any]:
        """Return rate * C_i and rate * N_{i,m} of ranges of directions."""
        ...

    def combine(self, space: Space, ranges: Ranges) -> tuple[Any, Any]:
        """Return C and O of ranges of settings."""
        ...

    def best(self, space: Space, ranges: Ranges) -> Best:
        """Return the best setting of every range."""
        ...


def harvest_on(device: Device | None, layout: Layout) -> Harvest:
    """Return joins on a device, or on the CPU."""
    if device is None:
        return CpuHarvest(layout)
    from gpu_kernels.harvest.on_device import DeviceHarvest  # noqa: PLC0415 - loads numba.cuda

    return DeviceHarvest(device, layout)


def _counts(settings: ArrayLike) -> NDArray[Any]:
    """Return settings as (settings, columns) of an unsigned type that the kernels take."""
    given = np.asarray(settings)
    if given.ndim not in {2, 3}:
        raise SpecError(
            f"settings have shape {given.shape}; give (settings, m, m - 1), or (settings, columns)"
        )
    if given.dtype not in {np.dtype(np.uint8), np.dtype(np.uint16)}:
        if not np.issubdtype(given.dtype, np.integer):
            raise SpecError(f"settings are {given.dtype}; give whole numbers, uint8 or uint16")
        if given.size and not 0 <= given.min() <= given.max() <= MOST_BASIC_WINDOWS:
            raise SpecError(
                f"settings from {given.min()} to {given.max()} must lie from 0 to "
                f"{MOST_BASIC_WINDOWS}"
            )
        given = given.astype(np.uint16)
    columns = given.shape[1] if given.ndim == 2 else given.shape[1] * given.shape[2]
    return np.ascontiguousarray(given.reshape(given.shape[0], columns))


def _joins_of(which: ArrayLike | None, rows: int, joins: int) -> NDArray[np.int32]:
    if which is None:
        if joins != 1:
            raise SpecError(f"settings of {joins} joins: say which join each is of")
        return np.zeros(rows, np.int32)
    found = np.ascontiguousarray(which, np.int32)
    if found.shape != (rows,):
        raise SpecError(f"which has shape {found.shape} for {rows} settings; give one join each")
    if rows and not 0 <= found.min() <= found.max() < joins:
        raise SpecError(
            f"joins {found.min()} to {found.max()} must lie from 0 to {joins - 1}, as joins were "
            "given"
        )
    return found


def evaluate(
    joins: Sequence[JoinProfile],
    settings: ArrayLike,
    which: ArrayLike | None = None,
    *,
    device: Device | None = None,
) -> Evaluation:
    """Return C and O of harvest settings of many joins (P4 4.3).

    Parameters
    ----------
    joins : sequence of JoinProfile
        m may differ.
    settings : (settings, m, m - 1) or (settings, columns) ints
        Counts of logical basic windows, 0 to n; uint8 and uint16 are taken as they are. Where m
        differs: columns for the join of the most hops; a join reads its first m (m - 1).
    which : (settings,) ints, or None
        The join that each setting is of; None where there is one join.
    device : Device or None
        None: the CPU.

    Returns
    -------
    Evaluation
        O(settings * m^2).

    Raises
    ------
    SpecError
        If a count is greater than its window's n, or an array has the wrong shape.

    Examples
    --------
    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> found = evaluate([join], [[[5, 5], [5, 5], [5, 5]], [[1, 1], [0, 5], [5, 5]]])
    >>> found.cost.tolist(), found.output.tolist()
    ([14100000.0, 4890000.0], [135000.0, 46800.0])
    """
    counts = _counts(settings)
    rows, columns = counts.shape
    owners = _joins_of(which, rows, len(joins))
    widest = max((join.hop_windows.size for join in joins), default=0)
    exact = len(joins) == 1
    if columns < widest or (exact and columns != widest):
        raise SpecError(
            f"settings have {columns} counts; give {widest}, one for every direction and hop"
        )
    layout = flatten([join.terms for join in joins])
    cost, output = harvest_on(device, layout).evaluate(counts, owners)
    wrong = np.flatnonzero(np.isnan(cost))
    if wrong.size:
        row = int(wrong[0])
        most = joins[owners[row]].hop_windows.ravel()
        raise SpecError(
            f"setting {row} reads {counts[row, : most.size].tolist()} logical basic windows; there "
            f"are {most.tolist()}"
        )
    return Evaluation(cost, output)
