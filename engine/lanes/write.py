"""The second pass: lanes reuse their runs or get files into which these are merged.

Runs are reused where a lane's pieces follow one another: in archives in time order, in rows sorted
by lane and time, and where there is a single run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from engine.archives.canonical import same_rows
from engine.lanes.manifest import RUNS, LaneSide, lane_file, lane_folder
from engine.lanes.merge import merged
from engine.lanes.runfiles import KEPT, ROWS, Files
from engine.lanes.runs import Piece, Pieces, PlacedRun, Run, lanes_written
from engine.runtime.jit import Ints
from engine.runtime.storage.encodings import encodings
from engine.runtime.storage.places import make_folder, written
from engine.runtime.storage.reading import parquet_file
from engine.runtime.storage.uris import Place
from engine.runtime.work import rows_done

GROUP_ROWS = 16_384
WORK = "_work"
"""Folder of what is not kept, within the folder of lanes."""
_SORTED = ("_ts", "_row")
_ENCODINGS = {
    "_key": "BYTE_STREAM_SPLIT",
    "_importance": "BYTE_STREAM_SPLIT",
}


@dataclass(frozen=True)
class LaneTask:
    """Some lanes of one side to write."""

    side: int
    lanes: tuple[int, ...]
    """Lanes that have rows on this side."""
    lanes_per_group: int
    runs: tuple[PlacedRun, ...]
    """Every run of the side."""
    folder: Place
    """Where the folders of lanes are."""


@dataclass(frozen=True)
class CheckTask:
    """Some lanes whose codes to prove one to one, over the runs of both sides."""

    lanes: tuple[int, ...]
    lanes_per_group: int
    runs: tuple[PlacedRun, ...]


def write_lanes(task: LaneTask) -> list[LaneSide]:
    """Write the lane files of some lanes and return what is in each.

    Memory: a row group of the lane file and a block of each run that overlaps in time.
    """
    pieces = Pieces(task.runs, task.lanes_per_group, task.lanes)
    written = []
    with Files(again=len(task.lanes) > 1) as files:
        for lane in task.lanes:
            folder = task.folder / lane_folder(lane)
            make_folder(folder, parents=False)  # a late attempt finds the lanes' own gone
            with _own_file(task.folder, folder / lane_file(task.side)) as path:
                written.append(_write_lane(path, pieces.of(lane), files))
    return written


@contextmanager
def _own_file(lanes: Place, path: Place) -> Iterator[Path]:
    """Yield the name of this attempt's own file, which takes its place among the lanes."""
    with lanes_written(lanes), written(path, lanes / WORK) as own:
        yield own


def _write_lane(path: Path, pieces: list[Piece], files: Files) -> LaneSide:
    rows, first, last = 0, None, None
    writer = None
    try:
        for table in _in_groups(merged(pieces, _SORTED, files)):
            if writer is None:
                writer = _writer(path, table)
                first = int(table.column("_ts")[0].as_py())
            last = int(table.column("_ts")[-1].as_py())
            rows += table.num_rows
            writer.write_table(table, GROUP_ROWS)
            rows_done(table.num_rows)
    finally:
        if writer is not None:
            writer.close()
    return LaneSide(rows, first, last, path.stat().st_size)


def _writer(path: Path, first: pa.Table) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        path,
        first.schema,
        compression="lz4",  # against zstd: a quarter to a half less time to read
        write_statistics=[_SORTED[0]],
        write_page_checksum=True,
        **encodings(first, _ENCODINGS),
    )


