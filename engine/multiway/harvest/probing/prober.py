"""What probes batches of tuples, and what those of the CPU share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from sys import getrefcount
from threading import Lock
from typing import NamedTuple, Protocol

import numpy as np

from engine.multiway.harvest.layout import Admitted, HarvestRules, ProbeBatch, Probed, ReadPlan
from engine.multiway.predicate import Predicate
from engine.multiway.streams import MultiStreams
from engine.runtime.jit import Floats, Ints

NEXT, STARTED, WRITTEN = range(3)
"""Of `progress`: the tuple to be written next, whether its walk has begun, outputs in the chunk."""
CHUNK = 1 << 17
"""Outputs that are handed out at once."""
_SLICE = 256
"""Fewest tuples of a batch for which a thread is used."""


class OutputBatch(NamedTuple):
    """A batch of outputs."""

    members: Ints
    """(n, m) int64. Places, by stream."""
    importance: Floats
    """(n,) float64."""


class Prober(Protocol):
    """Probes batches of tuples, on the CPU's threads or on a GPU."""

    def count(self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch) -> Probed:
        """Return the results of the walks of a batch."""

    def outputs(
        self, admitted: Admitted, plan: ReadPlan, batch: ProbeBatch, wanted: Ints
    ) -> Iterator[OutputBatch]:
        """Yield the outputs of the wanted tuples of a batch, in their order."""


def no_results(tuples: int, hops: int) -> Probed:
    """Return empty results of the walks of some tuples."""
    return Probed(
        np.zeros((tuples, hops), np.int64),
        np.zeros((tuples, hops), np.int64),
        np.zeros(tuples, np.int64),
        np.zeros(tuples),
    )


def room_for(
    rows: int, sides: int, constant: float, same: Floats | None = None
) -> tuple[Ints, Floats]:
    """Return room for the members of outputs and their importance, which is that of all or NaN."""
    return np.empty((rows, sides), np.int64), np.full(rows, constant) if same is None else same


class OutputRooms:
    """Room for batches of outputs, given again once nobody holds what was written there.

    Fresh memory costs as much as what is written to it: the system clears it page by page.

    Parameters
    ----------
    sides : int
        m.
    constant : float
        Importance of every output, of which all rooms have one array; NaN if it differs.
    most : int
        Rooms that are kept.
    """

    def __init__(self, sides: int, constant: float, most: int) -> None:
        self._sides, self._constant, self._most = sides, constant, most
        self._lock = Lock()
        self._rooms: list[tuple[Ints, Floats]] = []
        self._unheld: list[int] = []

    def take(self, rows: int) -> tuple[Ints, Floats]:
        """Return room for the members and the importance of so many outputs."""
        with self._lock:
            alike = [room for room in self._rooms if room[1].size == rows]
            for room in alike:
                if self._holders(room) == self._unheld:
                    return room
            same = alike[0][1] if alike and self._constant >= 0.0 else None
            room = room_for(rows, self._sides, self._constant, same)
            self._unheld = self._holders(room)
            self._rooms = [*self._rooms, room][-self._most :]
        return room

    def _holders(self, room: tuple[Ints, Floats]) -> list[int]:
        members, importance = room
        held = [getrefcount(members)]
        return held if self._constant >= 0.0 else [*held, getrefcount(importance)]


MakeProber = Callable[[MultiStreams, HarvestRules, Predicate, ReadPlan], Prober]


class Slices:
    """A thread pool that processes slices of a batch."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None

    def work_off(self, size: int, work: Callable[[int, int], None]) -> None:
        """Call ``work(begin, end)`` for slices that are all of `size` tuples together."""
        parts = min(4 * self._threads, size // _SLICE)
        if self._pool is None or parts < 2:
            work(0, size)
            return
        edges = np.linspace(0, size, parts + 1).astype(np.int64).tolist()
        list(self._pool.map(work, edges[:-1], edges[1:]))


def in_chunks(hops: int, write: Callable[[Ints, Floats, Ints], bool]) -> Iterator[OutputBatch]:
    """Yield what ``write(members, importance, progress)`` writes, until it returns True."""
    progress = np.zeros(3, np.int64)
    done = False
    while not done:
        members, importance = room_for(CHUNK, hops + 1, np.nan)
        progress[WRITTEN] = 0
        done = write(members, importance, progress)
        if progress[WRITTEN]:
            yield OutputBatch(members[: progress[WRITTEN]], importance[: progress[WRITTEN]])
