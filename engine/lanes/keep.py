"""Runs that stay as they are, because a lane's pieces of one follow those of the run before it.

So it is with runs of an archive in time order, with runs of rows that came sorted by lane and time,
and with a single run: a lane's tuples in order are its pieces of one run after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from engine.lanes.manifest import RUNS, LaneSide, lane_folder
from engine.lanes.runfiles import KEPT, ROWS
from engine.lanes.runs import Pieces, PlacedRun, Run

PIECE_ROWS = 4_096
"""Rows that pieces have on average, at least, where lanes have several: each is opened."""


def in_order(runs: Sequence[Run]) -> bool:
    """Return whether runs are of an archive in time order, and in the order of its rows."""
    ascending = all(run.ascending for run in runs)
    return ascending and all(
        one.last <= other.first and one.rows[1] < other.rows[0] for one, other in pairwise(runs)
    )


def worth_keeping(runs: Sequence[Run], pieces: Pieces, rows: NDArray[np.int64]) -> bool:
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
    return len(pieces) <= few and (in_order(runs) or pieces.follow())


def keep_runs(
    runs: Sequence[PlacedRun], pieces: Pieces, rows: NDArray[np.int64], folder: Path
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
