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

EQUI, RANKS, CELLS, ITEMS, SCAN, TILES = range(6)

LOW, END, GREATER = range(3)
"""Of stretches: where they begin, end, and where they turn greater than the current tuple."""

DONE, SKIP, WRITTEN, BIN, STATES = range(5)
"""Of `progress`: whether the slice is done; outputs of the current tuple that are written; rows
of the output written; the bin of the edges that time is in; how many these are."""

OUTPUTS, HIGH, REST, SUMS = range(4)
"""Of `sums`: outputs in float64; importance, and what rounding lost of it; how many these are."""


class ExactRules(NamedTuple):
    """The settings of a join."""

    plan: int
    """EQUI, RANKS, CELLS, ITEMS, SCAN or TILES."""
    clique: bool
    """Whether members other than the latest must meet each other too, by comparison."""
    combine: int
    constant: float
    """Importance of every output; NaN if it differs."""
    emit: bool
    """Whether outputs are written, or counted."""
    window: Ints
    """(m,) int64."""
    by_rows: NDArray[np.bool_]
    """(m,) bool."""
    order: Ints
    """(m, m - 1) int64. Join orders; no columns: by number of candidates."""
    condition: Any
    """Condition."""


class SlicePart(NamedTuple):
    """A slice of time."""

    first: Ints
    """(m + 1,) int64. Where each stream's numbers begin."""
    shift: Ints
    """(m,) int64. Place of a tuple minus its number."""
    own: Ints
    """(m,) int64. The first number of each stream whose outputs are the slice's."""


class Lists(NamedTuple):
    """Lists of tuples by key: entries in arrival order, the live ones in the middle.

    Of tiles, a list for every tuple as key: what it matches of those live at its arrival.
    """

    keys: int
    key: Narrow
    """(k,) int32. Key of each tuple, by place; of items, of each item."""
    ends: Narrow
    """(keys * m * 2,) int32. The live entries of a key's tuples of a stream are from the first of
    two on to the other."""
    number: Narrow
    """(entries + m,) int32. The tuple of an entry."""
    importance: Floats
    """(entries + m,) float64. Its importance (equi, tiles), or weight (items)."""
    value: Floats
    """(d, entries) float64. Its attributes (cells)."""
    near: Narrow
    """(keys, n) int32. The cells that can hold partners of a cell's tuples; -1 for none."""
    sum: Floats
    """(keys * m, 2) float64. Importance of the live entries and what rounding lost of it (equi)."""


class Ranks(NamedTuple):
    """Tuples of every stream in order of value, and which of them are live."""

    rank: Narrow
    """(n,) int32. Bit of each number. The bits of a stream begin at a new block."""
    number: Narrow
    """(bits,) int32."""
    span: Narrow
    """(bits, m - 1, 2 or 3) int32. For each bit and other stream the bits of partners: the first,
    the end, and where outputs are found by their least member the first that is greater in order of
    (value, stream)."""
    words: NDArray[np.uint64]
    """(bits / 64,) uint64."""
    blocks: Narrow
    """(bits / 1024,) int32. Bits set in each 16 words."""
    importance: Floats
    """(bits,) float64. Importance of the live; 0 for the others."""


class Candidates(NamedTuple):
    """Candidates and combinations of the current tuple."""

    cursor: Ints
    oldest: Ints
    """`cursor`, `oldest`: (m,) int64. The next number of each stream to arrive; the oldest live
    one."""
    item: Narrow
    """(pool,) int32. Numbers of candidates."""
    importance: Floats
    sorted: Floats
    """`importance`, `sorted`: (pool,) float64. Their importance; a copy to sort."""
    begin: Ints
    size: Ints
    """`begin`, `size`: (m, m) int64. Lists of candidates in the pool: by depth of the enumeration
    and stream."""
    box_begin: Ints
    box_size: Ints
    """`box_begin`, `box_size`: (m,) int64. The lists whose combinations are outputs, all of
    them."""
    counter: Ints
    """(m,) int64. A combination."""
    order: Ints
    position: Ints
    top: Ints
    """`order`, `position`, `top`: (m,) int64. Of the enumeration: the streams in join order; the
    next candidate, and the end of the pool in use, at each depth."""
    product: Floats
    """(n,) float64. Inner products with the current tuple (items)."""


class ExactTallies(NamedTuple):
    """Totals of a slice."""

    edges: Ints
    """(b + 1,) int64."""
    outputs: Ints
    importance: Floats
    """`outputs`, `importance`: (b,). By bin."""
    progress: Ints
    """(4,) int64."""
    total: Ints
    """(1,) int64. Outputs."""
    sums: Floats
    """(3,) float64."""


class OutputChunk(NamedTuple):
    """Outputs of a multi-way join."""

    members: Ints
    """(n, m) int64. Places of their tuples, by stream."""
    ts: Ints
    """(n,) int64. Of the latest member."""
    importance: Floats
    """(n,) float64."""


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
