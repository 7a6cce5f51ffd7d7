"""When facts begin and end, or change, cell by cell, and what is wrong with those cells."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from engine.archives.canonical import contiguous
from engine.archives.ticks import FAULTS, ticks
from engine.facts import faults
from engine.facts.relation import BEFORE, NEVER
from engine.facts.roles import FactColumns, FactRoles

INSERTS = ("insert", "i", "+")
DELETES = ("delete", "d", "-")
_NULL = next(i for i, fault in enumerate(FAULTS) if fault.reason == "null time")


class Cells(NamedTuple):
    """What the rows say of time.

    Attributes
    ----------
    begin, end : (n,) int64
        In fine ticks; of a change the time of the change, and `NEVER`. Anything where there is a
        fault.
    insert : (n,) bool, optional
        Of a log: whether a row inserts.
    fault : (n,) int8
        A number of `engine.facts.faults`, 0 for none.
    """

    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    insert: NDArray[np.bool_] | None
    fault: NDArray[np.int8]


def interval_cells(table: pa.Table, roles: FactRoles, columns: FactColumns) -> Cells:
    """Read the interval of each row. A row has one fault, that of its begin first."""
    begin, fault = _bound(table, roles.begin, columns, BEFORE, faults.BEGIN)
    end, own = _bound(table, roles.end, columns, NEVER, faults.END)
    return Cells(begin, end, None, np.where(fault == 0, own, fault))


def change_cells(table: pa.Table, roles: FactRoles, columns: FactColumns) -> Cells:
    """Read op and time of each row. A row has one fault, that of its op first."""
    assert roles.op is not None  # noqa: S101 - of a log
    cells = contiguous(table.column(roles.op))
    words = pc.utf8_lower(pc.utf8_trim_whitespace(cells.cast(pa.string())))
    insert, delete = (
        pc.is_in(words, pa.array(known)).to_numpy(zero_copy_only=False)
        for known in (INSERTS, DELETES)
    )
    null = cells.is_null().to_numpy(zero_copy_only=False)
    time, fault = _bound(table, roles.time, columns, BEFORE, faults.TIME)
    fault[(fault == 0) & delete & (time == BEFORE)] = faults.NO_TIME
    fault[~(insert | delete)] = faults.OP_UNKNOWN
    fault[null] = faults.OP_NULL
    return Cells(time, np.full(len(time), NEVER), insert, fault)


def _bound(
    table: pa.Table, name: str | None, columns: FactColumns, absent: int, offset: int
) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Return one time of each row, `absent` where it is null, and its fault."""
    if name is None:
        return np.full(table.num_rows, absent), np.zeros(table.num_rows, np.int8)
    ts, fault = ticks(table.column(name), columns.fine, zoned=columns.zoned)
    null = fault == _NULL
    return np.where(null, absent, ts), np.where(null | (fault == 0), 0, fault + offset).astype(
        np.int8
    )
