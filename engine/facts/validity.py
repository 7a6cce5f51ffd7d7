"""When facts are valid: reads their times, and resolves intervals and change logs."""

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
from engine.runtime.jit import Ints, kernel

VALID, DUPLICATE, DELETE = range(3)
"""A fact of F; a row that says the same again; a delete that ends a fact."""
_OVERLAPS, _THERE = faults.OVERLAPS, faults.THERE_ALREADY
_NOT_THERE, _ONE_TICK = faults.NOT_THERE, faults.ONE_TICK


class Validity(NamedTuple):
    """What became of each row."""

    status: NDArray[np.int8]
    """(n,) int8. `VALID`, `DUPLICATE`, `DELETE`, or a number of `engine.facts.faults`."""
    end: Ints
    """(n,) int64. Of a row that stands."""
    other: Ints
    """(n,) int64. The row that a fault is about; -1 without one."""


@kernel
def intervals_kernel(
    order: Ints, fresh: NDArray[np.bool_], begin: Ints, end: Ints,
    status: NDArray[np.int8], other: Ints,
) -> None:  # fmt: skip
    """Give each row its status, in the order of (fact, begin, row); what is bad is not there."""
    last = -1
    for i in range(len(order)):
        row = order[i]
        if fresh[i] or begin[row] >= end[last]:
            last = row
        elif begin[row] == begin[last] and end[row] == end[last]:
            status[row] = DUPLICATE
        else:
            status[row] = _OVERLAPS
            other[row] = last


@kernel
def changes_kernel(
    order: Ints, fresh: NDArray[np.bool_], time: Ints, insert: NDArray[np.bool_],
    status: NDArray[np.int8], end: Ints, other: Ints,
) -> None:  # fmt: skip
    """Give each row its status and each insert its end, in the order of (fact, time, row)."""
    open_ = -1
    for i in range(len(order)):
        row = order[i]
        if fresh[i]:
            open_ = -1
        if insert[row]:
            if open_ < 0:
                open_ = row
            else:
                status[row] = _THERE
                other[row] = open_
            continue
        if open_ < 0:
            status[row] = _NOT_THERE
            continue
        if time[row] > time[open_]:
            end[open_] = time[row]
            status[row] = DELETE
        else:
            status[row] = _ONE_TICK
            status[open_] = _ONE_TICK
            other[row] = open_
            other[open_] = row
        open_ = -1


def fresh_at(order: Ints, columns: list[Ints]) -> NDArray[np.bool_]:
    """Return where, in this order, a row differs from the one before it in any of the columns."""
    fresh = np.zeros(order.size, np.bool_)
    fresh[:1] = True
    for column in columns:
        values = column[order]
        fresh[1:] |= values[1:] != values[:-1]
    return fresh


def interval_validity(order: Ints, identity: list[Ints], begin: Ints, end: Ints) -> Validity:
    """Tell which rows are facts of a set: of equal rows the first, of overlapping ones the earlier.

    Parameters
    ----------
    order : (n,) int64
        The rows by (identity, begin, row).
    identity : list of (n,) int64
        Rows equal in these are of one fact.
    begin, end : (n,) int64
        begin < end.

    Returns
    -------
    Validity
        O(n).

    Examples
    --------
    >>> begin, end = np.array([0, 3, 6, 0]), np.array([5, 9, 8, 5])
    >>> found = interval_validity(np.array([0, 3, 1, 2]), [np.zeros(4, np.int64)], begin, end)
    >>> found.status.tolist(), found.other.tolist()  # the second row overlaps the first
    ([0, 52, 0, 1], [-1, 0, -1, -1])
    """
    size = order.size
    found = Validity(np.zeros(size, np.int8), end, np.full(size, -1, np.int64))
    intervals_kernel(order, fresh_at(order, identity), begin, end, found.status, found.other)
    return found


def change_validity(
    order: Ints, identity: list[Ints], time: Ints, insert: NDArray[np.bool_]
) -> Validity:
    """Tell which inserts are facts and when each is deleted.

    A change that means nothing (an insert of what is there, a delete of what is not) is as if it
    were not there. An insert and a delete at one tick are both bad.

    Parameters
    ----------
    order : (n,) int64
        The rows by (identity, time, row).
    identity : list of (n,) int64
        Rows equal in these are of one fact.
    time : (n,) int64
    insert : (n,) bool
        Whether a row inserts; the others delete.

    Returns
    -------
    Validity
        O(n).

    Examples
    --------
    >>> time, insert = np.array([0, 4, 4, 9]), np.array([True, False, True, True])
    >>> found = change_validity(np.arange(4), [np.zeros(4, np.int64)], time, insert)
    >>> found.status.tolist(), found.end[:1].tolist()  # the last inserts what is there
    ([0, 2, 0, 53], [4])
    """
    size = order.size
    found = Validity(
        np.zeros(size, np.int8), np.full(size, NEVER, np.int64), np.full(size, -1, np.int64)
    )
    fresh = fresh_at(order, identity)
    changes_kernel(order, fresh, time, insert, found.status, found.end, found.other)
    return found


INSERTS = ("insert", "i", "+")
DELETES = ("delete", "d", "-")
_NULL = next(i for i, fault in enumerate(FAULTS) if fault.reason == "null time")


class Cells(NamedTuple):
    """What the rows say of time."""

    begin: Ints
    end: Ints
    """`begin`, `end`: (n,) int64. In fine ticks; of a change the time of the change, and `NEVER`.
    Anything where there is a fault."""
    insert: NDArray[np.bool_] | None
    """(n,) bool. Of a log: whether a row inserts."""
    fault: NDArray[np.int8]
    """(n,) int8. A number of `engine.facts.faults`, 0 for none."""


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
) -> tuple[Ints, NDArray[np.int8]]:
    """Return one time of each row, `absent` where it is null, and its fault."""
    if name is None:
        return np.full(table.num_rows, absent), np.zeros(table.num_rows, np.int8)
    ts, fault = ticks(table.column(name), columns.fine, zoned=columns.zoned)
    null = fault == _NULL
    return np.where(null, absent, ts), np.where(null | (fault == 0), 0, fault + offset).astype(
        np.int8
    )
