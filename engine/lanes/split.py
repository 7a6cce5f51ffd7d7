"""The first pass: a slice of an archive becomes runs, sorted by lane and time."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from engine.archives.canonical import same_rows
from engine.archives.normalise import FaultCount, Normalised, normalise
from engine.archives.roles import JoinColumns, Roles
from engine.archives.source import unreadable
from engine.archives.texts import as_text
from engine.device.attempt import ASKED_FOR_CPU, Wanted
from engine.errors import InputError, SpecError
from engine.lanes.facts import FactCodes
from engine.lanes.groups import distinct_groups
from engine.lanes.packed import Packed, packed, packing_of
from engine.lanes.placing import Lanes, Order, by_lane, hash_lanes, in_lanes, lane_counts
from engine.lanes.runfiles import write_blocks, write_rows
from engine.lanes.runs import KEYS, Run, lanes_written, write_index
from engine.lanes.sorting import lane_order
from engine.lanes.steps import stepped
from engine.streams import SIDES

MAX_LANES = 65_536


@dataclass(frozen=True)
class Plan:
    """What the tasks of one side have in common.

    Attributes
    ----------
    side : int
        0 left, 1 right.
    roles : Roles
    columns : JoinColumns
    lanes : int
        Hash lanes a group.
    read : tuple of str
        Columns to read.
    keep : tuple of str
        Of these, the columns that go into the lane files.
    as_text : tuple of str
        Columns of CSV files of which some cells did not convert: text everywhere.
    quarantine : bool
    seed : int
        Of the codes of hashed keys.
    split_rows : int
    facts : FactCodes or None
        Where a fact relation joins the streams.
    sorts : Wanted
        The device that sorts.
    """

    side: int
    roles: Roles
    columns: JoinColumns
    lanes: int
    read: tuple[str, ...]
    keep: tuple[str, ...]
    as_text: tuple[str, ...]
    quarantine: bool
    seed: int
    split_rows: int
    facts: FactCodes | None = None
    sorts: Wanted = ASKED_FOR_CPU


@dataclass(frozen=True)
class SplitTask:
    """Row groups of one Parquet file.

    Attributes
    ----------
    plan : Plan
    path, origin : str
        The file to read and the archive's file that it is or was spooled from.
    row_groups : tuple of int
    rows : int
        In them.
    first_row : int
        Position of their first row in the archive.
    out : str
        Start of the names of the files to write.
    """

    plan: Plan
    path: str
    origin: str
    row_groups: tuple[int, ...]
    rows: int
    first_row: int
    out: str


@dataclass(frozen=True)
class SplitResult:
    """What a split found.

    Attributes
    ----------
    side : int
    origin : str
    rows, null_keys, rejected : int
    faults : tuple of FaultCount
        Of each run; rows are positions in the archive.
    rejected_files : tuple of str
        Where rejected rows were written.
    runs : tuple of Run
    collision : bool
        Whether two keys share a code.
    """

    side: int
    origin: str
    rows: int
    null_keys: int
    rejected: int
    faults: tuple[FaultCount, ...]
    rejected_files: tuple[str, ...]
    runs: tuple[Run, ...]
    collision: bool


def split(task: SplitTask) -> SplitResult:
    """Read a slice of an archive and write its runs.

    Memory: `split_rows` rows, a few times over.
    """
    runs: list[Run] = []
    faults: list[FaultCount] = []
    rejected_files: list[str] = []
    rows = null_keys = rejected = 0
    collision = False
    own = f"{task.out}.{uuid.uuid4().hex[:8]}"  # attempts at a task do not disturb each other
    for number, table in enumerate(_tables(task)):
        found = normalise(
            table, task.plan.roles, task.plan.columns, task.first_row + rows, seed=task.plan.seed
        )
        rows += table.num_rows
        null_keys += found.null_keys
        rejected += found.rejected.num_rows
        faults += found.faults
        out = f"{own}-{number:05d}"
        with lanes_written(str(Path(task.out).parent)):
            if task.plan.quarantine and found.rejected.num_rows:
                rejected_files.append(_write_rejected(found, task, out))
            if len(found.ts):
                run, clear = _write_run(found, task.plan, out)
                runs.append(run)
                collision |= not clear
    return SplitResult(
        task.plan.side,
        task.origin,
        rows,
        null_keys,
        rejected,
        tuple(faults),
        tuple(rejected_files),
        tuple(runs),
        collision,
    )


def _tables(task: SplitTask) -> Iterator[pa.Table]:
    """Yield the slice in tables of at most `split_rows` rows, read by one core: a task has one."""
    plan = task.plan
    try:
        with pq.ParquetFile(task.path, pre_buffer=False) as source:
            groups = list(task.row_groups)
            total = sum(source.metadata.row_group(group).num_rows for group in groups)
            if total <= plan.split_rows:
                whole = source.read_row_groups(groups, columns=list(plan.read), use_threads=False)
                yield whole.select(plan.read)
                return
            for batch in source.iter_batches(
                plan.split_rows, groups, columns=list(plan.read), use_threads=False
            ):
                yield pa.Table.from_batches([batch]).select(plan.read)
    except (pa.ArrowException, OSError) as error:
        raise InputError(unreadable(task.origin, SIDES[plan.side], error)) from error


def _write_rejected(found: Normalised, task: SplitTask, out: str) -> str:
    table = as_text(found.rejected, task.plan.as_text)
    origin = pa.array([task.origin] * table.num_rows, pa.string())
    path = f"{out}.rejected.parquet"
    pq.write_table(table.add_column(2, "file", origin), path)
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
    order = None if rises else lane_order(lane, ts, plan.sorts)
    own = _arranged((ts, found.row, found.key, found.importance), lane, counts, order)
    hashes = not plan.columns.direct and plan.facts is None
    if rises and lanes > 1 and (plan.keep or hashes):
        order = by_lane(lane, counts)
    write_rows(out, [*map(stepped, own[:2]), *own[2:]], _kept(found, plan, order))
    key_counts, clear = np.zeros(lanes, np.int64), True
    if hashes:
        sorted_lane = np.repeat(np.arange(lanes, dtype=np.uint16), counts)
        key_lanes, clear = _write_keys(found, sorted_lane, order, f"{out}{KEYS}", plan.sorts)
        key_counts = lane_counts(key_lanes, lanes)
    write_index(out, counts, own[0], key_counts)
    first, last = int(ts[0]), int(ts[-1])
    ends = (first, last) if rises else (int(ts.min()), int(ts.max()))
    return Run(out, groups, counts, first, last, *ends, ascending=rises), clear


def _arranged(
    columns: Sequence[NDArray[Any]], lane: Lanes, counts: NDArray[np.int64], order: Order | None
) -> list[Packed]:
    """Return columns, packed, in an order, by default the stable one by lane."""
    packings = [packing_of(values) for values in columns]
    each = zip(columns, packings, strict=True)
    if order is None and counts.size > 1:
        found = [in_lanes(values, packing, lane, counts) for values, packing in each]
    else:
        rows = slice(None) if order is None else order
        found = [packed(values[rows], packing) for values, packing in each]
    return [Packed(*own) for own in zip(packings, found, strict=True)]


def _kept(found: Normalised, plan: Plan, order: Order | None) -> pa.Table:
    """Return the columns that a lane has beside those of every lane."""
    table = as_text(found.payload.select(plan.keep), plan.as_text)
    table = table.rename_columns([f"{SIDES[plan.side]}_{name}" for name in plan.keep])
    return table if order is None or not plan.keep else table.take(pa.array(order))


def _write_keys(
    found: Normalised,
    lane: Lanes,
    order: Order | None,
    path: str,
    sorts: Wanted,
) -> tuple[Lanes, bool]:
    """Write the distinct keys by (lane, code); return their lanes and whether codes are unique."""
    code = found.key if order is None else found.key[order]
    by_code = lane_order(lane, code, sorts, stable=False)
    lane, code = lane[by_code], code[by_code]
    repeats = np.flatnonzero((lane[1:] == lane[:-1]) & (code[1:] == code[:-1])) + 1
    rows = by_code if order is None else order[by_code]
    clear = same_rows(found.keys, rows[repeats], rows[repeats - 1])
    firsts = np.delete(np.arange(len(rows)), repeats)
    names = [f"key_{i}" for i in range(len(found.keys))]
    taken = [values.take(pa.array(rows[firsts])) for values in found.keys]
    write_blocks(pa.table([pa.array(code[firsts]), *taken], ["_key", *names]), path)
    return lane[firsts], clear


def too_many_lanes(groups: str, lanes: int) -> str:
    """Return the message for more lanes than there may be."""
    return (
        f"{groups} groups of --partition-by with {lanes} lanes each are more than {MAX_LANES} "
        "lanes: partition by fewer values or use fewer --lanes"
    )
