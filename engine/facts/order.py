"""Sorting rows by several columns of integers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.facts.relation import BEFORE

_WORD = 64


def order_by(columns: Sequence[NDArray[np.int64]], size: int) -> NDArray[np.int64]:
    """Return the stable order of rows by columns, the first counts most.

    Columns of few values share a word, so that most relations are sorted once.

    Parameters
    ----------
    columns : sequence of (n,) int64
    size : int
        n.

    Returns
    -------
    (n,) int64
        O(n log n) for every 64 bits that the ranges of the columns need.

    Examples
    --------
    >>> order_by([np.array([2, 1, 2, 1]), np.array([5, 7, BEFORE, 7])], 4)
    array([1, 3, 2, 0])
    """
    order = None
    for word in reversed(list(_words(columns))):
        order = (
            np.argsort(word, kind="stable")
            if order is None
            else order[np.argsort(word[order], kind="stable")]
        )
    return np.arange(size) if order is None else order


def _words(columns: Iterable[NDArray[np.int64]]) -> Iterable[NDArray[np.uint64]]:
    """Yield the columns packed into as few words as their ranges allow, in their order."""
    word: NDArray[np.uint64] | None = None
    free = 0
    for column in columns:
        ranks, bits = _ranks(column)
        if bits == 0:
            continue
        if word is not None and bits <= free:
            word = (word << np.uint64(bits)) | ranks
            free -= bits
            continue
        if word is not None:
            yield word
        word, free = ranks, _WORD - bits
    if word is not None:
        yield word


def _ranks(column: NDArray[np.int64]) -> tuple[NDArray[np.uint64], int]:
    """Return a column less its least value, and the bits of that; `BEFORE` is next to the rest."""
    if column.size == 0:
        return column.view(np.uint64), 0
    low, high = int(column.min()), int(column.max())
    if low == BEFORE and high != BEFORE:
        before = column == BEFORE
        low = int(column.min(where=~before, initial=high)) - 1
        ranks = column.view(np.uint64) - np.uint64(low % 2**_WORD)
        ranks[before] = 0
    else:
        ranks = column.view(np.uint64) - np.uint64(low % 2**_WORD)
    return ranks, (high - low).bit_length()
