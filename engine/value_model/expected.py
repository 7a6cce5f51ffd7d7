"""What an arrival is expected to match, by the counts of its key, and of which importance.

Keys are counted in a table of fixed size, four places a key; importances in bins.
"""

from __future__ import annotations

import math

import numpy as np

from engine.runtime.jit import NONE, Integer, kernel, nth
from engine.runtime.key_table import slot_of
from engine.value_model import layout
from engine.value_model.layout import Array, ValueModel
from gpu_kernels.combine import combined


@kernel
def home_of(model: ValueModel, key: Integer) -> Integer:
    """Return the first cell in which a key may stand."""
    return slot_of(key, np.uint64(model.n[layout.KEY_SHIFT]))


@kernel
def _word(model: ValueModel, cell: Integer, word: Integer) -> Integer:
    return model.cells[nth(layout.CELL * cell + word)]


@kernel
def _counted(model: ValueModel, side: Integer, cell: Integer) -> Integer:
    """Return the arrivals of a cell's key on a side, 0 of NONE."""
    return 0 if cell == NONE else _word(model, cell, layout.COUNTED + side)


@kernel
def cell_of(model: ValueModel, key: Integer) -> int:
    """Return the cell that counts a key, or NONE."""
    mask = model.cells.size // layout.CELL - 1
    home = home_of(model, key)
    for i in range(layout.WAYS):
        cell = (home + i) & mask
        if _word(model, cell, layout.USED) == 0:
            return NONE
        if _word(model, cell, layout.KEY) == key:
            return int(cell)
    return NONE


@kernel
def _cell_for(model: ValueModel, key: Integer, since: Integer) -> int:
    """Return the cell that counts a key, an empty one, or that of a key not seen `since`; or NONE.

    Of several such keys the one that was seen last the longest ago gives way, the first of equals.
    """
    mask = model.cells.size // layout.CELL - 1
    home = home_of(model, key)
    oldest, before = NONE, since
    for i in range(layout.WAYS):
        cell = int((home + i) & mask)
        if _word(model, cell, layout.USED) == 0 or _word(model, cell, layout.KEY) == key:
            return cell
        if _word(model, cell, layout.LAST) < before:
            oldest, before = cell, _word(model, cell, layout.LAST)
    return oldest


@kernel
def _note_keys(model: ValueModel, key: Integer, more: Integer, apart: bool) -> None:
    """Count the cells in use: of both sides, or of the one whose attributes `key` is among."""
    if apart:
        model.counts[key & 1, layout.KEYS] += more
    else:
        model.counts[0, layout.KEYS] += more
        model.counts[1, layout.KEYS] += more


@kernel
def _empty(model: ValueModel, cell: Integer, apart: bool) -> None:
    for side in range(2):
        count = _counted(model, side, cell)
        model.counts[side, layout.SEEN] -= count
        model.counts[side, layout.SQUARES] -= count * count
        model.cells[nth(layout.CELL * cell + layout.COUNTED + side)] = 0
        model.usual[nth(layout.CELL * cell + layout.USUAL + side)] = 0.0
    _note_keys(model, _word(model, cell, layout.KEY), -1, apart)


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
        used = _word(model, cell, layout.USED) != 0
        if used and _word(model, cell, layout.KEY) != key:
            _empty(model, cell, apart)
            used = False
        if not used:
            model.cells[nth(layout.CELL * cell + layout.USED)] = 1
            model.cells[nth(layout.CELL * cell + layout.KEY)] = key
            _note_keys(model, key, 1, apart)
        model.cells[nth(layout.CELL * cell + layout.LAST)] = now
    return cell


@kernel
def count(model: ValueModel, side: Integer, cell: Integer, importance: float) -> None:
    """Count an arrival of `side` in a cell, or NONE."""
    sums, counts = model.sums[side], model.counts[side]
    if cell != NONE:
        before, place = _counted(model, side, cell), layout.CELL * cell + layout.USUAL + side
        if before > 0 and counts[layout.TOTAL] > 0:
            mean = sums[layout.IMPORTANCE] / counts[layout.TOTAL]
            apart = model.usual[nth(place)] - mean
            sums[layout.KEY_XX] += apart * apart
            sums[layout.KEY_XY] += apart * (importance - mean)
        counts[layout.SEEN] += 1
        counts[layout.SQUARES] += 2 * before + 1
        model.cells[nth(layout.CELL * cell + layout.COUNTED + side)] = before + 1
        gain = 1.0 / min(before + 1, layout.RECENT)
        model.usual[nth(place)] += gain * (importance - model.usual[nth(place)])


@kernel
def relative_rate(model: ValueModel, side: Integer, cell: Integer) -> float:
    """Return how often a key arrives on `side`, relative to the mean key; 1 if it never has.

    Counts are drawn towards the mean by as much of their variance as chance alone would make.
    """
    if _counted(model, side, cell) == 0:
        return 1.0
    keys = float(model.counts[1 - side, layout.KEYS])
    seen = float(model.counts[side, layout.SEEN])
    square = seen * seen
    spread = float(model.counts[side, layout.SQUARES]) * keys - square
    weight = 0.0
    if spread > 0.0:
        weight = max(0.0, (spread - seen * keys) / spread)
    relative = float(_counted(model, side, cell)) * keys / seen
    return float(weight * relative + (1.0 - weight))


