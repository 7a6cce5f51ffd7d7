"""The first pass: rows of an archive become runs, sorted by lane and time."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.archives.canonical import same_rows
from engine.archives.folders import NONE
from engine.archives.normalise import FaultCount, Normalised, normalise
from engine.archives.retyped import in_types, without_bad
from engine.archives.roles import JoinColumns, Roles
from engine.lanes.column_encoding import EncodedColumn, delta_encoded, encoded, encoding_of
from engine.lanes.facts import FactCodes
from engine.lanes.placing import (
    Lanes,
    Order,
    by_lane,
    distinct_groups,
    first_rows,
    hash_lanes,
    in_lanes,
    lane_counts,
    lane_order,
)
from engine.lanes.runfiles import write_blocks, write_rows
from engine.lanes.runs import KEYS, Run, lanes_written, write_index
from engine.runtime.device_choice import ASKED_FOR_CPU, Wanted
from engine.runtime.errors import InputError, SpecError
from engine.runtime.jit import Ints
from engine.runtime.storage.places import written
from engine.runtime.storage.uris import extended, place_of
from engine.runtime.streams import SIDES

MAX_LANES = 65_536
SPLIT_ROWS = 1_000_000
MOST_SPLITS = 16_384
"""Of both archives, unless a split's bytes come to more than `SPLIT_BYTES`: every run costs the
driver eight bytes a lane, and every task that merges lanes a look at its index."""
SPLIT_BYTES = 1 << 28


@dataclass(frozen=True)
class Plan:
    """What the tasks of one side have in common."""

    side: int
    """0 left, 1 right."""
    roles: Roles
    columns: JoinColumns
    lanes: int
    """Hash lanes a group."""
    read: tuple[str, ...]
    """Columns to read."""
    keep: tuple[str, ...]
    """Of these, the columns that go into the lane files."""
    changed: Mapping[str, pa.DataType]
    """Types of columns of text files of which some cells are not as the first ones."""
    quarantine: bool
    seed: int
    """Of the codes of hashed keys."""
    split_rows: int
    facts: FactCodes | None = None
    """Where a fact relation joins the streams."""
    sorts: Wanted = ASKED_FOR_CPU
    """The device that sorts."""
    folders: pa.Schema = NONE
    """The columns that names of folders hold."""


@dataclass(frozen=True)
class SplitResult:
    """What a split found."""

    side: int
    origin: str
    file_first: int
    """Position of that file's first row in the archive."""
    rows: int
    null_keys: int
    rejected: int
    faults: tuple[FaultCount, ...]
    """Of each run; rows are positions in the archive."""
    rejected_files: tuple[str, ...]
    """Where rejected rows were written."""
    runs: tuple[Run, ...]
    collision: bool
    """Whether two keys share a code."""


class Splitting:
    """Writes the runs of tables, one after the other, and counts what they hold.

    Parameters
    ----------
    origin : str
        The archive's file whose rows they are.
    file_first : int
        Position of that file's first row in the archive.
    out : str
        Start of the names of the files to write.
    """

    def __init__(self, plan: Plan, origin: str, file_first: int, out: str) -> None:
        self._plan, self._origin, self._file_first = plan, origin, file_first
        self._folder = place_of(out).parent
        own = f".{uuid.uuid4().hex[:8]}"  # attempts at a task do not disturb each other
        self._out = extended(out, own)
        self._runs: list[Run] = []
        self._faults: list[FaultCount] = []
        self._rejected_files: list[str] = []
        self._null_keys = self._rejected = self._tables = 0
        self._collision = False
        self.rows = 0

    def add(self, table: pa.Table, rows: int | Ints) -> None:
        """Write the runs of a table, of which `rows` is as in `normalise`."""
        plan = self._plan
        try:
            found = normalise(table, plan.roles, plan.columns, rows, seed=plan.seed)
        except InputError as error:
            where = f"the {SIDES[plan.side]} archive: file {self._origin}"
            raise InputError(f"{where}: {error}") from None
        self.rows += table.num_rows
        self._null_keys += found.null_keys
        self._rejected += found.rejected.num_rows
        self._faults += found.faults
        out = extended(self._out, f"-{self._tables:05d}")
        self._tables += 1
        with lanes_written(self._folder):
            if plan.quarantine and found.rejected.num_rows:
                self._rejected_files.append(_write_rejected(found, plan, self._origin, out))
            if len(found.ts):
                run, clear = _write_run(found, plan, out)
                self._runs.append(run)
                self._collision |= not clear

    def result(self) -> SplitResult:
        """Return what all tables came to."""
        return SplitResult(
            self._plan.side, self._origin, self._file_first, self.rows, self._null_keys,
            self._rejected, tuple(self._faults), tuple(self._rejected_files), tuple(self._runs),
            self._collision,
        )  # fmt: skip


def _write_rejected(found: Normalised, plan: Plan, origin: str, out: str) -> str:
    table = in_types(found.rejected, plan.changed)
    file = pa.array([origin] * table.num_rows, pa.string())
    path = extended(out, ".rejected.parquet")
    with written(path) as own:
        pq.write_table(table.add_column(2, "file", file), own)
    return path


