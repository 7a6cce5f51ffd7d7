"""A lane's aggregates: sums of its sampled outputs by window and group."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints
from engine.runtime.key_table import KeyTable
from engine.sampling.aggregates import kernels, layout
from engine.sampling.aggregates.kernels import NO_PANE
from engine.sampling.aggregates.layout import ClusterSlots, GroupIds, Partials, Results, SampledRows
from engine.sampling.aggregates.spec import AggregateSpec, Panes
from engine.sampling.aggregates.where import Column, filtered, kept_of
from engine.sampling.layout import SIMULTANEOUS, SampledOutputs

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

    Notes
    -----
    A *slot* is a cluster within a group; where outputs are independent, a group.
    """

    def __init__(self, panes: Panes, *, average: bool, grouped: bool, independent: bool) -> None:
        self._panes = panes
        self._average = average
        self._grouped = grouped
        self._independent = independent
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

    def run(self, rows: SampledRows, *, flush: bool = False) -> None:
        """Add outputs, closing windows that are past."""
        if self._results.of_group.size < self._groups:
            room = np.full(2 * self._groups, -1, np.int64)
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


class LaneAggregates:
    """Sums a lane's sampled outputs by window and group, for estimates and their variances.

    Parameters
    ----------
    specs : tuple of AggregateSpec
        Resolved.
    schemas : (pyarrow.Schema, pyarrow.Schema)
        Columns of the left and the right payload.
    independent : bool
        Outputs were sampled one by one (UNIFORM), or all of them were; else with all others of
        their stored tuple.

    Notes
    -----
    Memory: the clusters and groups of open windows, and the rows of the result. A row takes O(1); a
    cluster's sums in a pane are merged once for each window that the pane is in.

    Examples
    --------
    Two of ten tuples were retained; they gave 3 outputs:

    >>> from engine.sampling.aggregates import parse_aggregate
    >>> spec = parse_aggregate("count(*)").resolve("tick", pa.schema([]), pa.schema([]))
    >>> lane = LaneAggregates((spec,), (pa.schema([]), pa.schema([])), independent=False)
    >>> left, right = np.array([4, 4, 7]), np.array([0, 1, 2])
    >>> out = SampledOutputs(
    ...     left, right, left, right, ts=np.array([5, 6, 9]), importance=np.ones(3),
    ...     weight=np.full(3, 5.0), stored=np.zeros(3, np.int8),
    ... )
    >>> lane.add(out, pa.table({}), pa.table({}))
    >>> [table] = lane.close()
    >>> {name: table[name][0].as_py() for name in ("s_1", "v_11", "rows", "clusters")}
    {'s_1': 15.0, 'v_11': 100.0, 'rows': 3.0, 'clusters': 2.0}
    """

    def __init__(
        self,
        specs: tuple[AggregateSpec, ...],
        schemas: tuple[pa.Schema, pa.Schema],
        *,
        independent: bool,
    ) -> None:
        self._each = [_Aggregate(spec, schemas, independent=independent) for spec in specs]

    @property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the left and the right payload columns that `add` reads."""
        used = [column for one in self._each for column in one.columns]
        left, right = ([c.column for c in used if c.side == side] for side in (0, 1))
        return tuple(dict.fromkeys(left)), tuple(dict.fromkeys(right))

    def add(self, out: SampledOutputs, left: pa.Table, right: pa.Table) -> None:
        """Add outputs, none of which comes before those added earlier.

        Parameters
        ----------
        out : SampledOutputs
            (n,) each.
        left, right : pyarrow.Table
            Payload of both members, row by row of `out`; at least `columns`.
        """
        if not out.ts.size:
            return
        seq = np.where(out.stored == 0, out.left_seq, out.right_seq)
        cluster = np.where(out.stored == SIMULTANEOUS, np.int64(-1), 2 * seq + out.stored)
        for one in self._each:
            one.add(out, cluster, (left, right))

    def close(self) -> list[pa.Table]:
        """Close all windows and return a table for each aggregate, by `layout.lane_schema`."""
        return [one.close() for one in self._each]


class _Aggregate:
    """One aggregate's groups, clusters and windows."""

    def __init__(
        self, spec: AggregateSpec, schemas: tuple[pa.Schema, pa.Schema], *, independent: bool
    ) -> None:
        self._spec = spec
        self._groups = GroupIds([schemas[c.side].field(c.column).type for c in spec.by])
        self._state = AggregateState(
            spec.windows, average=spec.function == "avg", grouped=bool(spec.by),
            independent=independent,
        )  # fmt: skip
        self.columns = spec.columns

    def add(self, out: SampledOutputs, cluster: Ints, payload: tuple[pa.Table, pa.Table]) -> None:
        if self._spec.where:
            kept = kept_of(self._spec.where, payload, out.ts.size)
            if not kept.any():
                return
            out, cluster = SampledOutputs._make(own[kept] for own in out), cluster[kept]
            payload = filtered(payload[0], kept), filtered(payload[1], kept)
        value, valid = self._values(out, payload)
        group = self._groups.intern(
            [payload[c.side].column(c.column) for c in self._spec.by], out.ts.size
        )
        pane = self._spec.windows.of(out.ts)
        slot = self._state.slots_of(group, cluster)
        self._state.run(SampledRows(pane, slot, value, valid, np.ascontiguousarray(out.weight)))

    def _values(
        self, out: SampledOutputs, payload: tuple[pa.Table, pa.Table]
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return each output's value, and whether it has one."""
        spec, n = self._spec, out.ts.size
        if not isinstance(spec.value, Column):
            plain = spec.value == "importance" and spec.function != "count"
            return (out.importance.copy() if plain else np.ones(n)), np.ones(n, np.bool_)
        column = payload[spec.value.side].column(spec.value.column).combine_chunks()
        valid = np.asarray(column.is_valid().to_numpy(zero_copy_only=False))
        if spec.function == "count":
            return np.ones(n), valid
        return spec.value.numbers(column), valid

    def close(self) -> pa.Table:
        results = self._state.close()
        schema, group = layout.lane_schema(self._spec, self._groups.kinds), pa.array(results.group)
        groups = [kept.take(group) for kept in self._groups.values()]
        sums = [pa.array(np.ascontiguousarray(column)) for column in results.sums.T]
        return pa.table([pa.array(results.window), *groups, *sums], schema=schema)
