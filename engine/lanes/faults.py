"""What is said of rows that cannot be tuples when they are an error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.archives.bad_rows import BadRows, bad_rows_error
from engine.archives.roles import Roles
from engine.archives.source import Archive
from engine.archives.ticks import FAULTS
from engine.lanes.split import SplitResult, SplitTask


def check_faults(
    archives: tuple[Archive, Archive],
    roles: tuple[Roles, Roles],
    results: Iterable[SplitResult],
    tasks: Sequence[SplitTask],
    *,
    quarantine: bool,
) -> None:
    """Raise an error that names file, column, fault, count and first rows of all bad rows.

    Rows are counted from 0 within their file.
    """
    if quarantine:
        return
    starts: dict[tuple[int, str], int] = {}
    for task in tasks:
        starts.setdefault((task.plan.side, task.origin), task.first_row)
    totals: dict[tuple[int, str, int], int] = {}
    rows: dict[tuple[int, str, int], list[int]] = {}
    for result in results:
        start = starts[result.side, result.origin]
        for fault in result.faults:
            at = (result.side, result.origin, fault.fault)
            totals[at] = totals.get(at, 0) + fault.total
            rows.setdefault(at, []).extend(row - start for row in fault.rows)
    if not totals:
        return
    found = []
    for (side, origin, fault_), total in totals.items():
        column = roles[side].time if FAULTS[fault_].role == "time" else roles[side].importance
        name = next((f.name for f in archives[side].files if f.path == origin), origin)
        first = tuple(rows[side, origin, fault_])
        found.append(BadRows(name, str(column), FAULTS[fault_].words, total, first))
    raise bad_rows_error(found)
