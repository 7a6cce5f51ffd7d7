"""Cutting streams in memory into slices of time that threads can join on their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from engine.exact.checks import EVERY, sealed
from engine.runtime.errors import SpecError
from engine.runtime.jit import Floats, Ints, jit
from engine.runtime.key_table import KeyTable
from engine.runtime.streams import StreamBatch

_DIRECT = 4  # heads a tuple up to which keys address them directly
_FEW = 1 << 15  # tuples below which a thread is not worth its start
_MOST = 1 << 30  # rows of one side of a slice, as numbers are int32
_HEADS = 1 << 12  # heads that cost nothing

Columns = tuple[Ints, Ints, Floats, Ints, Ints, Floats]


class Slice(NamedTuple):
    """A stretch of time with the windows before it."""

    columns: Columns
    """tuple. ts, key, importance of the left and then of the right stream."""
    offsets: tuple[int, int]
    """Position of the first row in each whole stream."""
    windows: tuple[int, int]
    first: int
    """First tick whose outputs count."""
    base: int = 0
    keys: int = 0
    """`base`, `keys`: Smallest key and number of heads; 0 until `with_dense_keys`."""

    def slots(self, block: int) -> int:
        """Return a guess of the ring slots needed, a power of two; the ring can grow."""
        most = 0.0
        for ts, window in zip(self.columns[::3], self.windows, strict=True):
            if len(ts):
                span = int(ts[-1]) - int(ts[0]) + 1
                most = max(most, len(ts) * min(1.0, (window + 1) / span))
        return 1 << (2 * (int(1.05 * most) + block)).bit_length()

    def ended(self, cursor: Ints) -> bool:
        """Return whether `cursor` has passed every row."""
        return bool(cursor[0] == len(self.columns[0]) and cursor[1] == len(self.columns[3]))


def cut_slices(
    left: StreamBatch, right: StreamBatch, windows: tuple[int, int], first: int, parts: int
) -> list[Slice]:
    """Return slices of about equal size, in order; each output belongs to exactly one.

    Cuts lie between instants. O(parts * log(tuples)).

    Raises
    ------
    SpecError
        A slice and the windows before it have too many rows.
    """
    sides = [
        (sealed(s.ts, np.int64), sealed(s.key, np.int64), sealed(s.importance, np.float64))
        for s in (left, right)
    ]
    size = len(left.ts) + len(right.ts)
    parts = max(1, min(parts, size // _FEW), 4 * size // _MOST)
    longer = max((side[0] for side in sides), key=len)
    cuts = sorted({int(longer[len(longer) * p // parts]) for p in range(1, parts)})
    slices = []
    for begin, end in zip([None, *cuts], [*cuts, None], strict=True):
        columns, offsets = [], []
        for side, window in zip(sides, windows, strict=True):
            ts = side[0]
            own = 0 if begin is None else int(np.searchsorted(ts, begin))
            low = 0 if begin is None else int(np.searchsorted(ts, max(begin - window, EVERY)))
            low = max(0, min(low, own - 1))  # the row before, so that its order is seen
            high = len(ts) if end is None else int(np.searchsorted(ts, end))
            if high - low >= _MOST:
                raise SpecError(f"a window holds up to {high - low} rows; {_MOST} is the most")
            columns += [column[low:high] for column in side]
            offsets.append(low)
        start = first if begin is None else max(first, begin)
        slices.append(Slice(tuple(columns), tuple(offsets), windows, start))  # type: ignore[arg-type]
    return slices


@jit
def _key_range(keys: Ints, least: int, most: int) -> tuple[int, int]:
    for key in keys:
        least = min(least, key)
        most = max(most, key)
    return least, most


def with_dense_keys(part: Slice) -> Slice:
    """Return the slice with keys that can address heads: its own, or dense ids. O(tuples)."""
    sizes = [len(keys) for keys in part.columns[1::3]]
    if sum(sizes) == 0:
        return part
    info = np.iinfo(np.int64)
    least, most = _key_range(part.columns[1], info.max, info.min)
    least, most = _key_range(part.columns[4], least, most)
    if most - least < _DIRECT * sum(sizes) + _HEADS:
        return part._replace(base=least, keys=most - least + 1)
    table = KeyTable()
    dense = [sealed(table.intern(keys), np.int64) for keys in part.columns[1::3]]
    columns = (part.columns[0], dense[0], part.columns[2], part.columns[3], dense[1],
               part.columns[5])  # fmt: skip
    return part._replace(columns=columns, keys=table.size)
