"""Dense ids for join attributes: a hash table from int64 codes to 0, 1, 2, ... ."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from engine.errors import SpecError
from engine.jit import jit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_SMALLEST = 1 << 9
_SPARE = 4  # slots an id: an eighth of the look-ups then need a second slot, a quarter at 2


def _slot_of(key: int, shift: np.uint64) -> np.int64:
    """Return the home slot of `key` in a table of ``2**(64 - shift)`` slots."""
    word = np.uint64(key)
    word ^= word >> np.uint64(32)
    return np.int64((word * _GOLDEN) >> shift)


slot_of = jit(_slot_of)


def _shift_of(slots: int) -> np.uint64:
    """Return the shift that leaves a slot number; `slots` is a power of two, at least 2."""
    shift = np.uint64(64)
    while slots > 1:
        slots >>= 1
        shift -= np.uint64(1)
    return shift


shift_of = jit(_shift_of)


def _intern(
    keys: NDArray[np.int64],
    ids: NDArray[np.int32],
    begin: int,
    table: NDArray[np.int64],
    names: NDArray[np.int64],
    size: int,
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


_intern_jit = jit(_intern)


class KeyTable:
    """Give each distinct int64 code a dense int32 id, in order of first appearance.

    Open addressing with linear probing, at most a quarter full: 64 to 128 bytes a key for the table
    and 8 to 16 for the codes. Not for use by several threads at once.

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
        self._names = np.empty(_SMALLEST, np.int64)
        self._table = np.zeros(2 * _SPARE * _SMALLEST, np.int64)

    @property
    def size(self) -> int:
        """Number of ids given and not dropped."""
        return self._size

    @property
    def keys(self) -> NDArray[np.int64]:
        """Code of each id, (size,) int64; a read-only view, valid until the table changes."""
        view = self._names[: self._size]
        view.flags.writeable = False
        return view

    def intern(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
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
        done = 0
        while True:
            done, self._size = _intern_jit(keys, ids, done, self._table, self._names, self._size)
            if done == len(keys):
                return ids
            self._rebuild(self.keys, 2 * len(self._names))

    def keep(self, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
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

    def _rebuild(self, kept: NDArray[np.int64], capacity: int) -> None:
        """Lay out an empty table for `capacity` ids and give `kept` the ids 0, 1, ... ."""
        names = np.empty(capacity, np.int64)
        table = np.zeros(2 * _SPARE * capacity, np.int64)
        ids = np.empty(len(kept), np.int32)
        kept = kept.view()
        kept.flags.writeable = False
        _, self._size = _intern_jit(kept, ids, 0, table, names, 0)
        self._names, self._table = names, table