@kernel
def class_of(model: ValueModel, side: Integer, cell: Integer, relative: float) -> tuple[int, float]:
    """Return the class of a key by its relative rate on `side`, and its share in the next class."""
    if _counted(model, side, cell) == 0:
        return 0, 0.0
    fraction, exponent = math.frexp(relative)
    group = exponent - 1 + layout.UNIT
    if group < 1:
        return 1, 0.0
    if group >= layout.CLASSES - 1:
        return layout.CLASSES - 1, 0.0
    return group, 2.0 * fraction - 1.0


@kernel
def importance_scale(model: ValueModel, side: Integer, cell: Integer) -> float:
    """Return what of the mean importance a key's arrivals on `side` have had lately."""
    if _counted(model, side, cell) == 0:
        return 1.0
    mean = model.sums[side, layout.IMPORTANCE] / model.counts[side, layout.TOTAL]
    if not mean > 0.0:
        return 1.0
    usual = model.usual[nth(layout.CELL * cell + layout.USUAL + side)]
    return float(1.0 + model.sums[side, layout.OF_KEY] * (usual / mean - 1.0))


_LEAST, _GREATEST = 1, layout.BINS - 1
_OFFSET = 63 * 8 + 1


@kernel
def bin_of(importance: float) -> int:
    """Return the bin of an importance: 0 for 0, else by its power of two and three bits more."""
    if importance <= 0.0:
        return 0
    fraction, exponent = math.frexp(importance)
    place = _OFFSET + exponent * 8 + int((fraction - 0.5) * 16.0)
    return min(max(place, _LEAST), _GREATEST)


@kernel
def with_random(
    model: ValueModel, side: Integer, combine: Integer, x: float, scale: float
) -> float:
    """Return the expected importance of an output with one of `side`'s importances, scaled.

    Parameters
    ----------
    model : ValueModel
    side : int
        Whose importances so far, as of the last refit.
    combine : int
        Place of the combine function among min, sum, product, max, mean.
    x : float
        Importance of the tuple itself.
    scale : float
        By which the importances are multiplied.

    Returns
    -------
    float
        O(1). Of the importances in the bin of ``x / scale`` the mean is taken.
    """
    counts, totals = model.below_count[side], model.below_total[side]
    n = counts[layout.BINS]
    if n == 0:
        return combined(combine, x, x)
    mean = totals[layout.BINS] / n * scale
    if combine == 1 or combine == 2 or combine == 4:  # noqa: PLR1714 - compiled
        return combined(combine, x, mean)
    if scale <= 0.0:
        return combined(combine, x, 0.0)
    y = x / scale
    place = bin_of(y)
    less, sum_less = counts[place], totals[place]
    here, sum_here = counts[place + 1] - less, totals[place + 1] - sum_less
    if sum_here < y * here:
        less += here
        sum_less += sum_here
    if combine == 0:
        return float(scale * (sum_less + y * (n - less)) / n)
    return float(scale * (y * less + (totals[layout.BINS] - sum_less)) / n)


@kernel
def expected(model: ValueModel, side: Integer, combine: Integer, x: float, free: float) -> float:
    """Return the expected importance of an output of a tuple of `side`.

    Parameters
    ----------
    model : ValueModel
    side : int
        The tuple's own.
    combine : int
    x : float
        Its importance.
    free : float
        What `with_random` says.
    """
    sums = model.sums[side]
    return float(sums[layout.OF_OWN] * combined(combine, x, x) + sums[layout.OF_FREE] * free)


@kernel
def level_of(model: ValueModel, side: Integer) -> float:
    """Return the expected importance of an output of the mean tuple of `side`, to compare with."""
    if model.n[layout.NEXT] > layout.FIRST_REFIT:
        return float(model.sums[side, layout.LEVEL])
    return float(model.sums[side, layout.IMPORTANCE] / model.counts[side, layout.TOTAL])


@kernel
def find_level(model: ValueModel, side: Integer, combine: Integer) -> None:
    """Take the mean of what outputs are expected to have over the side's importances so far."""
    level = 0.0
    for place in range(layout.BINS):
        number = model.bin_count[side, place]
        if number > 0:
            x = model.bin_total[side, place] / number
            free = with_random(model, 1 - side, combine, x, 1.0)
            level += number * expected(model, side, combine, x, free)
    model.sums[side, layout.LEVEL] = 0.0
    if level > 0.0:
        model.sums[side, layout.LEVEL] = level / model.counts[side, layout.TOTAL]


@kernel
def sum_up(counts: Array, totals: Array, below_count: Array, below_total: Array) -> None:
    """Add the bins up, from the least importance on."""
    for place in range(layout.BINS):
        below_count[place + 1] = below_count[place] + counts[place]
        below_total[place + 1] = below_total[place] + totals[place]
