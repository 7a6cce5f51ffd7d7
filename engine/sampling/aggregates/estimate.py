"""Estimates with intervals from the sums of lanes, one row a window and group (P5 4.3)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives.canonical import comparable
from engine.runtime.jit import Floats, Ints
from engine.sampling.aggregates import layout
from engine.sampling.aggregates.intervals import REASONS, estimates
from engine.sampling.aggregates.layout import GroupIds
from engine.sampling.aggregates.spec import AggregateSpec
from engine.sampling.aggregates.units import add_rows
from engine.sampling.lost import ALWAYS, meets

CONFIDENCE = 0.95
_ROUNDING = 1e-9
"""Sums in another order differ by less, and intervals of what is certain have no width."""


def combine(
    spec: AggregateSpec,
    tables: list[pa.Table],
    confidence: float = CONFIDENCE,
    *,
    exact: list[pa.Table] | None = None,
    span: tuple[int, int] | None = None,
    lost: Ints = ALWAYS,
) -> pa.Table:
    """Add up the lanes' sums and make the estimates of an aggregate.

    Parameters
    ----------
    spec : AggregateSpec
        Resolved.
    tables : list of pyarrow.Table
        From `LaneAggregates.close` of every lane, at least one; added in this order.
    confidence : float
        Of the intervals.
    exact : list of pyarrow.Table, optional
        The same of the whole join, each output with weight 1.
    span : (int, int), optional
        First and last ts that an output may have: without groups, every window that meets them is
        listed. Otherwise those with an output are.
    lost : (m, 2) int64
        First and last ticks of the times when outputs may be missing, as `engine.sampling.lost` has
        them. What has none of them is known exactly.

    Returns
    -------
    pyarrow.Table
        window_begin, window_end (ticks, int64; null without `every`), the group columns, estimate,
        low, high, standard_error (float64), no_interval (string: why there is none), rows, clusters
        (int64); with `exact` also exact (float64) and covered (bool).
        In order of windows, then of groups, nulls last.
    """
    cells = _Cells(spec, [*tables, *(exact or [])])
    if span is not None and not spec.by:
        cells.list_windows(spec.windows.windows(*span))
    sums = cells.summed(tables)
    known = cells.known(lost, span)
    found = estimates(spec.function, sums, confidence, cells.pools(), known)
    columns = cells.named()
    columns |= {name: _nullable(part) for name, part in zip(found._fields, found[:4], strict=False)}
    columns["no_interval"] = pa.array([REASONS[code] for code in found.reason], pa.string())
    for at, name in ((layout.ROWS, "rows"), (layout.CLUSTERS, "clusters")):
        columns[name] = pa.array(sums[:, at].astype(np.int64))
    if exact is not None:
        truth = estimates(spec.function, cells.summed(exact), confidence).estimate
        finite = np.where(np.isfinite(truth), truth, np.nan)
        slack = _ROUNDING * np.abs(finite)
        within = (found.low <= finite + slack) & (finite - slack <= found.high)
        columns["exact"] = _nullable(truth)
        columns["covered"] = pa.array(within, mask=np.isnan(found.low) | np.isnan(truth))
    return in_order(pa.table(columns), len(spec.by) + 1)


def _nullable(part: Floats) -> pa.Array:
    return pa.array(part, mask=np.isnan(part))


class _Cells:
    """The windows and groups of several tables, each pair once."""

    def __init__(self, spec: AggregateSpec, tables: list[pa.Table]) -> None:
        self._spec = spec
        self._names = ["window", *(column.name for column in spec.by)]
        self._groups = GroupIds([tables[0].schema.field(name).type for name in self._names])
        for table in tables:
            self._ids(table)

    def _ids(self, table: pa.Table) -> NDArray[np.int32]:
        return self._groups.intern([table.column(name) for name in self._names], table.num_rows)

    def list_windows(self, windows: range) -> None:
        """Include these windows, with outputs or without."""
        numbers = pa.chunked_array([np.arange(windows.start, windows.stop, dtype=np.int64)])
        self._groups.intern([numbers], len(windows))

    def summed(self, tables: list[pa.Table]) -> Floats:
        """Return the sums of every cell over some of the tables: (cells, 30) float64."""
        sums = np.zeros((len(self._groups.values()[0]), len(layout.SUMS)))
        for table in tables:
            ids = self._ids(table)  # each once in a table
            part = np.column_stack([table.column(name).to_numpy() for name in layout.SUMS])
            add_rows(sums, ids.astype(np.int64), part)
        return sums

    def known(self, lost: Ints, span: tuple[int, int] | None) -> NDArray[np.bool_]:
        """Return of which cells no output can be missing: (cells,) bool."""
        window = self._groups.values()[0].to_numpy()
        panes = self._spec.windows
        if panes.every:
            first = window * panes.every
            return ~meets(lost, first, first + panes.over - 1)
        first, last = span or (int(ALWAYS[0, 0]), int(ALWAYS[0, 1]))
        return ~meets(lost, np.full(len(window), first), np.full(len(window), last))

    def pools(self) -> list[Ints]:
        """Return what cells may learn from: cells of one group, and all cells.

        Only windows that do not overlap, so that none learns from what it has itself.
        """
        window, *groups = self._groups.values()
        phases = self._spec.windows.a_window
        phase = window.to_numpy() % phases
        if not groups:
            return [phase]
        by = GroupIds([column.type for column in groups])
        ids = by.intern([pa.chunked_array([column]) for column in groups], len(window))
        return [ids * np.int64(phases) + phase, phase]

    def named(self) -> dict[str, pa.Array]:
        """Return the columns that identify the cells."""
        window, *groups = self._groups.values()
        panes = self._spec.windows
        if not panes.every:
            begin = end = pa.nulls(len(window), pa.int64())
        else:
            begin = pc.multiply(window, panes.every)
            end = pc.add(begin, panes.over)
        by = (column.name for column in self._spec.by)
        return {"window_begin": begin, "window_end": end} | dict(zip(by, groups, strict=True))


def in_order(table: pa.Table, keys: int) -> pa.Table:
    """Sort an aggregate's table by window, then by its groups: by its first columns."""
    columns = {
        name: comparable(table[name])
        for name in table.column_names[: keys + 1]
        if not pt.is_null(table.schema.field(name).type)
    }
    return table.take(pc.sort_indices(pa.table(columns), [(name, "ascending") for name in columns]))
