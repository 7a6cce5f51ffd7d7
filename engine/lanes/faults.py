"""What is said of rows that cannot be tuples when they are an error."""

from __future__ import annotations

from collections.abc import Iterable

from engine.archives.bad_rows import BadRows, bad_rows_error
from engine.archives.roles import Roles
from engine.archives.source import Archive
from engine.archives.ticks import FAULTS
from engine.lanes.split import SplitResult


def check_faults(
    archives: tuple[Archive, Archive],
    roles: tuple[Roles, Roles],
    results: Iterable[SplitResult],
    *,
    quarantine: bool,
) -> None:
    """Raise an error that names file, column, fault, count and first rows of all bad rows.

    By side, file and fault, however the work was cut; `results` are in the order of the archives'
    rows. Rows are counted from 0 within their file.
    """
    if quarantine:
        return
    totals: dict[tuple[int, str, int], int] = {}
    rows: dict[tuple[int, str, int], list[int]] = {}
    for result in results:
        for fault in result.faults:
            at = (result.side, result.origin, fault.fault)
            totals[at] = totals.get(at, 0) + fault.total
            rows.setdefault(at, []).extend(row - result.file_first for row in fault.rows)
    if not totals:
        return
    found = []
    places = [{file.path: i for i, file in enumerate(archive.files)} for archive in archives]
    for side, origin, fault_ in sorted(totals, key=lambda at: (at[0], places[at[0]][at[1]], at[2])):
        total = totals[side, origin, fault_]
        column = roles[side].time if FAULTS[fault_].role == "time" else roles[side].importance
        name = archives[side].files[places[side][origin]].name
        first = tuple(rows[side, origin, fault_])
        found.append(BadRows(name, str(column), FAULTS[fault_].words, total, first))
    raise bad_rows_error(found)
