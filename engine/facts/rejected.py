"""Rows of F that are no facts: set aside with their reasons, or said in an error."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from engine.archives.bad_rows import BadRows, bad_rows_error
from engine.archives.normalise import FIRST_ROWS, original_name
from engine.facts.faults import FACT_FAULTS, IDENTITY
from engine.facts.roles import FactRoles
from engine.runtime.errors import InputError

Faults = NDArray[np.int8]


def column_of(roles: FactRoles, fault: int) -> str:
    """Return the column whose cell is wrong."""
    named = {"begin": roles.begin or roles.end, "end": roles.end, "op": roles.op}
    return named.get(FACT_FAULTS[fault].role, roles.time) or roles.left[0]


def rejected_rows(
    table: pa.Table,
    roles: FactRoles,
    fault: Faults,
    other: NDArray[np.int64],
    starts: Mapping[int, str],
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


def _files(at: NDArray[np.int64], starts: Mapping[int, str]) -> list[str]:
    firsts = np.array(sorted(starts))
    return [starts[int(firsts[i])] for i in np.searchsorted(firsts, at, "right") - 1]


def complain(fault: Faults, roles: FactRoles, starts: Mapping[int, str]) -> InputError:
    """Return an error that names file, column, fault, count and first rows of all bad rows."""
    at = np.flatnonzero(fault)
    firsts = np.array(sorted(starts))
    file = np.searchsorted(firsts, at, "right") - 1
    found = []
    for i, number in sorted(set(zip(file.tolist(), fault[at].tolist(), strict=True))):
        rows = at[(file == i) & (fault[at] == number)]
        first = tuple((rows[:FIRST_ROWS] - firsts[i]).tolist())
        name, words = starts[int(firsts[i])], FACT_FAULTS[number].words
        found.append(BadRows(name, column_of(roles, number), words, rows.size, first))
    hint = ", name columns that tell facts of one attribute apart with --fact-id,"
    more = hint if IDENTITY & set(fault[at].tolist()) else ""
    return bad_rows_error(found, more)
