"""Dense ids for join attributes: a table from int64 codes to 0, 1, 2, ... .

Codes that lie close together, as small integers do, have a place each; others are hashed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.runtime.errors import SpecError
from engine.runtime.jit import Ints, jit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SMALLEST = 1 << 9
_SPARE = 4  # slots an id: an eighth of the look-ups then need a second slot, a quarter at 2
_LEAST = np.iinfo(np.int64).min
IDLE = 1 << 16
"""Ids are dropped only above this number."""
_SPREAD, _WIDEST = 16, 1 << 20
"""Places for codes: at most so many for each row of a batch, and in all."""


@jit
def slot_of(key: int, shift: np.uint64) -> np.int64:
    """Return the home slot of `key` in a table of ``2**(64 - shift)`` slots."""
    word = np.uint64(key)
    word ^= word >> np.uint64(32)
    return np.int64((word * _GOLDEN) >> shift)


@jit
def shift_of(slots: int) -> np.uint64:
    """Return the shift that leaves a slot number; `slots` is a power of two, at least 2."""
    shift = np.uint64(64)
    while slots > 1:
        slots >>= 1
        shift -= np.uint64(1)
    return shift


@jit
def _intern(
    keys: Ints, ids: NDArray[np.int32], begin: int, table: Ints, names: Ints, size: int
) -> tuple[int, int]:
    """Write the id of each key to `ids` from `begin` on, until `names` is full.

    `table` interleaves key and id + 1 (0: free), so that a look-up touches one cache line.

    Returns
    -------
    (position of the first key without an id, number of ids)
    """
    mask = len(table) // 2 - 1
    shift = shift_of(mask + 1)
    for i in range(begin, len(keys)):
        key = keys[i]
        slot = slot_of(key, shift)
        while table[2 * slot + 1] != 0 and table[2 * slot] != key:
            slot = (slot + 1) & mask
        found = table[2 * slot + 1]
        if found == 0:
            if size == len(names):
                return i, size
            names[size] = key
            size += 1
            found = size
            table[2 * slot] = key
            table[2 * slot + 1] = found
        ids[i] = found - 1
    return len(keys), size


@jit
def _intern_near(
    keys: Ints, ids: NDArray[np.int32], begin: int, places: NDArray[np.int32], low: int,
    names: Ints, size: int,
) -> tuple[int, int]:  # fmt: skip
    """Do what `_intern` does, where code ``low + i`` has its id + 1 (0: none) at place i.

    A code that has no place ends it too.
    """
    for i in range(begin, len(keys)):
        key = keys[i]
        place = np.uint64(key) - np.uint64(low)  # of codes below `low` it is beyond all
        if place >= np.uint64(len(places)):
            return i, size
        found = places[place]
        if found == 0:
            if size == len(names):
                return i, size
            names[size] = key
            size += 1
            found = np.int32(size)
            places[place] = found
        ids[i] = found - 1
    return len(keys), size


class KeyTable:
    """Give each distinct int64 code a dense int32 id, in order of first appearance.

    Codes in a range of at most 16 for each row of the largest batch, and 1,048,576, are found by
    their place in it: 4 bytes a code of the range. Others by open addressing with linear probing,
    at most a quarter full: 64 to 128 bytes a key. The codes take 8 to 16 more. Not for use by
    several threads at once.

    Examples
    --------
    >>> import numpy as np
    >>> table = KeyTable()
    >>> table.intern(np.array([70, -5, 70, 9]))
    array([0, 1, 0, 2], dtype=int32)
    >>> table.keep(np.array([True, False, True]))
    array([ 0, -1,  1])
    >>> table.keys
    array([70,  9])
    """

    def __init__(self) -> None:
        self._size = 0
        self._batch = 0
        self._names = np.empty(_SMALLEST, np.int64)
        self._table = np.zeros(0, np.int64)
        self._places, self._low = np.zeros(0, np.int32), 0

    @property
    def size(self) -> int:
        """Number of ids given and not dropped."""
        return self._size

    @property
    def keys(self) -> Ints:
        """Code of each id, (size,) int64; a read-only view, valid until the table changes."""
        view = self._names[: self._size]
        view.flags.writeable = False
        return view

    def intern(self, keys: Ints) -> NDArray[np.int32]:
        """Return the id of every key, giving new ones to keys not seen before.

        Parameters
        ----------
        keys : (n,) int64
            Canonical join attributes.

        Returns
        -------
        (n,) int32
            ``self.keys[result]`` equals `keys`. Amortised O(n).
        """
        keys = np.ascontiguousarray(keys, np.int64).view()
        keys.flags.writeable = False
        ids = np.empty(len(keys), np.int32)
        self._batch = max(self._batch, len(keys))
        done = 0
        while True:
            if self._table.size:
                done, self._size = _intern(keys, ids, done, self._table, self._names, self._size)
            else:
                done, self._size = _intern_near(
                    keys, ids, done, self._places, self._low, self._names, self._size
                )
            if done == len(keys):
                return ids
            full = self._size == len(self._names)
            self._rebuild(self.keys, (1 + full) * len(self._names), keys[done:])

    def keep(self, mask: NDArray[np.bool_]) -> Ints:
        """Drop the ids whose `mask` is False and renumber the rest densely, in the same order.

        Parameters
        ----------
        mask : (size,) bool

        Returns
        -------
        (size,) int64
            New id of each old one, -1 for those dropped. O(size).

        Raises
        ------
        SpecError
            `mask` has not one entry an id.
        """
        mask = np.asarray(mask, np.bool_)
        if mask.shape != (self._size,):
            raise SpecError(f"mask of shape {mask.shape} must have one entry an id, {self._size}")
        old_to_new = np.where(mask, np.cumsum(mask) - 1, -1)
        kept = self.keys[mask]
        self._rebuild(kept, max(_SMALLEST, 1 << max(len(kept) - 1, 0).bit_length()))
        return old_to_new

    def _rebuild(self, kept: Ints, capacity: int, coming: Ints | None = None) -> None:
        """Lay out a table for `capacity` ids and give `kept` the ids 0, 1, ... .

        Where codes lie close together, those of `coming` have places too. O(ids + coming), and the
        range of the codes.
        """
        names = np.empty(capacity, np.int64)
        names[: len(kept)] = kept
        self._names, self._size = names, len(kept)
        codes = kept if coming is None else np.concatenate([kept, coming])
        first, last = (int(codes.min()), int(codes.max())) if len(codes) else (0, -1)
        most = min(_WIDEST, _SPREAD * self._batch)
        if last - first < most:
            self._place(kept, first, last, most)
            return
        self._places = np.zeros(0, np.int32)
        self._table = np.zeros(2 * _SPARE * capacity, np.int64)
        kept = kept.view()
        kept.flags.writeable = False
        _intern(kept, np.empty(len(kept), np.int32), 0, self._table, names, 0)

    def _place(self, kept: Ints, first: int, last: int, most: int) -> None:
        """Give the codes from `first` to `last` places, and `kept` the ids 0, 1, ... .

        Beyond an end that codes have passed there are as many places more as there were, as long
        as that makes no more than `most`: codes that rise do not have it made anew every time.
        """
        spare = len(self._places)
        low = first - spare * (first < self._low)
        high = last + spare * (last >= self._low + spare)
        self._low = max(low, last + 1 - most, _LEAST)
        self._places = np.zeros(min(high + 1 - self._low, most), np.int32)
        self._places[kept - self._low] = np.arange(1, len(kept) + 1, dtype=np.int32)
        self._table = np.zeros(0, np.int64)


def first_places(codes: Ints) -> Ints:
    """Return where the code of each place is first: (n,) int64. O(n).

    Parameters
    ----------
    codes : (n,) int64

    Examples
    --------
    >>> first_places(np.array([7, 9, 7, 9])).tolist()
    [0, 1, 0, 1]
    """
    ids = KeyTable().intern(codes)
    new = np.ones(ids.size, np.bool_)
    new[1:] = ids[1:] > np.maximum.accumulate(ids)[:-1]
    return np.flatnonzero(new)[ids]
