"""Dense vectors that agree, found by tiles of matrix products restricted to what is read.

Hop by hop, for the tuples of a slice that can reach it: products propose, float64 decides, as in
the exact join (`engine.multiway.exact.tiles`). No tuple may have been dropped.
"""

from __future__ import annotations

import numpy as np

from engine.multiway.exact.compaction import by_row
from engine.multiway.exact.layout import TILES, Narrow
from engine.multiway.exact.plan import plan_of
from engine.multiway.exact.screen import screen_of
from engine.multiway.exact.tiles import ROWS, Finder
from engine.multiway.harvest.found import Found, Slice, begun
from engine.multiway.harvest.layout import WHOLE, Flags, Tuples
from engine.multiway.harvest.walk import run_bounds
from engine.multiway.harvest.walk_layout import WalkJoin
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams
from engine.runtime.blas import one_blas_thread
from engine.runtime.jit import Floats, Ints, jit

_FEWEST = 32
"""Rows of a tile."""
_NO_SHIFT: Ints = np.zeros(2, np.int64)


@jit
def _bounds_of(join: WalkJoin, tuples: Tuples, rows: Ints, first: int, last: int, other: int,
               out: Ints) -> None:  # fmt: skip
    """Write the positions of runs for tuples of one stream: (runs, 2, rows) int64."""
    bounds = np.zeros((last - first, 2), np.int64)
    for at in range(rows.size):
        k = rows[at]
        now = join.streams.ts[tuples.place[k]]
        for run in range(first, last):
            own = bounds[run - first]
            run_bounds(join, now, tuples.stream[k], other, run, own)
            out[run - first, 0, at], out[run - first, 1, at] = own[0], own[1]


def _is_taken(index: Ints, shred: Floats) -> Flags:
    """Return whether window shredding reads tuples, as `gpu_kernels.multiway.walk.taken` does."""
    read: Flags = (shred > 1.0) | (np.floor((index + 1) * shred) > np.floor(index * shred))
    return read


class TiledMatches:
    """Finds the matches of the tuples of a slice by hop.

    Parameters
    ----------
    streams : MultiStreams
    predicate : Predicate
        Of dense vectors, without codes that must be equal as well.
    """

    def __init__(self, streams: MultiStreams, predicate: Predicate) -> None:
        self._value = streams.attributes.value
        self._screen = screen_of(predicate, self._value)

    def ready(self, begin: int, last: int) -> None:
        """Do nothing: what is multiplied depends on the plans."""

    def found(
        self, join: WalkJoin, tuples: Tuples, cut: Slice, ready: None, known: Found | None = None
    ) -> Found:
        """Return the matches of the tuples of a slice, see `engine.multiway.harvest.found.Finder`.

        O(tuples of the runs * width), by BLAS.
        """
        del ready
        plans, first = join.plans, cut[0]
        found, rows, _ = begun(tuples, cut, plans.order.shape[0], known)
        rows.sort()
        places: list[Narrow | Ints] = [found.place]
        total = found.place.size
        whole = plans.runs[tuples.plan[rows], tuples.stream[rows]]
        rows = rows[(np.diff(whole, axis=1) > 0).all(axis=1)]
        finder = Finder(self._screen, self._value, _NO_SHIFT)
        with one_blas_thread():
            for hop in range(plans.order.shape[1]):
                pairs = self._pairs(finder, join, tuples, rows, hop, found)
                pairs[:, 0] = np.searchsorted(rows, pairs[:, 0])
                ends, own = np.zeros(rows.size + 1, np.int64), np.empty(len(pairs), np.int32)
                by_row(pairs, 0, ends, own)
                found.begin[hop, rows - first] = total + ends[:-1]
                found.end[hop, rows - first] = total + ends[1:]
                places.append(own)
                total += own.size
                rows = rows[ends[1:] > ends[:-1]]
        return found._replace(place=np.concatenate(places).astype(np.int64))

    def _pairs(
        self, finder: Finder, join: WalkJoin, tuples: Tuples, rows: Ints, hop: int,
        out: Found,
    ) -> Narrow:  # fmt: skip
        """Return which tuples, as numbered in the slice's, agree with which places at a hop.

        The runs of a tuple follow each other, and its places ascend within a run. How many tuples
        are read is written to `out`.
        """
        plans, found = join.plans, [np.zeros((0, 2), np.int32)]
        group = tuples.plan[rows] * plans.order.shape[0] + tuples.stream[rows]
        for own in np.unique(group).tolist():
            plan, stream = divmod(own, plans.order.shape[0])
            some = rows[group == own]
            first, last = plans.first[plan, stream] + plans.runs[plan, stream, hop : hop + 2]
            bounds = np.empty((last - first, 2, some.size), np.int64)
            _bounds_of(join, tuples, some, first, last, plans.order[stream, hop], bounds)
            place = tuples.place[some].astype(np.int32)
            for low, high in bounds:
                finder.clear()
                # beside what all of some rows have in reach, their own time is tried
                reach = int((high - low).max())
                together = min(ROWS, max(_FEWEST, reach // 4))
                part = tuples.shred[some] if hop == 0 else np.full(some.size, WHOLE)
                out.read[hop, some - out.first] += np.floor(
                    (high - low) * np.minimum(part, 1.0)
                ).astype(np.int64)
                columns = np.arange(low[0], max(low[0], high[-1]), dtype=np.int32)
                finder.blocks(place, columns, low, high, together)
                pairs = finder.pairs
                at = np.searchsorted(place, pairs[:, 0])
                taken = _is_taken(high[at] - 1 - pairs[:, 1], part[at])
                pairs = np.stack([some[at], pairs[:, 1]], axis=1)[taken]
                found.append(pairs.astype(np.int32))
        return np.concatenate(found)


def tiled(streams: MultiStreams, predicate: Predicate) -> TiledMatches | None:
    """Return what finds matches by tiles; None of a predicate that is none of dense vectors."""
    value = streams.attributes.value
    if predicate.equal or not len(value) or plan_of(predicate, value.shape[1]) != TILES:
        return None
    return TiledMatches(streams, predicate)
