"""How often a key has arrived: counters in a table of fixed size, four places a key."""

from __future__ import annotations

import math

from engine.runtime.jit import NONE, Integer
from engine.runtime.jit import kernel as compiled
from engine.runtime.key_table import shift_of, slot_of
from engine.value_model.layout import (
    CLASSES,
    IMPORTANCE,
    KEY_XX,
    KEY_XY,
    KEYS,
    OF_KEY,
    RECENT,
    SEEN,
    SQUARES,
    TOTAL,
    UNIT,
    WAYS,
    Worth,
)


@compiled
def cell_of(worth: Worth, key: Integer) -> int:
    """Return the cell that counts a key, or NONE."""
    mask = worth.key.size - 1
    home = slot_of(key, shift_of(worth.key.size))
    for i in range(WAYS):
        cell = (home + i) & mask
        if not worth.used[cell]:
            return NONE
        if worth.key[cell] == key:
            return int(cell)
    return NONE


@compiled
def _cell_for(worth: Worth, key: Integer, since: Integer) -> int:
    """Return the cell that counts a key, an empty one, or that of a key not seen `since`; or NONE.

    Of several such keys the one that was seen last the longest ago gives way, the first of equals.
    """
    mask = worth.key.size - 1
    home = slot_of(key, shift_of(worth.key.size))
    oldest = NONE
    for i in range(WAYS):
        cell = int((home + i) & mask)
        if not worth.used[cell] or worth.key[cell] == key:
            return cell
        if worth.last[cell] < since and (oldest == NONE or worth.last[cell] < worth.last[oldest]):
            oldest = cell
    return oldest


@compiled
def _note_keys(worth: Worth, key: Integer, more: Integer, apart: bool) -> None:
    """Count the cells in use: of both sides, or of the one whose attributes `key` is among."""
    if apart:
        worth.counts[key & 1, KEYS] += more
    else:
        worth.counts[0, KEYS] += more
        worth.counts[1, KEYS] += more


@compiled
def _empty(worth: Worth, cell: Integer, apart: bool) -> None:
    for side in range(2):
        count = worth.count[side, cell]
        worth.counts[side, SEEN] -= count
        worth.counts[side, SQUARES] -= count * count
        worth.count[side, cell] = 0
        worth.usual[side, cell] = 0.0
    _note_keys(worth, worth.key[cell], -1, apart)


@compiled
def take(worth: Worth, key: Integer, now: Integer, since: Integer, apart: bool) -> int:
    """Return the cell of a key that arrives, NONE where there is no room for it.

    Parameters
    ----------
    worth : Worth
    key : int
    now : int
        Its ts.
    since : int
        A key not seen since may give way.
    apart : bool
        Both sides' keys are different ones: the left's even, the right's odd.
    """
    cell = _cell_for(worth, key, since)
    if cell != NONE:
        if worth.used[cell] and worth.key[cell] != key:
            _empty(worth, cell, apart)
            worth.used[cell] = False
        if not worth.used[cell]:
            worth.used[cell] = True
            worth.key[cell] = key
            _note_keys(worth, key, 1, apart)
        worth.last[cell] = now
    return cell


@compiled
def count(worth: Worth, side: Integer, cell: Integer, importance: float) -> None:
    """Count an arrival of `side` in a cell, or NONE."""
    sums, counts = worth.sums[side], worth.counts[side]
    if cell != NONE:
        before = worth.count[side, cell]
        if before > 0 and counts[TOTAL] > 0:
            mean = sums[IMPORTANCE] / counts[TOTAL]
            apart = worth.usual[side, cell] - mean
            sums[KEY_XX] += apart * apart
            sums[KEY_XY] += apart * (importance - mean)
        counts[SEEN] += 1
        counts[SQUARES] += 2 * before + 1
        worth.count[side, cell] = before + 1
        gain = 1.0 / min(before + 1, RECENT)
        worth.usual[side, cell] += gain * (importance - worth.usual[side, cell])


@compiled
def relative_rate(worth: Worth, side: Integer, cell: Integer) -> float:
    """Return how often a key arrives on `side`, relative to the mean key; 1 if it never has.

    Counts are drawn towards the mean by as much of their variance as chance alone would make.
    """
    if cell == NONE or worth.count[side, cell] == 0:
        return 1.0
    keys = float(worth.counts[1 - side, KEYS])
    seen = float(worth.counts[side, SEEN])
    square = seen * seen
    spread = float(worth.counts[side, SQUARES]) * keys - square
    weight = 0.0
    if spread > 0.0:
        weight = max(0.0, (spread - seen * keys) / spread)
    relative = float(worth.count[side, cell]) * keys / seen
    return float(weight * relative + (1.0 - weight))


@compiled
def class_of(worth: Worth, side: Integer, cell: Integer, relative: float) -> tuple[int, float]:
    """Return the class of a key by its relative rate on `side`, and its share in the next class."""
    if cell == NONE or worth.count[side, cell] == 0:
        return 0, 0.0
    fraction, exponent = math.frexp(relative)
    group = exponent - 1 + UNIT
    if group < 1:
        return 1, 0.0
    if group >= CLASSES - 1:
        return CLASSES - 1, 0.0
    return group, 2.0 * fraction - 1.0


@compiled
def importance_scale(worth: Worth, side: Integer, cell: Integer) -> float:
    """Return what of the mean importance a key's arrivals on `side` have had lately."""
    if cell == NONE or worth.count[side, cell] == 0:
        return 1.0
    mean = worth.sums[side, IMPORTANCE] / worth.counts[side, TOTAL]
    if not mean > 0.0:
        return 1.0
    return float(1.0 + worth.sums[side, OF_KEY] * (worth.usual[side, cell] / mean - 1.0))