def _in_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of `tables` in tables of whole row groups, the last but for what is left."""
    pending: list[pa.Table] = []
    waiting = 0
    for table in tables:
        pending.append(table)
        waiting += table.num_rows
        if waiting >= GROUP_ROWS:
            whole = pa.concat_tables(pending)
            cut = waiting - waiting % GROUP_ROWS
            yield whole.slice(0, cut)
            pending = [whole.slice(cut)]
            waiting -= cut
    if waiting:
        yield pa.concat_tables(pending)


def codes_clear(task: CheckTask) -> bool:
    """Return whether in each lane equal codes stand for equal keys, over both sides and all runs.

    Every run has its distinct (code, key) pairs sorted by code, so a merge by code brings all
    keys of a code together. Memory: a block of each run.
    """
    pieces = Pieces(task.runs, task.lanes_per_group, task.lanes)
    with Files(again=len(task.lanes) > 1) as files:
        for lane in task.lanes:
            own = pieces.of(lane, keys=True)
            if len(own) > 1 and not all(map(_one_to_one, merged(own, ("_key", "_key"), files))):
                return False
    return True


def _one_to_one(table: pa.Table) -> bool:
    """Return whether neighbours of equal code, in a table sorted by it, have equal keys."""
    code = table.column("_key").to_numpy()
    repeats = np.flatnonzero(code[1:] == code[:-1]) + 1
    columns = [table.column(name) for name in table.column_names if name != "_key"]
    return same_rows(columns, repeats, repeats - 1)


@dataclass(frozen=True)
class RejectTask:
    """Files of rejected rows of one side to join, in the order of their rows."""

    files: tuple[str, ...]
    folder: Place
    name: str


def join_rejected(task: RejectTask) -> int:
    """Write the rejected rows of one side as one file and return how many there are."""
    rows = 0
    with parquet_file(task.files[0]) as first:
        schema = first.schema_arrow
    place = task.folder / "_rejected" / f"{task.name}.parquet"
    with (
        _own_file(task.folder, place) as own,
        pq.ParquetWriter(own, schema, compression="zstd") as writer,
    ):
        for file in task.files:
            with parquet_file(file) as source:
                table = source.read()
            writer.write_table(table)
            rows += table.num_rows
    return rows


PIECE_ROWS = 4_096
"""Rows that pieces have on average, at least, where lanes have several: each is opened."""


def in_order(runs: Sequence[Run]) -> bool:
    """Return whether runs are of an archive in time order, and in the order of its rows."""
    ascending = all(run.ascending for run in runs)
    return ascending and all(
        one.last <= other.first and one.rows[1] < other.rows[0] for one, other in pairwise(runs)
    )


def can_reuse(runs: Sequence[Run], pieces: Pieces, rows: Ints) -> bool:
    """Return whether every lane's pieces are in order one after the other, and large or few.

    Parameters
    ----------
    runs : sequence of Run
        All of one side.
    pieces : Pieces
        Of these.
    rows : (lanes,) int64
        Of each lane.
    """
    few = int(np.count_nonzero(rows)) + int(rows.sum()) // PIECE_ROWS
    found = sum(int(np.count_nonzero(run.lane_rows)) for run in runs)
    return found <= few and (in_order(runs) or pieces.follow())


def reuse_runs(
    runs: Sequence[PlacedRun], pieces: Pieces, rows: Ints, folder: Path
) -> tuple[list[LaneSide], dict[str, int]]:
    """Move the rows of runs to where lanes are read from.

    Parameters
    ----------
    runs : sequence of PlacedRun
        All of one side, in order.
    pieces : Pieces
        Of these runs.
    rows : (lanes,) int64
        Of each lane.
    folder : Path
        Of the lanes; theirs are made.

    Returns
    -------
    sides : list of LaneSide
        Of each lane.
    sizes : dict
        Bytes of each run by its name.
    """
    (folder / RUNS).mkdir(exist_ok=True)
    sides = []
    for lane, count in enumerate(rows.tolist()):
        own = pieces.timed(lane) if count else ()
        if own:
            (folder / lane_folder(lane)).mkdir(exist_ok=True)
            sides.append(LaneSide(count, own[0].first, own[-1].last, 0, own))
        else:
            sides.append(LaneSide())
    sizes = {}
    for run in runs:
        for path in (Path(f"{run.path}{ending}") for ending in (ROWS, KEPT)):
            if path.exists():
                sizes[path.name] = path.stat().st_size
                path.rename(folder / RUNS / path.name)
    return sides, sizes
