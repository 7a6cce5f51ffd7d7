"""What a lane's replay works on: join memories, outputs, and batches cut where tables change."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from engine.policies import Structure, age
from engine.replay import age_buckets, aged, layout
from engine.replay.layout import Arrivals, Memory, Outputs, Window
from engine.runtime.aligned import aligned
from engine.runtime.jit import NONE, Floats, Ints, Records
from engine.runtime.ordinals import LAST
from engine.runtime.randomness import uniforms
from engine.runtime.streams import LEFT, RIGHT, StreamBatch
from engine.value_model.estimate import Valued


def join_memory(
    budget: int,
    structure: Structure,
    curve: Floats | None,
    window: int,
    buckets: int = 1,
    *,
    classes: int = 0,
) -> Memory:
    """Return an empty join memory of `budget` tuples, with what its structure needs.

    Parameters
    ----------
    budget : int
    structure : Structure
    curve : (n,) float64 or None
        For AGED.
    window : int
        W in ticks; of the curve.
    buckets : int
        Age buckets, for VALUED.
    classes : int
        By which residents are counted.
    """
    table, runs = _by_age(b"" if curve is None else curve.tobytes(), window)
    ordered, extra = structure in (Structure.AGED, Structure.VALUED), 2 * budget + 64
    logged, minima = extra if ordered else 0, np.zeros(0, np.int64)
    runs = runs.copy()  # each memory moves its own places
    if structure is Structure.VALUED:
        table, runs = age_buckets.no_groups(buckets)
        logged, minima = age_buckets.no_minima(budget)
    counters = np.zeros(layout.MEMORY_COUNTERS, np.int64)
    counters[layout.FREE] = budget
    counters[layout.SLOT_BITS] = max(budget - 1, 0).bit_length()
    counters[[layout.OLDEST, layout.NEWEST, layout.DIRTY]] = NONE
    slots = np.zeros(budget, layout.SLOT)
    slots["seq"] = NONE
    cells = aligned(layout.CELL_FLOATS * budget)
    links = cells.view(np.int32)
    links[layout.CELL_NEXT :: layout.CELL_INTS] = np.arange(1, budget + 1)
    links[layout.CELL_NEXT :: layout.CELL_INTS][budget - 1 :] = NONE
    decays = layout.CELL * budget if structure is Structure.DECAY else 0
    return Memory(
        slots=slots,
        cells=cells,
        links=links,
        classes=cells.view(np.uint8),
        by_class=np.zeros(classes, np.int64),
        value=np.zeros(decays),
        since=np.zeros(decays, np.int64),
        free=np.arange(budget, dtype=np.int32)[::-1].copy(),
        tree=_empty_tree(0 if ordered else budget),
        zeros=_empty_tree(budget if structure is Structure.DECAY else 0),
        log=np.zeros(logged, layout.LOG),
        minima=minima,
        table=table,
        runs=runs,
        n=counters,
    )


def _empty_tree(budget: int) -> Records:
    """Return a tournament of `budget` slots without a resident: (2 * budget,) NODE."""
    words = aligned(2 * budget * layout.NODE.itemsize // 8).view(np.uint64)
    words[:] = LAST
    return words.view(layout.NODE)


@lru_cache(maxsize=8)
def _by_age(curve: bytes, window: int) -> tuple[Floats, Ints]:
    """Return AGE's priorities by bucket, and the runs of buckets that `aged` searches."""
    table = age.priorities(np.frombuffer(curve) if curve else np.zeros(1))
    rises = table[1:] > table[:-1]
    runs: list[tuple[int, ...]] = []
    first = 0
    while first < table.size:
        last = first
        while last < rises.size and rises[last] == rises[first]:
            last += 1
        runs.append((first, last, *aged.ages(first, last, window, rises.size), NONE, NONE))
        first = last + 1
    found = np.array(runs, np.int64)
    least = np.minimum(table[found[:, 0]], table[found[:, 1]])
    return table, found[np.argsort(least, kind="stable")]


PLAIN = np.dtype((np.void, layout.KEY.itemsize))
"""The record of a key as bytes, which are copied faster."""
_NO_KEY = np.zeros(1, layout.KEY)
for _name in ("head", "arrival", "root"):
    _NO_KEY[_name] = NONE
_NO_KEY["dirty"] = layout.CLEAN


def empty_keys(size: int) -> Records:
    """Return the records of keys without a tuple: (2 * size,) KEY."""
    found: Records = aligned(2 * size * layout.KEY.itemsize // 8).view(layout.KEY)
    found.view(PLAIN)[:] = _NO_KEY.view(PLAIN)
    return found


class SlidingWindow:
    """Unexpired tuples of one side in arrival order, in arrays that grow and are compacted."""

    def __init__(self) -> None:
        self.ts = np.empty(0, np.int64)
        self.key = np.empty(0, np.int32)

    @property
    def none(self) -> Window:
        """No tuples, for the estimators that do not look."""
        return Window(self.ts[:0], self.key[:0])

    def append(self, ts: Ints, key: NDArray[np.int32], memory: Memory) -> Window:
        """Add arrivals, drop what has expired, and return what the kernel reads."""
        begin = int(memory.n[layout.WINDOW_AT])
        memory.n[layout.WINDOW_AT] = 0
        self.ts = np.concatenate([self.ts[begin:], ts])
        self.key = np.concatenate([self.key[begin:], key])
        return Window(self.ts, self.key)


def empty_outputs(capacity: int, *, facts: bool) -> Outputs:
    """Return output arrays for `capacity` tuples, with room for their facts or not."""
    rows = [np.empty(capacity, np.int64) for _ in range(5)]
    fact = np.empty(capacity if facts else 0, np.int32)
    return Outputs(rows[0], rows[1], rows[2], rows[3], rows[4], np.empty(capacity), fact)


class Ready(NamedTuple):
    """What is computed of a batch before its replay, or once for several."""

    draws: tuple[Floats, Floats] | None = None
    """(left, right) or None. The batch's uniforms, for a policy that draws; the priorities, for one
    that samples."""
    windows: tuple[Window, ...] = ()
    """(left, right) or (). For the window estimator: what was unexpired at the last instant before
    the batch, and the batch; from the first push on."""
    valued: Valued | None = None
    """For a policy that ranks by the tuples' own values."""


def drawn(purpose: int, seed: int, left: StreamBatch, right: StreamBatch) -> tuple[Floats, Floats]:
    """Return the uniforms of both sides' rows."""
    return uniforms(seed, purpose, LEFT, left.row), uniforms(seed, purpose, RIGHT, right.row)


def parts_of(
    arrivals: tuple[Arrivals, Arrivals], valued: Valued | None
) -> list[tuple[Arrivals, Arrivals, Floats | None]]:
    """Cut a batch where its tables change: arrivals of both sides, and the table or None."""
    left, right = arrivals
    if valued is None:
        return [(left, right, None)]
    i = j = 0
    found: list[tuple[Arrivals, Arrivals, Floats | None]] = []
    for part in valued.parts:
        cut = (_rows(left, i, part.left), _rows(right, j, part.right), part.table)
        i, j = part.left, part.right
        if cut[0].ts.size or cut[1].ts.size:
            found.append(cut)
    return found


def _rows(arrivals: Arrivals, begin: int, end: int) -> Arrivals:
    cut: list[Any] = [column[begin:end] for column in arrivals]
    return Arrivals(*cut)


def set_tables(memories: tuple[Memory, Memory], table: Floats | None) -> None:
    """Make both memories rank by a table."""
    if table is not None:
        for memory, own in zip(memories, table, strict=True):
            age_buckets.rank_by(memory, own.reshape(-1))
