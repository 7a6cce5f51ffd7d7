"""Enumeration of all settings of joins, and the best of them: P4 4.4's brute force.

A setting's index counts in mixed radix, the first hop of the first direction most significant, as
`itertools.product` goes through the hops; a digit is the hop's count less the least one allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from engine.multiway.fractions.evaluate import Evaluation, harvest_on
from engine.multiway.fractions.profile import JoinProfile
from engine.runtime.errors import DeviceError, SpecError
from engine.runtime.jit import Ints
from gpu_kernels.devices import Device
from gpu_kernels.harvest.layout import Layout, flatten
from gpu_kernels.harvest.space import Ranges, Search, Space, ranges_of, space_of


class BestSetting(NamedTuple):
    """The setting that a search has chosen.

    Attributes
    ----------
    number : int
        The index of the setting, from 0.
    counts : (m, m - 1) int64, or (m - 1,) where one direction was searched
        Logical basic windows read.
    cost : float
        Comparisons a second.
    output : float
        Tuples a second.
    """

    number: int
    counts: Ints
    cost: float
    output: float


def _space(layout: Layout, least: int) -> Space:
    if least not in {0, 1}:
        raise SpecError(f"least {least} must be 0 or 1 logical basic windows a hop")
    try:
        return space_of(layout, least)
    except OverflowError as error:
        raise SpecError(str(error)) from error


def _ranges(layout: Layout, space: Space, searches: Sequence[Search]) -> Ranges:
    try:
        return ranges_of(layout, space, searches)
    except ValueError as error:
        raise SpecError(str(error)) from error


@contextmanager
def _within_memory() -> Iterator[None]:
    """Turn a lack of memory on a device or the CPU into an error that says what to do."""
    try:
        yield
    except MemoryError as error:
        raise DeviceError(str(error)) from error


def enumerate_settings(
    joins: Sequence[JoinProfile],
    searches: Sequence[Search],
    *,
    least: int = 1,
    device: Device | None = None,
) -> list[Evaluation]:
    """Return C and O of ranges of settings.

    Parameters
    ----------
    joins : sequence of JoinProfile
    searches : sequence of Search
        The ranges; their limits are not read. With a direction, its own settings: rate * C_i and
        rate * N_{i,m}, n^(m-1) of them in all.
    least : {1, 0}
        Least count of a hop: 1 for harvest fractions in (0, 1], 0 to let windows go unread.
    device : Device or None
        None: the CPU.

    Returns
    -------
    list of Evaluation
        One a search. O(settings * m), 16 bytes a setting.

    Raises
    ------
    SpecError
        If a search names a join, direction or index that is not there.
    DeviceError
        If the directions' settings, or the results, need more memory than there is.

    Examples
    --------
    >>> join = JoinProfile((10, 20), (1, 1), (2, 2), ((1,), (0,)), ((1, 1), (1, 1)))
    >>> whole, second = enumerate_settings([join], [Search(0, 0), Search(0, 0, direction=1)])
    >>> whole.cost.tolist(), second.cost.tolist()
    ([200.0, 300.0, 300.0, 400.0], [100.0, 200.0])
    """
    layout = flatten([join.terms for join in joins])
    space = _space(layout, least)
    harvest = harvest_on(device, layout)
    found: list[Evaluation] = []
    for search in searches:
        ranges = _ranges(layout, space, [search])
        whole = search.direction is None
        with _within_memory():
            arrays = (harvest.combine if whole else harvest.tabulate)(space, ranges)
        found.append(Evaluation(*(arrays if device is None else map(device.download, arrays))))
    return found


def counts_of(join: JoinProfile, index: int, *, least: int = 1) -> Ints:
    """Return the counts of the setting of an index.

    Examples
    --------
    >>> join = JoinProfile((10, 20), (1, 1), (2, 3), ((1,), (0,)), ((1, 1), (1, 1)))
    >>> [counts_of(join, index).ravel().tolist() for index in range(4)]
    [[1, 1], [1, 2], [2, 1], [2, 2]]
    """
    return _decoded(join.hop_windows, index, least)


def _decoded(most: Ints, index: int, least: int) -> Ints:
    digits = []
    for n in reversed(most.ravel().tolist()):
        index, digit = divmod(index, n + 1 - least)
        digits.append(digit + least)
    return np.array(digits[::-1], np.int64).reshape(most.shape)


def best_settings(
    joins: Sequence[JoinProfile],
    searches: Sequence[Search],
    *,
    least: int = 1,
    device: Device | None = None,
) -> list[BestSetting | None]:
    """Return the best feasible setting of every search by trying all of them (P4 4.4).

    The best has the greatest O among those with C at most the search's limit; then the least C;
    then the least index.

    Parameters
    ----------
    joins : sequence of JoinProfile
    searches : sequence of Search
        Ranges of settings of joins, or of a direction of a join, each with its limit
        (`JoinProfile.limit`).
    least : {1, 0}
        Least count of a hop. With 1 there may be no feasible setting; with 0, reading nothing is.
    device : Device or None
        None: the CPU.

    Returns
    -------
    list of BestSetting or None
        One a search; None where no setting is feasible. O(settings) time, and 16 bytes for each of
        the directions' own settings.

    Raises
    ------
    SpecError
        If a search names a join, direction or index that is not there.
    DeviceError
        If the directions' settings, or the results, need more memory than there is.

    Examples
    --------
    P4 4.4.1's join at z = 0.5, with flat pdfs and all selectivities 0.01:

    >>> join = JoinProfile((300, 100, 150), (10, 10, 10), (5, 5, 5), ((1, 2), (2, 0), (1, 0)),
    ...                    ((0.01,) * 3,) * 3)
    >>> best = best_settings([join], [Search(0, join.limit(0.5))])[0]
    >>> best.counts.tolist(), best.cost, best.output
    ([[1, 2], [2, 5], [5, 5]], 6930000.0, 66600.0)
    """
    layout = flatten([join.terms for join in joins])
    space = _space(layout, least)
    ranges = _ranges(layout, space, searches)
    with _within_memory():
        found = harvest_on(device, layout).best(space, ranges)
    chosen: list[BestSetting | None] = []
    for search, index, cost, output in zip(
        searches, found.setting.tolist(), found.cost.tolist(), found.output.tolist(), strict=True
    ):
        if index < 0:
            chosen.append(None)
            continue
        most = joins[search.join].hop_windows
        most = most if search.direction is None else most[search.direction]
        chosen.append(BestSetting(index, _decoded(most, index, least), cost, output))
    return chosen
