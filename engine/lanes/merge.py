"""Merging sorted pieces of files in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.lanes.runfiles import Files
from engine.lanes.runs import Piece
from engine.runtime.jit import Ints


class Place(NamedTuple):
    """A place in the order of a merge."""

    major: int
    minor: int


class _Cursor:
    """Walks one piece, holding a block at a time."""

    def __init__(self, piece: Piece, order: tuple[str, str], files: Files) -> None:
        self._piece = piece
        self._order = order
        self._files = files
        self._at = piece.start
        self.ended = False
        self._load()

    def _load(self) -> None:
        if self._at == self._piece.stop:
            self.ended = True
            return
        self._block = self._files.rows(self._piece, self._at)
        self._keys: list[Ints] = [self._block.column(name).to_numpy() for name in self._order]
        self._at += self._block.num_rows

    def edge(self) -> Place:
        """Return the place of the last row of the block."""
        return Place(int(self._keys[0][-1]), int(self._keys[1][-1]))

    def take(self, bound: Place) -> pa.Table:
        """Remove and return the rows of the block up to and at `bound`."""
        major, minor = self._keys
        low, high = (int(np.searchsorted(major, bound.major, side)) for side in ("left", "right"))
        stop = low + int(np.searchsorted(minor[low:high], bound.minor, "right"))
        taken = self._block.slice(0, stop)
        self._block = self._block.slice(stop)
        self._keys = [major[stop:], minor[stop:]]
        if not self._block.num_rows:
            self._load()
        return taken


def merged(pieces: Sequence[Piece], order: tuple[str, str], files: Files) -> Iterator[pa.Table]:
    """Yield the rows of sorted pieces in ascending order of two int64 columns.

    Each round emits all rows up to the smallest last place of the open blocks, so that no row to
    come is before any that was emitted. A piece is opened when the first of its rows can be due:
    pieces that do not overlap are only passed on, one after the other.

    Parameters
    ----------
    pieces : sequence of Piece
        In such an order that rows equal in the first column rise in the second from piece to piece.
    order : (str, str)
        Columns by which each piece is sorted.
    files : Files
        Reads them.

    Yields
    ------
    pyarrow.Table
        Never empty. Memory: one block of each piece that is open; O(n log pieces) time.
    """
    filled = [piece for piece in pieces if piece.stop > piece.start]
    firsts = [_first(files.rows(piece, piece.start), order) for piece in filled]
    waiting = sorted(((first, i) for i, first in enumerate(firsts)), reverse=True)
    live: dict[int, _Cursor] = {}
    while live or waiting:
        while waiting and (not live or waiting[-1][0] <= min(c.edge() for c in live.values())):
            number = waiting.pop()[1]
            live[number] = _Cursor(filled[number], order, files)
        bound = min(cursor.edge() for cursor in live.values())
        parts = [live[number].take(bound) for number in sorted(live)]
        live = {number: cursor for number, cursor in live.items() if not cursor.ended}
        yield _in_order([part for part in parts if part.num_rows], order[0])


def _first(rows: pa.Table, order: tuple[str, str]) -> Place:
    return Place(*(rows.column(name)[0].as_py() for name in order))


def _in_order(parts: list[pa.Table], major: str) -> pa.Table:
    if len(parts) == 1:
        return parts[0]
    table = pa.concat_tables(parts)
    places = table.column(major).to_numpy()
    if (places[1:] >= places[:-1]).all():
        return table
    return table.take(pa.array(np.argsort(places, kind="stable")))
