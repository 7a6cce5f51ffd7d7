"""A Spark partition as a stream of lanes: rows checked, lanes numbered, keys beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from engine.archives import families
from engine.archives.canonical import canonical, direct_codes
from engine.archives.ticks import FAULTS, ticks
from engine.runtime.errors import InputError
from engine.runtime.streams import SIDES

GROUP, KEY = "group_", "key_"
"""Prefixes of the partition columns and join attributes, which both sides have in common."""


@dataclass(frozen=True)
class Layout:
    """The columns as workers see them."""

    unit: str
    zoned: bool
    """`unit`, `zoned`: Of times (`engine.archives.roles.JoinColumns`)."""
    keys: tuple[pa.DataType, ...]
    groups: tuple[pa.DataType, ...]
    """`keys`, `groups`: Canonical types."""
    named: tuple[tuple[str, str], ...]
    """Time and importance column of each side, for messages."""

    @property
    def direct(self) -> bool:
        """Whether a key's code is its own value."""
        return len(self.keys) == 1 and families.is_direct(self.keys[0])


@dataclass(frozen=True, order=True)
class LaneName:
    """Which lane: the values of the partition columns, and the part of the join attributes."""

    group: tuple[Any, ...]
    part: int


@dataclass
class LaneStream:
    """Turns a partition's rows into what `engine.lanes.reader.united_batches` reads."""

    layout: Layout
    names: list[LaneName] = field(default_factory=list)
    """The lanes met so far, by the number that their rows are given."""

    def batches(self, source: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of `source`, sorted by (groups, lane, ts, side, row), lane by lane.

        Raises
        ------
        InputError
            For a row with an invalid time or importance, and for row numbers that repeat.
        """
        last: pa.RecordBatch | None = None
        for batch in source:
            if batch.num_rows == 0:
                continue
            self._check_faults(batch)
            yield self._numbered(batch, last)
            last = batch.slice(batch.num_rows - 1)

    def _check_faults(self, batch: pa.RecordBatch) -> None:
        codes = batch.column("fault").to_numpy()
        bad = np.flatnonzero(codes)
        if not bad.size:
            return
        at = int(bad[0])
        side = batch.column("side")[at].as_py()
        fault = FAULTS[codes[at]]
        column = self.layout.named[side][0 if fault.role == "time" else 1]
        raise InputError(
            f"column {column} of the {SIDES[side]} DataFrame is {fault.words} in row "
            f"{batch.column('row')[at].as_py()}: correct such rows or filter them out"
        )

    def _numbered(self, batch: pa.RecordBatch, last: pa.RecordBatch | None) -> pa.RecordBatch:
        layout = self.layout
        begins = self._begins(batch, last)
        _check_rows(batch, last, begins)
        lane = np.cumsum(begins, dtype=np.int32) + np.int32(len(self.names) - 1)
        self._name(batch, begins)
        ts, _ = ticks(pa.chunked_array([batch.column("ts")]), layout.unit, zoned=layout.zoned)
        columns = {
            "lane": pa.array(lane),
            "ts": pa.array(ts),
            "side": batch.column("side"),
            "row": batch.column("row"),
            "key": batch.column("row"),
            "importance": batch.column("importance"),
        }
        keys = [canonical(batch.column(f"{KEY}{i}"), kind) for i, kind in enumerate(layout.keys)]
        if layout.direct:
            columns["key"] = pa.array(direct_codes(keys[0]))
        else:
            columns |= {
                key_name(side, i): values for side in SIDES for i, values in enumerate(keys)
            }
        for name in batch.schema.names:
            if name.startswith(tuple(f"{side}_" for side in SIDES)):
                columns[name] = batch.column(name)
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def _begins(self, batch: pa.RecordBatch, last: pa.RecordBatch | None) -> NDArray[np.bool_]:
        """Return which rows are the first of a lane."""
        return ~_alike(batch, last, [*self._group_names(), "lane"])

    def _group_names(self) -> list[str]:
        return [f"{GROUP}{i}" for i in range(len(self.layout.groups))]

    def _name(self, batch: pa.RecordBatch, begins: NDArray[np.bool_]) -> None:
        """Name the lanes that begin in a batch."""
        for at in np.flatnonzero(begins):
            cells = [
                _plain(canonical(batch.column(name).slice(at, 1), kind))
                for name, kind in zip(self._group_names(), self.layout.groups, strict=True)
            ]
            self.names.append(LaneName(tuple(cells), batch.column("lane")[at].as_py()))


def _check_rows(
    batch: pa.RecordBatch, last: pa.RecordBatch | None, begins: NDArray[np.bool_]
) -> None:
    """Reject rows without a number, and two with the same at one instant: of no certain order."""
    without = batch.filter(batch.column("row").is_null())
    if without.num_rows:
        raise without_number(SIDES[without.column("side")[0].as_py()])
    twice = np.flatnonzero(_alike(batch, last, ["ts", "side", "row"]) & ~begins)
    if twice.size:
        side, row = (batch.column(name)[int(twice[0])].as_py() for name in ("side", "row"))
        raise InputError(
            f"row {row} of the {SIDES[side]} DataFrame is there twice: row numbers must be unique "
            "within a stream"
        )


def without_number(side: str, option: str = "row") -> InputError:
    """Return what is wrong with rows of which one has no number."""
    return InputError(
        f"the column that {option} names is null in a row of the {side} DataFrame: number all rows "
        "or filter such rows out"
    )


def key_name(side: str, number: int) -> str:
    """Return the name under which a join attribute travels beside one side's payload.

    Payload columns are called ``left_<name>``; no column of Spark has a NUL in its name.
    """
    return f"{side}_\0{number}"


def _alike(
    batch: pa.RecordBatch, last: pa.RecordBatch | None, names: Sequence[str]
) -> NDArray[np.bool_]:
    """Return which rows equal the row before them in the named columns; n >= 1."""
    alike = np.ones(batch.num_rows, np.bool_)
    for name in names:
        column = batch.column(name)
        alike[1:] &= pc.equal(column[1:], column[:-1]).to_numpy(zero_copy_only=False)
        alike[0] &= last is not None and bool(column[0] == last.column(name)[0])
    return alike


def _plain(value: pa.Array) -> Any:  # noqa: ANN401 - whatever a column holds
    if pt.is_timestamp(value.type):
        value = value.view(pa.int64())
    return value[0].as_py()
