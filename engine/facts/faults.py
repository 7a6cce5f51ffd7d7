"""In what ways a row of F can be wrong."""

from __future__ import annotations

from engine.archives import ticks
from engine.archives.ticks import Fault

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
        "overlapping an earlier interval of the same fact",
    ),
    THERE_ALREADY: Fault(
        "op",
        "inserts what is there since row {other}",
        "inserting a fact that is there already",
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
