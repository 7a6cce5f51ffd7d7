"""Faults of rows of F: their numbers and words, and the rejected rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.archives import ticks
from engine.archives.normalise import FIRST_ROWS, BadRows, bad_rows_error, original_name
from engine.archives.ticks import Fault
from engine.facts.roles import FactRoles
from engine.runtime.errors import InputError
from engine.runtime.jit import Ints

BEGIN, END, TIME = 0, 16, 32
"""Added to a fault of a time, which column it is of."""
_OWN = 48
(
    OP_NULL, OP_UNKNOWN, NO_TIME, EMPTY, OVERLAPS, THERE_ALREADY, NOT_THERE, ONE_TICK,
) = range(_OWN, _OWN + 8)  # fmt: skip
IDENTITY = frozenset({OVERLAPS, THERE_ALREADY, NOT_THERE})
"""Faults that another identity of facts may turn out not to be."""

_UNREAD = next(i for i, fault in enumerate(ticks.FAULTS) if fault.words.startswith("not readable"))


def _of(role: str, offset: int) -> dict[int, Fault]:
    """Return the faults of a time column under its own name."""
    faults = {
        offset + i: Fault(role, fault.reason.replace("time", role, 1), fault.words)
        for i, fault in enumerate(ticks.FAULTS)
        if fault.role == "time"
    }
    faults[offset + _UNREAD] = Fault(role, role + " {!r} does not read as a time", "not a time")
    return faults


FACT_FAULTS = {
    **_of("begin", BEGIN),
    **_of("end", END),
    **_of("time", TIME),
    OP_NULL: Fault("op", "null op", "null"),
    OP_UNKNOWN: Fault("op", "op {!r} is neither insert nor delete", "neither insert nor delete"),
    NO_TIME: Fault("time", "null time of a delete", "null in a delete"),
    EMPTY: Fault("begin", "begin {} is not before the end", "not before the end"),
    OVERLAPS: Fault(
        "begin",
        "overlaps the interval of the same fact in row {other}",
        "within an earlier interval of the same fact",
    ),
    THERE_ALREADY: Fault(
        "op", "inserts what is there since row {other}", "inserting a fact that is there already"
    ),
    NOT_THERE: Fault("op", "deletes what is not there", "deleting a fact that is not there"),
    ONE_TICK: Fault(
        "op",
        "inserted and deleted at one tick, in rows {row} and {other}",
        "inserting and deleting a fact at one tick",
    ),
}
"""Faults by number: the role of the column, the reason of a row, the words of a count. A reason
names the cell, the row itself and the other row that it is about."""


Faults = NDArray[np.int8]


def column_of(roles: FactRoles, fault: int) -> str:
    """Return the column whose cell is wrong."""
    named = {"begin": roles.begin or roles.end, "end": roles.end, "op": roles.op}
    return named.get(FACT_FAULTS[fault].role, roles.time) or roles.left[0]


def rejected_rows(
    table: pa.Table, roles: FactRoles, fault: Faults, other: Ints, starts: Mapping[int, str]
) -> pa.Table:
    """Return the bad rows in order, each with its reason.

    Parameters
    ----------
    table : pyarrow.Table
    roles : FactRoles
    fault : (n,) int8
        0 for none.
    other : (n,) int64
        The row that a fault is about.
    starts : mapping
        The file that begins at each of some rows; empty for a table in memory.

    Returns
    -------
    pyarrow.Table
        ``row``, ``reason``, ``file`` of files, and the columns of `table`.
    """
    at = np.flatnonzero(fault)
    rows = table.take(pa.array(at))
    reasons = []
    for i, row in enumerate(at.tolist()):
        number = int(fault[row])
        reason = FACT_FAULTS[number].reason
        cell = rows.column(column_of(roles, number))[i].as_py() if "{" in reason else None
        cell = cell if "{!r}" in reason else str(cell)
        reasons.append(reason.format(cell, row=row, other=int(other[row])))
    found = {"row": pa.array(at, pa.int64()), "reason": pa.array(reasons, pa.string())}
    if any(starts.values()):
        found["file"] = pa.array(_files(at, starts), pa.string())
    return pa.table(found | {original_name(name): rows.column(name) for name in table.column_names})


def _files(at: Ints, starts: Mapping[int, str]) -> list[str]:
    firsts = np.array(sorted(starts))
    return [starts[int(firsts[i])] for i in np.searchsorted(firsts, at, "right") - 1]


def complain(
    fault: Faults, roles: FactRoles, starts: Mapping[int, str], numbers: Ints | None = None
) -> InputError:
    """Return an error that names file, column, fault, count and first rows of all bad rows."""
    at = np.flatnonzero(fault)
    firsts = np.array(sorted(starts))
    file = np.searchsorted(firsts, at, "right") - 1
    found = []
    for i, number in sorted(set(zip(file.tolist(), fault[at].tolist(), strict=True))):
        rows = at[(file == i) & (fault[at] == number)]
        shown = rows[:FIRST_ROWS]
        first = tuple((shown - firsts[i] if numbers is None else numbers[shown]).tolist())
        name, words = starts[int(firsts[i])], FACT_FAULTS[number].words
        column = column_of(roles, number) if name else f"{column_of(roles, number)} of the facts"
        found.append(BadRows(name, column, words, rows.size, first))
    hint = ", name columns that tell facts of one attribute apart with --fact-id,"
    more = hint if IDENTITY & set(fault[at].tolist()) else ""
    return bad_rows_error(found, more, quarantines=numbers is None)
