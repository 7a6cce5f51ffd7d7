"""A lane's aggregates: sums of its sampled outputs by window and group."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.runtime.jit import Floats, Ints
from engine.sampling.aggregates import layout
from engine.sampling.aggregates.layout import GroupIds, SampledRows
from engine.sampling.aggregates.spec import AggregateSpec
from engine.sampling.aggregates.state import AggregateState
from engine.sampling.aggregates.where import Column, filtered, kept_of
from engine.sampling.layout import SIMULTANEOUS, SampledOutputs


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
    lifetime : int, optional
        Ticks from a stored tuple's arrival to its last output, at most.

    Notes
    -----
    Memory: the clusters and groups of open windows, and the rows of the result; where windows do
    not overlap, of the clusters those within `lifetime` of their first output. A row takes O(1); a
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
        lifetime: int | None = None,
    ) -> None:
        self._each = [_Aggregate(spec, schemas, independent, lifetime) for spec in specs]

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
        self, spec: AggregateSpec, schemas: tuple[pa.Schema, pa.Schema], independent: bool,
        lifetime: int | None,
    ) -> None:  # fmt: skip
        self._spec = spec
        self._groups = GroupIds([schemas[c.side].field(c.column).type for c in spec.by])
        self._state = AggregateState(
            spec.windows, average=spec.function == "avg", grouped=bool(spec.by),
            independent=independent, lifetime=lifetime,
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
        self._state.complete(int(out.ts[0]))
        slot = self._state.slots_of(group, cluster)
        self._state.run(SampledRows(pane, slot, value, valid, np.ascontiguousarray(out.weight)))
        self._state.note(int(out.ts[-1]))

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
