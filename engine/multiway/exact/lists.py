"""Live tuples by key: of equal code, of a cell of a grid, with an item, or all of a stream.

A key's tuples of a stream stand in arrival order in a stretch of their own, so those in reach are
one range of it, whose ends only move forward.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from engine.multiway.exact import layout
from engine.multiway.exact.layout import Lists, Narrow, SlicePart
from engine.multiway.streams import Attributes
from engine.runtime.jit import Floats, Integer, Ints, Records, jit, kernel

DIMENSIONS = 3
"""Attributes that the grid divides, at most."""

_TINY = 1e-150
"""Differences below it can have squares that are 0."""


def _coordinates(values: Floats, radius: float, bits: int) -> Ints:
    """Return a cell coordinate that no tuple within `radius` is more than 1 away from.

    It never falls as the value rises, and cells are wider than the radius by more than the
    division and the predicate can round: the least significant of `bits` bits is 2**-31 of the
    greatest value, and each operation rounds by 2**-53 of its result.
    """
    finite = values[np.isfinite(values)]
    greatest = float(np.abs(finite).max()) if finite.size else 0.0
    width = max(max(radius, _TINY) * (1 + 2.0**-18), greatest * 2.0 ** (2 - bits))
    if not np.isfinite(width) or not np.isfinite(radius * radius):
        return np.zeros(values.size, np.int64)
    most = 2.0 ** (bits - 1) - 2
    with np.errstate(over="ignore"):
        cell = np.floor(np.clip(values / width, -most, most))
    return cell.astype(np.int64)


def cells(values: Floats, radius: float) -> tuple[int, Narrow, Narrow]:
    """Return the cell of every tuple and the cells near each cell. O(n log n).

    Parameters
    ----------
    values : (n, d) float64

    Returns
    -------
    number : int
        Of cells in use.
    cell : (n,) int32
    near : (number, 3**g) int32
        The cell itself and those beside it in each of the first g = min(d, 3) attributes; -1
        where no tuple is.

    Examples
    --------
    >>> number, cell, near = cells(np.array([[0.5], [1.2], [9.0]]), 1.0)
    >>> cell.tolist(), near.tolist()
    ([0, 1, 2], [[-1, 0, 1], [0, 1, -1], [-1, 2, -1]])
    """
    used = min(values.shape[1], DIMENSIONS)
    bits = min(32, 62 // used)
    columns = [_coordinates(values[:, c], radius, bits) for c in range(used)]
    code = np.zeros(len(values), np.int64)
    scale = 1
    scales = []
    for column in columns:
        if column.size:
            code += (column - int(column.min()) + 1) * scale
            scales.append(scale)
            scale *= int(column.max()) - int(column.min()) + 3
    if not len(values):
        return 1, np.zeros(0, np.int32), np.full((1, 3**used), -1, np.int32)
    found, cell = np.unique(code, return_inverse=True)
    near = np.empty((found.size, 3**used), np.int32)
    for n, steps in enumerate(product((-1, 0, 1), repeat=used)):
        wanted = found + sum(step * own for step, own in zip(steps, scales, strict=True))
        at = np.minimum(np.searchsorted(found, wanted), found.size - 1)
        near[:, n] = np.where(found[at] == wanted, at, -1)
    return found.size, cell.astype(np.int32), near


@jit
def _starts(
    plan: int, key: Narrow, item_first: Ints, first: Ints, shift: Ints, starts: Narrow
) -> int:
    """Write where the entries of every key and stream begin; return how many there are."""
    sides = shift.size
    for side in range(sides):
        for k in range(first[side], first[side + 1]):
            place = k + shift[side]
            if plan == layout.ITEMS:
                for t in range(item_first[place], item_first[place + 1]):
                    starts[key[t] * sides + side] += 1
            elif plan == layout.SCAN:
                starts[side] += 1
            else:
                starts[key[place] * sides + side] += 1
    total = 0
    for c in range(starts.size):
        own = starts[c]
        starts[c] = total
        total += own
    return total


def empty_lists(
    plan: int,
    part: SlicePart,
    attributes: Attributes,
    keys: tuple[int, Narrow, Narrow],
    *,
    kept: bool,
    summed: bool,
) -> Lists:
    """Return the lists of a slice with room for all its tuples, none of them live. O(n + keys).

    Parameters
    ----------
    keys : tuple
        Their number, the key of each place or item, and the cells near each cell.
    kept : bool
        Whether the tuples themselves are asked for, and not their numbers alone.
    summed : bool
        Whether the importance of the live is.
    """
    sides = part.own.size
    number, key, near = keys
    low = np.zeros(number * sides, np.int32)
    entries = 0
    if kept:
        entries = _starts(plan, key, attributes.first, part.first, part.shift, low)
    room = entries + sides if kept else 0
    dimensions = attributes.value.shape[1] if plan == layout.CELLS else 0
    return Lists(
        number, key, np.repeat(low, 2), np.zeros(room, np.int32),
        np.zeros(room if plan in (layout.EQUI, layout.ITEMS) else 0), np.zeros((dimensions, room)),
        near, np.zeros((low.size if summed else 0, 2)),
    )  # fmt: skip


@kernel
def _added(lists: Lists, at: Integer, importance: Records) -> None:
    """Add to the importance of the live tuples, and keep the rounding error."""
    before, rest = lists.sum[at, 0], lists.sum[at, 1]
    high = before + importance
    added = high - before
    rest += (before - (high - added)) + (importance - added)
    after = high + rest
    lists.sum[at, 0] = after
    lists.sum[at, 1] = (high - after) + rest


@kernel
def lists_put(
    plan: Integer, lists: Lists, attributes: Attributes, importance: Floats, sides: Integer,
    side: Integer, k: Integer, place: Integer,
) -> None:  # fmt: skip
    """Make a tuple live."""
    if plan == layout.ITEMS:
        for t in range(attributes.first[place], attributes.first[place + 1]):
            at = 2 * (np.int64(lists.key[t]) * sides + side) + layout.END
            entry = lists.ends[at]
            lists.ends[at] = entry + 1
            lists.number[entry] = k
            lists.importance[entry] = attributes.weight[t]
        return
    at = np.int64(side)
    if plan != layout.SCAN:
        at += np.int64(lists.key[place]) * sides
    entry = lists.ends[2 * at + layout.END]
    lists.ends[2 * at + layout.END] = entry + 1
    if lists.sum.shape[0] > 0:
        _added(lists, at, importance[place])
    if lists.number.size > 0:
        lists.number[entry] = k
        if plan == layout.EQUI:
            lists.importance[entry] = importance[place]
        for c in range(lists.value.shape[0]):
            lists.value[c, entry] = attributes.value[place, c]


@kernel
def lists_drop(
    plan: Integer, lists: Lists, attributes: Attributes, importance: Floats, sides: Integer,
    side: Integer, place: Integer,
) -> None:  # fmt: skip
    """Remove the oldest live tuple of a stream."""
    if plan == layout.ITEMS:
        for t in range(attributes.first[place], attributes.first[place + 1]):
            lists.ends[2 * (np.int64(lists.key[t]) * sides + side) + layout.LOW] += 1
        return
    at = np.int64(side)
    if plan != layout.SCAN:
        at += np.int64(lists.key[place]) * sides
    lists.ends[2 * at + layout.LOW] += 1
    if lists.sum.shape[0] > 0:
        _added(lists, at, -importance[place])
        some = np.float64(lists.ends[2 * at + layout.LOW] < lists.ends[2 * at + layout.END])
        lists.sum[at, 0] *= some
        lists.sum[at, 1] *= some


def of_codes(codes: Any, ids: Any) -> tuple[int, Narrow, Narrow]:  # noqa: ANN401 - see below
    """Return dense keys of codes: the codes less their least where they are close together.

    Parameters
    ----------
    codes : (n,) int64
    ids : callable
        Returns (how many different codes there are, (n,) ids of codes).
    """
    none = np.zeros((0, 0), np.int32)
    if codes.size == 0:
        return 1, np.zeros(0, np.int32), none
    least, most = int(codes.min()), int(codes.max())
    if most - least < 2 * codes.size + BLOCK_OF_KEYS:
        return most - least + 1, (codes - least).astype(np.int32), none
    number, found = ids(codes)
    return number, found.astype(np.int32), none


BLOCK_OF_KEYS = 1 << 12
"""Keys that cost nothing."""
