"""The memory of an exact multi-way join of one slice of time.

Within a slice, tuples are identified by a *number*: the streams one after the other, each from the
first tuple that the slice can need, in arrival order.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Ints, jit
from gpu_kernels.multiway.walk import importance_of

Narrow: TypeAlias = NDArray[np.int32]

EQUI, RANKS, CELLS, ITEMS, SCAN = range(5)

LOW, END, GREATER = range(3)
"""Of stretches: where they begin, end, and where they turn greater than the current tuple."""

DONE, SKIP, WRITTEN, BIN, STATES = range(5)
"""Of `progress`: whether the slice is done; outputs of the current tuple that are written; rows
of the output written; the bin of the edges that time is in; how many these are."""

OUTPUTS, HIGH, REST, SUMS = range(4)
"""Of `sums`: outputs in float64; importance, and what rounding lost of it; how many these are."""


class ExactRules(NamedTuple):
    """The settings of a join.

    Attributes
    ----------
    plan : int
        EQUI, RANKS, CELLS, ITEMS or SCAN.
    clique : bool
        Whether members other than the latest must meet each other too, by comparison.
    combine : int
    constant : float
        Importance of every output; NaN if it differs.
    emit : bool
        Whether outputs are written, or counted.
    window : (m,) int64
    by_rows : (m,) bool
    order : (m, m - 1) int64
        Join orders; no columns: by number of candidates.
    condition : Condition
    """

    plan: int
    clique: bool
    combine: int
    constant: float
    emit: bool
    window: Ints
    by_rows: NDArray[np.bool_]
    order: Ints
    condition: Any


class SlicePart(NamedTuple):
    """A slice of time.

    Attributes
    ----------
    first : (m + 1,) int64
        Where each stream's numbers begin.
    shift : (m,) int64
        Place of a tuple minus its number.
    own : (m,) int64
        The first number of each stream whose outputs are the slice's.
    """

    first: Ints
    shift: Ints
    own: Ints


class Lists(NamedTuple):
    """Lists of tuples by key: everyone's entries in arrival order, the live ones in the middle.

    Attributes
    ----------
    keys : int
    key : (k,) int32
        Key of each tuple, by place; of items, of each item.
    ends : (keys * m * 2,) int32
        The live entries of a key's tuples of a stream are from the first of two on to the other.
    number : (entries + m,) int32
        The tuple of an entry.
    worth : (entries + m,) float64
        Its importance (equi), or weight (items).
    value : (d, entries) float64
        Its attributes (cells).
    near : (keys, n) int32
        The cells that can hold partners of a cell's tuples; -1 for none.
    sum : (keys * m, 2) float64
        Importance of the live entries and what rounding lost of it (equi).
    """

    keys: int
    key: Narrow
    ends: Narrow
    number: Narrow
    worth: Floats
    value: Floats
    near: Narrow
    sum: Floats


class Ranks(NamedTuple):
    """Tuples of every stream in order of value, and which of them are live.

    Attributes
    ----------
    rank : (n,) int32
        Bit of each number. The bits of a stream begin at a new block.
    number : (bits,) int32
    span : (bits, m - 1, 2 or 3) int32
        For each bit and other stream the bits of partners: the first, the end, and where outputs
        are found by their least member the first that is greater in order of (value, stream).
    words : (bits / 64,) uint64
    blocks : (bits / 1024,) int32
        Bits set in each 16 words.
    worth : (bits,) float64
        Importance of the live; 0 for the others.
    """

    rank: Narrow
    number: Narrow
    span: Narrow
    words: NDArray[np.uint64]
    blocks: Narrow
    worth: Floats


class Candidates(NamedTuple):
    """Candidates and combinations of the current tuple.

    Attributes
    ----------
    cursor, oldest : (m,) int64
        The next number of each stream to arrive; the oldest live one.
    item : (pool,) int32
        Numbers of candidates.
    worth, sorted : (pool,) float64
        Their importance; a copy to sort.
    begin, size : (m, m) int64
        Lists of candidates in the pool: by depth of the enumeration and stream.
    box_begin, box_size : (m,) int64
        The lists whose combinations are outputs, all of them.
    counter : (m,) int64
        A combination.
    order, position, top : (m,) int64
        Of the enumeration: the streams in join order; the next candidate, and the end of the pool
        in use, at each depth.
    product : (n,) float64
        Inner products with the current tuple (items).
    """

    cursor: Ints
    oldest: Ints
    item: Narrow
    worth: Floats
    sorted: Floats
    begin: Ints
    size: Ints
    box_begin: Ints
    box_size: Ints
    counter: Ints
    order: Ints
    position: Ints
    top: Ints
    product: Floats


class ExactTallies(NamedTuple):
    """Totals of a slice.

    Attributes
    ----------
    edges : (b + 1,) int64
    outputs, importance : (b,)
        By bin.
    progress : (4,) int64
    total : (1,) int64
        Outputs.
    sums : (3,) float64
    """

    edges: Ints
    outputs: Ints
    importance: Floats
    progress: Ints
    total: Ints
    sums: Floats


class OutputChunk(NamedTuple):
    """Outputs of a multi-way join.

    Attributes
    ----------
    members : (n, m) int64
        Places of their tuples, by stream.
    ts : (n,) int64
        Of the latest member.
    importance : (n,) float64
    """

    members: Ints
    ts: Ints
    importance: Floats


@jit
def weigh(
    ts: Ints, importance: Floats, combine: int, members: Ints, out_ts: Ints, out: Floats
) -> None:
    """Write time and importance of outputs, in the streams' order."""
    sides = members.shape[1]
    for row in range(members.shape[0]):
        latest = ts[members[row, 0]]
        for side in range(1, sides):
            latest = max(latest, ts[members[row, side]])
        out_ts[row] = latest
        out[row] = importance_of(combine, importance, members[row], sides)


def weighed_chunk(streams: MultiStreams, combine: int, members: Ints) -> OutputChunk:
    """Return outputs with their time and importance. O(their members)."""
    out_ts, out = np.empty(len(members), np.int64), np.empty(len(members))
    weigh(streams.ts, streams.importance, combine, members, out_ts, out)
    return OutputChunk(members, out_ts, out)
