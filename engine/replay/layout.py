"""The layout of a join memory: the records and arrays that the kernels share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.facts.key_links import KeyLinks
from engine.policies import Structure
from engine.runtime.jit import Floats, Ints, Records

CLEAN = -2
"""Not in the chain of changed keys."""

SLOT = np.dtype(
    [
        ("priority", "f8"),  # static: the priority; decay: V; rerank: the last priority
        ("importance", "f8"),
        ("m", "f8"),  # match count that the rank was last computed from; valued: 1 once matched
        ("ts", "i8"),
        ("row", "i8"),
        ("seq", "i8"),  # arrival number on its side; NONE where the slot is free
        ("key", "i4"),
        ("place", "i4"),  # among its key's residents: 4 * cell + position
        ("older", "i4"),  # chain of all residents in arrival order
        ("newer", "i4"),
        ("child", "i4"),  # pairing heap of one key's residents (keyed)
        ("sibling", "i4"),
        ("back", "i4"),
        ("at", "i4"),  # position in the arrival log (aged, valued)
    ],
    align=True,
)

KEY = np.dtype(
    [
        ("residents", "i4"),
        ("arrivals", "i4"),  # of this instant
        ("window", "i4"),  # unexpired tuples, retained or not; all so far (history estimator)
        ("head", "i4"),  # cell of the residents added last
        ("arrival", "i4"),  # first arrival of this instant, an index into the batch
        ("root", "i4"),  # of the pairing heap (keyed)
        ("dirty", "i4"),  # next of the keys to be updated in this instant; CLEAN: not among them
        ("unused", "i4"),  # so that the two sides of a key fill a cache line
    ],
    align=True,
)
"""One key on one side; the sides of key k lie at 2k and 2k + 1, together one cache line."""

NODE = np.dtype([("priority", "u8"), ("importance", "u8"), ("m", "u8"), ("seq", "u8")], align=True)
"""A rank in a tournament: ordinals, and an arrival number with its slot in the low bits."""

CELL = 4
"""Residents of one key in a cell, of which all but the first of a chain are full.

A cell is a cache line, seen as float64 and as int32: words 0 to 3 are the importances of its
residents; as int32, 8 to 11 are their slots and 12 is the next cell. As bytes, 52 to 55 are their
classes (one memory for both sides).
"""
CELL_FLOATS, CELL_INTS, CELL_SLOTS, CELL_NEXT = 8, 16, 8, 12
CELL_BYTES, CELL_CLASSES = 64, 52

LOG = np.dtype([("ts", "i8"), ("slot", "i4"), ("jump", "i4")], align=True)

# Counters of one side's memory, in `Memory.n`
(
    FREE, COUNT, OLDEST, NEWEST, PEAK, LOGGED, WINDOW_AT, SEQ, SHAKEN, DIRTY, CELLS, ENDED,
    SLOT_BITS,
) = range(13)  # fmt: skip
MEMORY_COUNTERS = 13


class Memory(NamedTuple):
    """One side's join memory."""

    slots: Records
    """(K,) SLOT."""
    free: NDArray[np.int32]
    """(K,) int32. Stack of free slots."""
    cells: Records
    """(8K,) float64."""
    links: NDArray[np.int32]
    """(16K,) int32. The same memory: one cell a resident at most."""
    classes: NDArray[np.uint8]
    """(64K,) uint8. The same memory."""
    by_class: Ints
    """(CLASSES,) int64. Residents by class at admission, where tuples of both sides compare by it,
    else empty."""
    value: Floats
    since: Ints
    """`value`, `since`: (4K,) float64 and int64. V and arrival time of the residents, by place
    (decay)."""
    tree: Records
    """(2K,) NODE. A tournament of the residents' ranks (`engine.replay.tournament`), else empty."""
    zeros: Records
    """(2K,) NODE. A tournament of those whose priority has decayed to 0 (decay), else empty."""
    log: Records
    """(2K + 64,) LOG. Residents in arrival order with gaps (aged, valued)."""
    minima: Ints
    """(n,) int64. Two trees of `range_minima`, of the values at the places of the log (valued)."""
    table: Floats
    """(n + 1,) float64. Priority of each age bucket (aged). (n,) float64: by state and bucket
    (valued)."""
    runs: Ints
    """(r, 6) int64. Of each run of age buckets in which priorities never rise with age, or always
    do, from that of the least priority: its first and last bucket, its youngest and eldest age, and
    where those are in the log, or NONE (aged). (6, n) int64: of `age_groups` (valued)."""
    n: Ints
    """(MEMORY_COUNTERS,) int64."""
    counted: KeyLinks | None = None
    """What its tuples join, where match counts are kept, to change those as residents go."""


class Arrivals(NamedTuple):
    """One side's batch, as the kernel reads it; all arrays (n,)."""

    ts: Ints
    row: Ints
    key: NDArray[np.int32]
    importance: Records
    draw: Floats
    m: Floats
    """Match count at arrival, filled by the kernel."""
    chain: NDArray[np.int32]
    """Next arrival of the same instant and key, filled by the kernel."""


class Window(NamedTuple):
    """Unexpired tuples of one side, retained or not, in arrival order: for the window estimator."""

    ts: Ints
    key: NDArray[np.int32]


class Outputs(NamedTuple):
    """Where output tuples are written; all arrays (capacity,), empty when only counting.

    `fact` is what joins the members, and empty in an equi-join.
    """

    left_row: Ints
    right_row: Ints
    left_seq: Ints
    right_seq: Ints
    ts: Ints
    importance: Floats
    fact: NDArray[np.int32]


class Tallies(NamedTuple):
    """Sums over the outputs; those by key have the left member's."""

    by_key: Ints
    importance_by_key: Floats
    bin_edges: Ints
    by_bin: Ints
    importance_by_bin: Floats


class ReplayRules(NamedTuple):
    """The settings of a replay, as scalars (contract, sections 2 and 3)."""

    structure: int
    estimator: int
    after_admission: bool
    combine: int
    ties_by_importance: bool
    emit: bool
    start_ts: int
    t0: int
    window_left: int
    window_right: int
    budget_left: int
    budget_right: int
    first_left: int
    first_right: int
    a: float
    b: float
    d: float
    alpha_left: float
    alpha_right: float
    beta_left: float
    beta_right: float
    initial_by_importance: bool


class CommonRules(ReplayRules):
    """The rules of any structure, for the kernel that serves all (`engine.replay.common`)."""

    CALLS = True
    __slots__ = ()


def _fixed(structure: Structure) -> type[ReplayRules]:
    """Make the type of the rules of a structure, which kernels are compiled for."""
    name = f"{structure.name.title()}Rules"
    made = type(name, (ReplayRules,), {"FIXED": {"structure": int(structure)}, "__slots__": ()})
    made.__module__ = __name__  # where the cache of compiled code finds it
    globals()[name] = made
    return made


RULES = {structure: _fixed(structure) for structure in Structure}
"""Types of rules by structure."""

MEMORY_ESTIMATOR, WINDOW_ESTIMATOR, HISTORY_ESTIMATOR = range(3)
ESTIMATORS = ("memory", "window", "history")
PROBES = ("before_admission", "after_admission")

# Counters of a replay, in `progress`
PHASE, LEFT_AT, RIGHT_AT, LEFT_END, RIGHT_END, CURSOR, NOW, WRITTEN, FOUND, BIN, INSTANT = range(11)
PROGRESS_COUNTERS = 11