def _write_run(found: Normalised, plan: Plan, out: str) -> tuple[Run, bool]:
    """Sort by (lane, ts, row), write, and return whether the codes are one to one in each lane."""
    ids, groups = distinct_groups(found.groups, len(found.ts))
    lanes = len(groups) * plan.lanes
    if lanes > MAX_LANES:
        raise SpecError(too_many_lanes(f"at least {len(groups)}", plan.lanes))
    if plan.facts is not None:
        key, part = plan.facts.placed(found, plan.lanes)
        found, lane = replace(found, key=key), (ids * plan.lanes + part).astype(np.uint16)
    elif plan.lanes > 1:
        lane = hash_lanes(found.lane_hash, ids, plan.lanes)
    else:
        lane = ids.astype(np.uint16)
    counts = lane_counts(lane, lanes)
    ts = found.ts
    rises = bool((ts[1:] >= ts[:-1]).all())
    follows = bool((found.row[1:] > found.row[:-1]).all())
    if follows:
        order = None if rises else lane_order(lane, ts, plan.sorts)
    else:
        order = _order_of_all(lane, ts, found.row)
    own = _arranged((ts, found.row, found.key, found.importance), lane, counts, order)
    hashes = not plan.columns.direct and plan.facts is None
    if order is None and lanes > 1 and plan.keep:
        order = by_lane(lane, counts)
    write_rows(out, [*map(delta_encoded, own[:2]), *own[2:]], _own_columns(found, plan, order))
    key_counts, clear = np.zeros(lanes, np.int64), True
    if hashes:
        key_lanes, clear = _write_keys(found, lane, extended(out, KEYS), plan.sorts)
        key_counts = lane_counts(key_lanes, lanes)
    write_index(out, counts, own[0], key_counts)
    run = Run(
        out, groups, counts, int(ts[0]), int(ts[-1]), *_ends(ts, rises=rises),
        ascending=rises and follows,
        rows=_ends(found.row, rises=follows),
    )  # fmt: skip
    return run, clear


def _ends(values: Ints, *, rises: bool) -> tuple[int, int]:
    if rises:
        return int(values[0]), int(values[-1])
    return int(values.min()), int(values.max())


def _order_of_all(lane: Lanes, ts: Ints, row: Ints) -> Order | None:
    """Return the order by (lane, ts, row) of rows in any order, None where they come in it."""
    later = row[1:] > row[:-1]
    for values in (ts, lane):
        later = (values[1:] > values[:-1]) | ((values[1:] == values[:-1]) & later)
    return None if later.all() else np.lexsort((row, ts, lane))


def _arranged(
    columns: Sequence[NDArray[Any]], lane: Lanes, counts: Ints, order: Order | None
) -> list[EncodedColumn]:
    """Return columns, encoded, in an order, by default the stable one by lane."""
    encodings = [encoding_of(values) for values in columns]
    each = zip(columns, encodings, strict=True)
    if order is None and counts.size > 1:
        found = [in_lanes(values, encoding, lane, counts) for values, encoding in each]
    else:
        rows = slice(None) if order is None else order
        found = [encoded(values[rows], encoding) for values, encoding in each]
    return [EncodedColumn(*own) for own in zip(encodings, found, strict=True)]


def _own_columns(found: Normalised, plan: Plan, order: Order | None) -> pa.Table:
    """Return the columns that a lane has beside those of every lane."""
    table = found.payload.select(plan.keep)
    table = without_bad(table, plan.changed, plan.roles.importance, found.importance)
    table = table.rename_columns([f"{SIDES[plan.side]}_{name}" for name in plan.keep])
    return table if order is None or not plan.keep else table.take(pa.array(order))


def _write_keys(found: Normalised, lane: Lanes, path: str, sorts: Wanted) -> tuple[Lanes, bool]:
    """Write the distinct keys by (lane, code); return their lanes and whether codes are unique."""
    first, rows = first_rows(lane, found.key), np.arange(len(lane))
    repeats = np.flatnonzero(first != rows)
    clear = same_rows(found.keys, repeats, first[repeats])
    firsts = np.delete(rows, repeats)
    firsts = firsts[lane_order(lane[firsts], found.key[firsts], sorts, stable=False)]
    names = [f"key_{i}" for i in range(len(found.keys))]
    taken = [values.take(pa.array(firsts)) for values in found.keys]
    write_blocks(pa.table([pa.array(found.key[firsts]), *taken], ["_key", *names]), path)
    return lane[firsts], clear


def rows_a_split(total: int) -> int:
    """Return how many rows a task splits, of so many in both archives.

    Examples
    --------
    >>> rows_a_split(2_000_000_000), rows_a_split(75_000_000_000)
    (1000000, 4577637)
    """
    return max(SPLIT_ROWS, -(-total // MOST_SPLITS))


def fitting_rows(split_rows: int, rows: int, size: int) -> int:
    """Return how many rows are split at once, of a file with so many rows and bytes."""
    width = size // max(rows, 1)
    return max(1, min(split_rows, SPLIT_BYTES // max(width, 1)))


def too_many_lanes(groups: str, lanes: int) -> str:
    """Return the message for more lanes than there may be."""
    return (
        f"{groups} groups of --partition-by with {lanes} lanes each are more than {MAX_LANES} "
        "lanes: partition by fewer values or use fewer --lanes"
    )
