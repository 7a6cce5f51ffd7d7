"""Replays from Python: the command line's work as functions.

`replay` writes its tables to a temporary folder and runs the same job as
``winnow replay --engine local``, so rows and report are equal by construction.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

import pyarrow as pa

from engine.api.keywords import takes
from engine.api.tables import read_back, staged, tell_seconds, temporary
from engine.jobs.replay.run import run_replay
from engine.jobs.trial.lane_cost import lane_cost
from engine.jobs.trial.replay import take_advice
from engine.options import where
from engine.options.replay import REPLAY, Replay, job_of
from engine.runtime.executors import ThreadExecutor


class ReplayFiles(Replay, where.Out, where.Cache, total=False):
    """The keywords of a replay of archives."""


class ReplayResult(NamedTuple):
    """What a replay of tables gives.

    Attributes
    ----------
    outputs : pyarrow.Table
        ``left_row``, ``right_row``, ``ts``, ``importance``, ``weight``, and the payload columns of
        both sides as ``left_<name>`` and ``right_<name>``.
    report : dict
        As the command line writes it.
    rejected : tuple of pyarrow.Table or None
        Rows of left, right and a table of facts that were set aside, with their reasons; None if
        there are none.
    """

    outputs: pa.Table
    report: dict[str, Any]
    rejected: tuple[pa.Table | None, ...]


@takes(REPLAY)
def replay(left: pa.Table, right: pa.Table, **options: Unpack[Replay]) -> ReplayResult:
    """Join two streams through sliding windows within a memory budget.

    Parameters
    ----------
    left, right : pyarrow.Table
        In any order of time; a row's number is its position.
    **options
        As ``winnow replay`` has them; without `memory` the join is exact. `fact` may be a table:
        outputs then have a ``fact_row`` as well, and the columns of F as ``fact_<name>``.

    Returns
    -------
    ReplayResult

    Raises
    ------
    WinnowError
        If an option or a table is invalid.

    See Also
    --------
    replay_archives : the same for streams in files, which need not fit in memory.

    Notes
    -----
    The tables are written to the temporary folder (``$TMPDIR``) once, and their lanes once more.

    Examples
    --------
    >>> left = pa.table({"t": [0, 1, 2], "key": ["a", "b", "a"], "value": [5.0, 1.0, 9.0]})
    >>> right = pa.table({"t": [1, 2, 4], "key": ["a", "b", "a"], "value": [5.0, 9.0, 7.0]})
    >>> found = replay(left, right, on="key", time="t", importance="value", window=2, memory=2,
    ...                policy="simp", columns="ids")
    >>> found.outputs.select(["left_row", "right_row", "ts", "importance"]).to_pylist()[-1]
    {'left_row': 2, 'right_row': 2, 'ts': 4, 'importance': 7.0}
    >>> found.report["exact"]["outputs"], found.report["lost"]["outputs"]
    (4, 1)
    """
    given = REPLAY.from_keywords(options)
    with temporary() as folder:
        tables, files, unit = staged(left, right, given, folder)
        files["out"] = folder / "out"
        report = run_replay(
            job_of(files), ThreadExecutor(), choose=take_advice, price=lane_cost
        ).content
        report["out"] = None
        tell_seconds(report, tables, given, unit)
        return ReplayResult(*read_back(tables, files["out"], report))


@takes(REPLAY)
def replay_archives(
    left: where.PathLike, right: where.PathLike, **options: Unpack[ReplayFiles]
) -> dict[str, Any]:
    """Replay two archives as ``winnow replay --engine local`` does.

    Parameters
    ----------
    left, right : path
        File, folder or glob.
    **options
        As for `replay`, and `out`, the folder of the output dataset, which must not exist (without
        it outputs are only counted), and `cache`, the folder of prepared lanes.

    Returns
    -------
    dict
        The report.

    Raises
    ------
    WinnowError
        If an option is invalid, an archive cannot be read, or the output cannot be written.
    """
    given = REPLAY.from_keywords({**options, "left": left, "right": right})
    return run_replay(job_of(given), ThreadExecutor(), choose=take_advice, price=lane_cost).content
