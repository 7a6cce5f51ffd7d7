"""What the outputs of a stretch come to, by aggregate and group."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from engine.archives import families
from engine.jobs.estimate.outputs import Chunk, StretchOutputs
from engine.runtime.errors import InputError
from engine.runtime.jit import Floats, Ints
from engine.sampling.aggregates import AggregateSpec
from engine.sampling.aggregates.layout import GroupIds
from engine.sampling.aggregates.where import Column, all_hold

_DENSE = 1 << 20
"""Combinations of groups that are counted in an array; more are sorted."""


class Sums(NamedTuple):
    """What the outputs of a stretch come to for one aggregate."""

    groups: list[pa.Array]
    """(g,) each. The groups' values, a column each."""
    sums: Floats
    """(g, 2) float64. Of the values, and of the outputs that have one."""


def sums_of(
    outputs: StretchOutputs,
    specs: Sequence[AggregateSpec],
    kinds: Sequence[Sequence[pa.DataType]],
) -> list[Sums]:
    """Return the sums of every aggregate.

    Parameters
    ----------
    specs : sequence of AggregateSpec
        Resolved.
    kinds : sequence of sequence of pyarrow.DataType
        Of the columns that each of them groups by.
    """
    return _Adding(outputs).sums(specs, kinds)


class _Adding:
    """Adds up the outputs of a stretch."""

    def __init__(self, outputs: StretchOutputs) -> None:
        self._outputs = outputs
        self._known: dict[object, float] = {}

    def sums(
        self, specs: Sequence[AggregateSpec], kinds: Sequence[Sequence[pa.DataType]]
    ) -> list[Sums]:
        """Return the sums of every aggregate."""
        places = [i for i, spec in enumerate(specs) if spec.by or spec.where]
        found = self._grouped([specs[i] for i in places], [kinds[i] for i in places])
        grouped = dict(zip(places, found, strict=True))
        return [grouped[i] if i in grouped else self._total(specs[i]) for i in range(len(specs))]

    def _total(self, spec: AggregateSpec) -> Sums:
        """Return the sums of an aggregate without groups, from counts alone."""
        if isinstance(spec.value, Column):
            number = self._of(spec.value, "valid")
            value = number if spec.function == "count" else self._of(spec.value, "value")
            return Sums([], np.array([[value, number]]))
        if "outputs" not in self._known:
            self._known["outputs"], self._known["importance"] = self._outputs.totals()
        number = self._known["outputs"]
        of_importance = spec.value == "importance" and spec.function != "count"
        value = self._known["importance"] if of_importance else number
        return Sums([], np.array([[value, number]], np.float64))

    def _of(self, column: Column, what: str) -> float:
        """Return the sum of a column's cells, or of those that there are."""
        key = column, what
        if key not in self._known:
            self._known[key] = self._outputs.total_of(column.side, self._cells(column, what))
        return self._known[key]

    def _cells(self, column: Column, what: str) -> Floats:
        """Return a column's cells as numbers ("value"), or 1 where there is one ("valid"), else 0.

        Raises
        ------
        InputError
            If they are no numbers.
        """
        payload = self._outputs.payloads[column.side]
        if payload is None:
            return np.empty(0)
        cells = payload.column(column.column).combine_chunks()
        if what == "value":
            return column.numbers(cells)
        valid: Floats = cells.is_valid().to_numpy(zero_copy_only=False).astype(np.float64)
        return valid

    def _grouped(
        self, specs: Sequence[AggregateSpec], kinds: Sequence[Sequence[pa.DataType]]
    ) -> list[Sums]:
        """Return the sums of aggregates with groups or conditions, from the outputs."""
        groups = [_Groups(spec, own, self._outputs) for spec, own in zip(specs, kinds, strict=True)]
        cells = {
            (spec.value, what): self._cells(spec.value, what)
            for spec in specs
            if isinstance(spec.value, Column)
            for what in (("valid",) if spec.function == "count" else ("value", "valid"))
        }
        for chunk in self._outputs.chunks() if specs else ():
            for spec, own in zip(specs, groups, strict=True):
                value, number = chunk.importance, np.ones(len(chunk.importance))
                if isinstance(spec.value, Column):
                    rows, valid = chunk.members[spec.value.side], cells[spec.value, "valid"]
                    number = valid[rows]
                    value = cells.get((spec.value, "value"), valid)[rows]
                own.add(chunk, number if spec.function == "count" else value, number)
        return [own.sums() for own in groups]


class _Groups:
    """The groups of an aggregate in a stretch, and their sums."""

    def __init__(
        self, spec: AggregateSpec, kinds: Sequence[pa.DataType], outputs: StretchOutputs
    ) -> None:
        self._order = [column.side for column in spec.by]
        self._kinds = [families.plain_type(kind) for kind in kinds]
        self._sides = sorted({*self._order})
        self._ids: dict[int, GroupIds] = {}
        self._rows: dict[int, Ints] = {}
        for side in self._sides:
            own = [i for i, column in enumerate(spec.by) if column.side == side]
            self._ids[side] = GroupIds([kinds[i] for i in own])
            payload = outputs.payloads[side]
            columns = [] if payload is None else [payload.column(spec.by[i].column) for i in own]
            rows = 0 if payload is None else outputs.sizes[side]
            self._rows[side] = self._ids[side].intern(columns, rows).astype(np.int64)
        self._widths = [int(self._rows[side].max(initial=0)) + 1 for side in self._sides]
        size = math.prod(self._widths)
        if size > np.iinfo(np.int64).max:
            raise InputError(
                f"--aggregate {spec.text!r}: groups can combine in {size:.3g} ways within one "
                "stretch, more than 2^63: name columns with fewer values"
            )
        self._dense = np.zeros((3, size if size <= _DENSE else 0))
        self._parts: list[tuple[Ints, Floats]] = []
        self._held = all_hold(spec.where, outputs.payloads, outputs.sizes)

    def add(self, chunk: Chunk, value: Floats, number: Floats) -> None:
        """Add outputs with their values, and whether they have one."""
        members = chunk.members
        for side, held in self._held.items():
            kept = held[members[side]]
            members = [own[kept] for own in members]
            value, number = value[kept], number[kept]
        code = np.zeros(len(value), np.int64)
        for side, width in zip(self._sides, self._widths, strict=True):
            code = code * width + self._rows[side][members[side]]
        weights = np.stack([np.ones(code.size), value, number])
        if self._dense.size:
            size = self._dense.shape[1]
            self._dense += [np.bincount(code, own, size) for own in weights]
            return
        codes, at = np.unique(code, return_inverse=True)
        self._parts.append((codes, np.stack([np.bincount(at, own) for own in weights])))

    def sums(self) -> Sums:
        """Return the groups that have an output."""
        codes = np.flatnonzero(self._dense[0]) if self._dense.size else np.empty(0, np.int64)
        found = self._dense[1:, codes].T
        if self._parts:
            parts = np.concatenate([own[0] for own in self._parts])
            codes, at = np.unique(parts, return_inverse=True)
            weights = np.concatenate([own[1] for own in self._parts], axis=1)[1:]
            found = np.stack([np.bincount(at, own) for own in weights], axis=1)
        if not codes.size:
            return Sums([pa.array([], kind) for kind in self._kinds], np.empty((0, 2)))
        rows, rest = dict[int, Ints](), codes
        for side, width in zip(reversed(self._sides), reversed(self._widths), strict=True):
            rest, rows[side] = rest // width, rest % width
        values = {side: iter(ids.values()) for side, ids in self._ids.items()}
        groups = [next(values[side]).take(pa.array(rows[side])) for side in self._order]
        return Sums(groups, found)
