"""How often a key has arrived: counters in a table of fixed size, four places a key."""

from __future__ import annotations

import math

from engine.runtime.jit import NONE, Integer, kernel
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
    ValueModel,
)


@kernel
def cell_of(model: ValueModel, key: Integer) -> int:
    """Return the cell that counts a key, or NONE."""
    mask = model.key.size - 1
    home = slot_of(key, shift_of(model.key.size))
    for i in range(WAYS):
        cell = (home + i) & mask
        if not model.used[cell]:
            return NONE
        if model.key[cell] == key:
            return int(cell)
    return NONE


@kernel
def _cell_for(model: ValueModel, key: Integer, since: Integer) -> int:
    """Return the cell that counts a key, an empty one, or that of a key not seen `since`; or NONE.

    Of several such keys the one that was seen last the longest ago gives way, the first of equals.
    """
    mask = model.key.size - 1
    home = slot_of(key, shift_of(model.key.size))
    oldest = NONE
    for i in range(WAYS):
        cell = int((home + i) & mask)
        if not model.used[cell] or model.key[cell] == key:
            return cell
        if model.last[cell] < since and (oldest == NONE or model.last[cell] < model.last[oldest]):
            oldest = cell
    return oldest


@kernel
def _note_keys(model: ValueModel, key: Integer, more: Integer, apart: bool) -> None:
    """Count the cells in use: of both sides, or of the one whose attributes `key` is among."""
    if apart:
        model.counts[key & 1, KEYS] += more
    else:
        model.counts[0, KEYS] += more
        model.counts[1, KEYS] += more


@kernel
def _empty(model: ValueModel, cell: Integer, apart: bool) -> None:
    for side in range(2):
        count = model.count[side, cell]
        model.counts[side, SEEN] -= count
        model.counts[side, SQUARES] -= count * count
        model.count[side, cell] = 0
        model.usual[side, cell] = 0.0
    _note_keys(model, model.key[cell], -1, apart)


@kernel
def take(model: ValueModel, key: Integer, now: Integer, since: Integer, apart: bool) -> int:
    """Return the cell of a key that arrives, NONE where there is no room for it.

    Parameters
    ----------
    model : ValueModel
    key : int
    now : int
        Its ts.
    since : int
        A key not seen since may give way.
    apart : bool
        Both sides' keys are different ones: the left's even, the right's odd.
    """
    cell = _cell_for(model, key, since)
    if cell != NONE:
        if model.used[cell] and model.key[cell] != key:
            _empty(model, cell, apart)
            model.used[cell] = False
        if not model.used[cell]:
            model.used[cell] = True
            model.key[cell] = key
            _note_keys(model, key, 1, apart)
        model.last[cell] = now
    return cell


@kernel
def count(model: ValueModel, side: Integer, cell: Integer, importance: float) -> None:
    """Count an arrival of `side` in a cell, or NONE."""
    sums, counts = model.sums[side], model.counts[side]
    if cell != NONE:
        before = model.count[side, cell]
        if before > 0 and counts[TOTAL] > 0:
            mean = sums[IMPORTANCE] / counts[TOTAL]
            apart = model.usual[side, cell] - mean
            sums[KEY_XX] += apart * apart
            sums[KEY_XY] += apart * (importance - mean)
        counts[SEEN] += 1
        counts[SQUARES] += 2 * before + 1
        model.count[side, cell] = before + 1
        gain = 1.0 / min(before + 1, RECENT)
        model.usual[side, cell] += gain * (importance - model.usual[side, cell])


@kernel
def relative_rate(model: ValueModel, side: Integer, cell: Integer) -> float:
    """Return how often a key arrives on `side`, relative to the mean key; 1 if it never has.

    Counts are drawn towards the mean by as much of their variance as chance alone would make.
    """
    if cell == NONE or model.count[side, cell] == 0:
        return 1.0
    keys = float(model.counts[1 - side, KEYS])
    seen = float(model.counts[side, SEEN])
    square = seen * seen
    spread = float(model.counts[side, SQUARES]) * keys - square
    weight = 0.0
    if spread > 0.0:
        weight = max(0.0, (spread - seen * keys) / spread)
    relative = float(model.count[side, cell]) * keys / seen
    return float(weight * relative + (1.0 - weight))


@kernel
def class_of(model: ValueModel, side: Integer, cell: Integer, relative: float) -> tuple[int, float]:
    """Return the class of a key by its relative rate on `side`, and its share in the next class."""
    if cell == NONE or model.count[side, cell] == 0:
        return 0, 0.0
    fraction, exponent = math.frexp(relative)
    group = exponent - 1 + UNIT
    if group < 1:
        return 1, 0.0
    if group >= CLASSES - 1:
        return CLASSES - 1, 0.0
    return group, 2.0 * fraction - 1.0


@kernel
def importance_scale(model: ValueModel, side: Integer, cell: Integer) -> float:
    """Return what of the mean importance a key's arrivals on `side` have had lately."""
    if cell == NONE or model.count[side, cell] == 0:
        return 1.0
    mean = model.sums[side, IMPORTANCE] / model.counts[side, TOTAL]
    if not mean > 0.0:
        return 1.0
    return float(1.0 + model.sums[side, OF_KEY] * (model.usual[side, cell] / mean - 1.0))
