"""Sampled outputs on their way through the compiled sums, and the room that these need."""

from __future__ import annotations

from collections import deque
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engine.runtime.jit import Ints
from engine.runtime.key_table import KeyTable
from engine.sampling.aggregates import kernels, layout
from engine.sampling.aggregates.kernels import NO_PANE
from engine.sampling.aggregates.layout import ClusterSlots, Partials, Results, SampledRows
from engine.sampling.aggregates.spec import Panes

T = TypeVar("T", bound=np.generic)
_SMALLEST = 1 << 12
_SPARE = 1 << 16
"""Slots that may be of no open window beside as many as are."""
_WIDE = np.int64(32)
_LOW = np.int64(0xFFFFFFFF)


class AggregateState:
    """Runs sampled outputs through the compiled sums and grows what they need.

    Parameters
    ----------
    panes : Panes
    average : bool
        Whether values stand less a shift.
    grouped : bool
        Whether there is more than one group.
    independent : bool
        Whether each output is a cluster of its own.
    lifetime : int or None
        Ticks after which a cluster has no more outputs, from its first; None: not known.

    Notes
    -----
    A *slot* is a cluster within a group; where outputs are independent, a group.
    """

    def __init__(
        self, panes: Panes, *, average: bool, grouped: bool, independent: bool,
        lifetime: int | None,
    ) -> None:  # fmt: skip
        self._panes = panes
        self._average = average
        self._grouped = grouped
        self._independent = independent
        self._lifetime = lifetime if panes.a_window == 1 and not independent else None
        self._written = deque[tuple[int, int]]()
        """Partials so far and the last tick, after each run whose clusters may have more."""
        self._dropped = 0
        self._clusters = KeyTable()
        self._keys = KeyTable()
        none = np.empty(0, np.int64)
        self._slots = ClusterSlots(none, np.empty(0, np.bool_), none, none, none)
        width = (layout.DEGREES if independent else layout.C_DEGREES).size
        self._partials = _partials(_SMALLEST, width)
        self._results = Results(
            none, none, np.empty((0, len(layout.SUMS))), np.full(_SMALLEST, -1, np.int64)
        )
        self._groups = 1
        self._progress = np.zeros(kernels.PROGRESS_FIELDS, np.int64)
        self._progress[kernels.PANE] = NO_PANE

    def slots_of(self, group: NDArray[np.int32], cluster: Ints) -> Ints:
        """Return the slot of each output: (n,) int64, from its group and its cluster's code.

        A code is -1 for outputs that are in no cluster.
        """
        self._groups = max(self._groups, int(group.max()) + 1)
        if self._independent:
            self._grow_slots(self._groups)
            return group.astype(np.int64)
        self._forget()
        key = cluster
        if self._grouped:
            key = (group.astype(np.int64) << _WIDE) | self._clusters.intern(cluster)
        known = self._keys.size
        slot = self._keys.intern(key).astype(np.int64)
        self._grow_slots(self._keys.size)
        new = self._keys.keys[known:]
        if self._grouped:
            self._slots.group[known : self._keys.size] = new >> _WIDE
            new = self._clusters.keys[new & _LOW]
        self._slots.counted[known : self._keys.size] = new >= 0
        return slot

    def complete(self, now: int) -> None:
        """Sum up the clusters that have no outputs from `now` on, if windows do not overlap.

        In order, so that it does not matter when that is done.
        """
        if self._lifetime is None:
            return
        end, begin = 0, int(self._progress[kernels.BEGIN])
        while self._written and self._written[0][1] < now - self._lifetime:
            end = self._written.popleft()[0] - self._dropped
        if end > begin:
            written = int(self._progress[kernels.RESULTS])
            if written + min(self._groups, end - begin) > self._results.window.size:
                self._more_results()
            kernels.fold_complete(self._partials, self._slots, self._results, self._progress, end)

    def note(self, last: int) -> None:
        """Note that `last` is the last tick of the outputs so far."""
        if self._lifetime is not None:
            partials = self._dropped + int(self._progress[kernels.PARTIALS])
            self._written.append((partials, last))

    def run(self, rows: SampledRows, *, flush: bool = False) -> None:
        """Add outputs, closing windows that are past."""
        if self._results.of_group.size < self._groups:
            room = np.full(2 * self._groups, -1, np.int64)
            room[: self._results.of_group.size] = self._results.of_group
            self._results = self._results._replace(of_group=room)
        self._progress[kernels.ROW] = 0
        while True:
            status = kernels.drive(
                rows, self._partials, self._slots, self._results, self._progress,
                self._panes.a_window, self._average, self._independent, flush,
            )  # fmt: skip
            if status == kernels.DONE:
                return
            if status == kernels.MORE_PARTIALS:
                self._more_partials()
            else:
                self._more_results()

    def close(self) -> Results:
        """Close all windows and return them."""
        none = np.empty(0, np.int64)
        empty = np.empty(0)
        self.run(SampledRows(none, none, empty, np.empty(0, np.bool_), empty), flush=True)
        n = self._progress[kernels.RESULTS]
        window, group, sums, scratch = self._results
        return Results(window[:n], group[:n], sums[:n], scratch)

    def _more_partials(self) -> None:
        """Move the partials of open windows to the front, of new room where they are many."""
        begin, n = self._progress[kernels.BEGIN], self._progress[kernels.PARTIALS]
        old = made = self._partials
        if 2 * begin < old.pane.size:
            made = _partials(2 * old.pane.size, old.sums.shape[1])
        for mine, theirs in zip(made[:3], old[:3], strict=True):
            mine[: n - begin] = theirs[begin:n]
        self._partials = made
        self._slots.partial[made.slot[: n - begin]] -= begin  # each slot once
        self._dropped += int(begin)
        self._progress[kernels.BEGIN], self._progress[kernels.PARTIALS] = 0, n - begin

    def _more_results(self) -> None:
        needed = self._progress[kernels.PARTIALS] - self._progress[kernels.BEGIN]
        room = 2 * self._results.window.size + int(needed) + _SMALLEST
        window, group, sums, scratch = self._results
        self._results = Results(
            _longer(window, room), _longer(group, room), _longer(sums, room), scratch
        )

    def _grow_slots(self, slots: int) -> None:
        size = self._slots.group.size
        if slots <= size:
            return
        room = max(2 * slots, _SMALLEST)
        old = self._slots
        group, pane, partial, touched = (
            _longer(part, room) for part in (old.group, old.pane, old.partial, old.touched)
        )
        counted = _longer(old.counted, room)
        group[size:] = 0
        counted[size:] = True
        pane[size:] = NO_PANE
        touched[size:] = -1
        self._slots = ClusterSlots(group, counted, pane, partial, touched)

    def _forget(self) -> None:
        """Drop the slots of no open window when they are more than the others."""
        begin, n = self._progress[kernels.BEGIN], self._progress[kernels.PARTIALS]
        if self._keys.size <= 2 * (n - begin) + _SPARE:
            return
        live = np.zeros(self._keys.size, np.bool_)
        live[self._partials.slot[begin:n]] = True
        kept = np.flatnonzero(live)
        moved = self._keys.keep(live)
        for part in self._slots:
            part[: kept.size] = part[kept]
        self._slots.pane[kept.size :] = NO_PANE
        self._slots.group[kept.size :] = 0
        self._partials.slot[begin:n] = moved[self._partials.slot[begin:n]]
        if self._grouped:
            self._forget_clusters()

    def _forget_clusters(self) -> None:
        """Drop the clusters of no slot, and name the slots by what is left."""
        keys = self._keys.keys
        live = np.zeros(self._clusters.size, np.bool_)
        live[keys & _LOW] = True
        moved = self._clusters.keep(live)
        renamed = (keys & ~_LOW) | moved[keys & _LOW]
        self._keys = KeyTable()
        self._keys.intern(renamed)


def _partials(room: int, width: int) -> Partials:
    return Partials(
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty((room, width)),
        np.empty((room, width)),
        np.empty(room, np.int64),
    )


def _longer(part: NDArray[T], room: int) -> NDArray[T]:
    """Return an array with room for more rows."""
    made = np.empty((room, *part.shape[1:]), part.dtype)
    made[: part.shape[0]] = part
    return made
